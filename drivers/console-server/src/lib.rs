//! What the drivers of consoles share: the `Console` and `Pipe` contracts for many clients over one port.
//!
//! Key type: [`Port`] (what a driver implements). Neighbours: `terminal` decides what is shown and what a line
//! is; [`contracts::console`]. Deliberately not here: devices, and what the bytes mean.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod server;

use alloc::format;
use alloc::vec::Vec;
use core::task::{Context, Poll};

use contracts::{report, service_provider};
use service_provider::StartError;
use sip::Status;
use sip::exheap::ExVec;
use terminal::Terminal;

/// A device that a person sits at, or that byte streams come from and go to. One thread uses it.
pub trait Port: 'static {
    /// Whether a person's terminal is there. Asked once.
    fn is_terminal(&self) -> bool;

    /// Columns and rows of a terminal now; zeroes for a stream, or where nobody knows.
    fn columns_and_rows(&self) -> (u32, u32);

    /// Asks for input, unless that was done already.
    fn want_input(&mut self) -> Result<(), Status>;

    /// Input that was asked for, once it is there. An empty piece is the end, and nothing follows it. Until it
    /// is there, keeps the waker and wakes it when it comes, from whatever thread.
    fn poll_input(&mut self, context: &mut Context<'_>) -> Poll<Vec<u8>>;

    /// Writes bytes and waits until the machine has them.
    fn write(&self, bytes: &[u8]) -> Result<(), Status>;

    /// Writes a block whole and waits until the machine has it.
    fn write_block(&self, block: ExVec<u8>) -> Result<(), Status> {
        self.write(&block)
    }
}

/// The whole `main` of a driver: serves clients over the port until the one who hands them over is gone, or
/// says why the port could not be opened. Gives the exit status.
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
                let _ended = clients.not_ready(StartError::Missing, explanation);
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
