//! The console driver: what programs write goes to the terminal, what a person types comes from it.
//!
//! Key types: [`Terminal`] (all that is decided, without channels or devices), `port::Port` (the device),
//! `server` (the clients). Neighbours: `line-editor` edits, `command-language` says what to colour.
//! This is the one program that knows escape sequences: it writes them to a terminal only, and shows
//! those in the output of programs as text. Deliberately not here: commands and their history on disk.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod port;
mod server;
mod terminal;

pub use terminal::{LineEvent, Reading, TYPED_AHEAD_BYTES, Terminal};

use contracts::service_provider::StartError;
use sip::exheap::ExVec;

sip::startup!();

/// Serves the console until the directory service is gone.
pub fn main(startup: Startup) -> i32 {
    let port = match port::Port::open() {
        Ok(port) => port,
        Err(status) => {
            contracts::report::error(format_args!("the console device cannot be opened: {}", status.text()));
            if let Ok(explanation) = ExVec::from_slice(status.text().as_bytes()) {
                let _ended = startup.clients.not_ready(StartError::Missing, explanation);
            }
            return 1;
        }
    };
    let (terminal, columns) = port.size();
    let mut state = Terminal::new(terminal, columns as usize);
    state.set_colours(startup.colours);
    let served = sip::executor::block_on(server::serve(state, port, startup.clients.ready()));
    i32::from(served.is_err())
}
