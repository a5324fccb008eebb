//! What a process of the host does when it runs as a service, under systemd or the like: its log has the time and the
//! author of each line ([`log`]), and its supervisor is told when it serves and when it stops ([`notify`]).
//!
//! Deliberately not here: which process does so, and when.
#![forbid(unsafe_code)]

pub mod log;
pub mod notify;
