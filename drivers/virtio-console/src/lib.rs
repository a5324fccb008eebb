//! The driver of a virtio console: what programs write goes out, what a person types at its other end, or a
//! stream, comes in.
//!
//! Key types: [`line::Line`] (the bytes, without channels), `port::Port` (the device for the server). Neighbours:
//! `sip-virtio` (the device), `console-server` (the clients). Deliberately not here: more ports than the first.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod line;
mod port;

sip::startup!();

/// Value of the parameter `terminal` where nobody sits at the other end.
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
