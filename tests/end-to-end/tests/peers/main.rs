//! The network stack against Linux's, over a wire that loses, duplicates, delays, reorders and corrupts packets.
//!
//! Key modules: `network` (namespaces, the wire between them, and a machine at one end). Everything runs in network
//! namespaces of its own, so no packet reaches the host's networks. Tests that create such namespaces are in modules
//! with `netns` in their names.
#![forbid(unsafe_code)]

mod netns_curl_python_tshark_e2fsprogs;
mod netns_dnsmasq_curl_python_e2fsprogs;
mod netns_python_rules;
mod network;
