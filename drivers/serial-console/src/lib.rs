//! Driver of a serial port as the console: program output goes to the line, and input from a terminal at
//! its other end, or from a stream, comes from it.
//!
//! Key type: `port::Port` (the device and the thread that waits for its interrupt). Neighbours: `uart-16550` has
//! the registers, `console-server` serves the clients, `terminal` has the line editor. Deliberately not here:
//! other speeds than 115,200 baud, which do not matter on a virtual line.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

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
