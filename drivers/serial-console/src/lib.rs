//! The driver of a serial port as the console: what programs write goes out on the line, what a person types at
//! its other end, or a stream, comes in.
//!
//! Key type: `port::Port` (the device and the thread that waits for its interrupt). Neighbours: `uart-16550` knows
//! the registers, `console-server` serves the clients, `terminal` decides what is shown. Deliberately not here:
//! other speeds than 115,200 baud; whoever sits at the other end of a virtual line does not see them.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

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
