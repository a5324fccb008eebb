//! Shared server code of console drivers: the `Console` and `Pipe` contracts for many clients over one port.
//!
//! Key type: [`Port`] (implemented by the driver). Neighbours: `terminal` has the line editor and the rendering;
//! [`contracts::console`]. Deliberately not here: devices, and the meaning of the bytes.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod server;

use alloc::format;
use alloc::vec::Vec;
use core::task::{Context, Poll};

use contracts::service_provider;
use sip::Status;
use sip::exheap::ExVec;
use stdio::report;
use terminal::Terminal;

/// A terminal, or a pair of byte streams. Used by one thread.
pub trait Port: 'static {
    /// Returns whether it is an interactive terminal. Called once.
    fn is_terminal(&self) -> bool;

    /// Returns the current columns and rows of a terminal; zeroes for a stream, or if unknown.
    fn columns_and_rows(&self) -> (u32, u32);

    /// Submits a read, unless one is in flight.
    fn want_input(&mut self) -> Result<(), Status>;

    /// Returns the input of the submitted read. An empty piece is the end of input, after which there is no more. While
    /// pending, keeps the waker, to wake it from any thread.
    fn poll_input(&mut self, context: &mut Context<'_>) -> Poll<Vec<u8>>;

    /// Writes bytes and blocks until the machine has accepted them.
    fn write(&self, bytes: &[u8]) -> Result<(), Status>;

    /// Writes a whole block and blocks until the machine has accepted it.
    fn write_block(&self, block: ExVec<u8>) -> Result<(), Status> {
        self.write(&block)
    }
}

/// The whole `main` of a driver: serves clients over the port until the provider channel closes, or
/// reports why the port could not be opened. Returns the exit status.
pub fn run<P: Port>(
    clients: service_provider::Exp<service_provider::states::Start>,
    port: Result<P, Status>,
    colours: bool,
) -> i32 {
    let port = match port {
        Ok(port) => port,
        Err(status) => {
            let explanation = format!("the console device cannot be opened: {}", status.text());
            report::error(format_args!("{explanation}"));
            if let Ok(explanation) = ExVec::from_slice(explanation.as_bytes()) {
                let _ended = clients.not_ready(provider::start_error(status), explanation);
            }
            return 1;
        }
    };
    let (columns, _) = port.columns_and_rows();
    let mut state = Terminal::new(port.is_terminal(), columns as usize);
    state.set_colours(colours);
    let served = sip::executor::block_on(server::serve(state, port, clients.ready()));
    i32::from(served.is_err())
}
