//! Driver of the hosted machine's console: program output goes to the terminal, typed input comes from it.
//!
//! Key type: `port::Port` (the device). Neighbours: `console-server` serves the clients, `terminal` has the line
//! editor. Deliberately not here: both of these.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod port;

sip::startup!();

/// Serves the console until the directory service is gone.
pub fn main(startup: Startup) -> i32 {
    console_server::run(startup.clients, port::Port::open(&startup.console), startup.colours)
}
