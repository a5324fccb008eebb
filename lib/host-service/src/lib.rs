//! Runs a host process as a service, under systemd or the like: log lines with time and author ([`log`]), and
//! notification of its supervisor about readiness, reload and stop ([`notify`]).
//!
//! Deliberately not here: which process does so, and when.
#![forbid(unsafe_code)]

pub mod log;
pub mod notify;
