//! The network stack against Linux's, over a wire that loses, repeats, delays, disorders and damages packets.
//!
//! Key modules: `network` (namespaces, the wire between them, and a machine at its one end). All of it is in network
//! namespaces of its own, so no packet reaches the host's networks. Tests that need to make such namespaces are in modules
//! with `netns` in their names.
#![forbid(unsafe_code)]

mod netns_curl_python_tshark_e2fsprogs;
mod netns_dnsmasq_curl_python_e2fsprogs;
mod netns_python_rules;
mod network;
