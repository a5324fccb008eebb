//! Driver of a virtio console: program output goes to the device, and input from a terminal at its other end, or from a
//! stream, comes from it.
//!
//! Key types: [`line::Line`] (the bytes, without channels), `port::Port` (the device for the server). Neighbours:
//! `sip-virtio` (the device), `console-server` (the clients). Deliberately not here: more ports than the first.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod line;
mod port;

sip::startup!();

/// Value of the parameter `terminal` for a byte stream instead of a terminal.
const NO_TERMINAL: &str = "none";

/// Serves the console until the directory service is gone.
pub fn main(startup: Startup) -> i32 {
    let size = |count: i64| u32::try_from(count).unwrap_or(0);
    let screen = match &*startup.terminal {
        NO_TERMINAL => None,
        _ => Some((size(startup.columns), size(startup.rows))),
    };
    console_server::run(startup.clients, port::Port::open(&startup.port, screen), startup.colours)
}
