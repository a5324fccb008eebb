//! What a host process needs to run as a service, under systemd or the like: log lines with time and author ([`log`]),
//! and notification of its supervisor when it is ready and when it stops ([`notify`]).
//!
//! Deliberately not here: which process does so, and when.
#![forbid(unsafe_code)]

pub mod log;
pub mod notify;
