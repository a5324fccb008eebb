//! The network stack against Linux's, over a wire that loses, duplicates, delays, reorders and corrupts packets.
//!
//! Key modules: `network` (namespaces, the wire between them, and a machine at one end). Everything runs in network
//! namespaces of its own, so no packet reaches the host's networks.
#![forbid(unsafe_code)]

mod autoconfiguration;
mod impaired_wires;
mod network;
mod rules;
