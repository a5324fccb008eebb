//! The standard streams: pipes, and lines of errors.

use alloc::vec::Vec;

use sip::Deadline;
use sip::exheap::ExVec;
use sip::select::{Waitable, wait_any};
use stdio::{Input, Output};

use crate::abi::Errno;
use crate::guest::{Cursor, Guest, total};

/// Bytes of an unfinished line of errors that are kept.
const MAX_LINE_BYTES: usize = 4096;
/// Bytes that go into a block of output.
const PIECE_BYTES: usize = 16 * 1024;

/// Standard input, output and error.
pub struct Streams {
    input: Option<Input>,
    /// What was received and not read yet, and where that begins.
    received: Option<(ExVec<u8>, usize)>,
    /// `None` in a service, which nobody reads: its lines are shown as those of standard error are.
    output: Option<Output>,
    line: Vec<u8>,
}

impl Streams {
    /// Wraps the endpoints that the program was given.
    pub fn new(input: Option<Input>, output: Option<Output>) -> Streams {
        Streams { input, received: None, output, line: Vec::new() }
    }

    /// Bytes that can be read without waiting.
    pub fn received_bytes(&self) -> usize {
        self.received.as_ref().map_or(0, |(block, from)| block.len() - from)
    }

    /// What to wait for before a read returns without waiting; `None` if it does already.
    pub fn input_pending(&self) -> Option<&dyn Waitable> {
        if self.received_bytes() > 0 { None } else { self.input.as_ref()?.pending() }
    }

    /// What to wait for before a write is taken without waiting; `None` if it is already.
    pub fn output_pending(&self) -> Option<&dyn Waitable> {
        self.output.as_ref()?.pending()
    }

    /// Reads what is there, at least a byte unless the input has ended; returns the number of bytes.
    ///
    /// # Errors
    /// The pipe broke; there is nothing yet and the program does not want to wait.
    pub fn read(&mut self, guest: &mut Guest<'_>, vectors: &[(u32, u32)], is_waiting: bool) -> Result<u32, Errno> {
        if total(vectors) == 0 {
            return Ok(0);
        }
        self.show_line();
        while self.received_bytes() == 0 {
            if !is_waiting
                && self.input_pending().is_some_and(|pending| wait_any(&[pending], Deadline::PASSED).is_none())
            {
                return Err(Errno::AGAIN);
            }
            let Some(input) = &mut self.input else { return Ok(0) };
            match input.block()? {
                Some(block) => self.received = Some((block, 0)),
                None => return Ok(0),
            }
        }
        let Some((block, from)) = &mut self.received else { return Ok(0) };
        let done = Cursor::new(vectors).scatter(guest, &block[*from..])?;
        *from += done;
        if *from == block.len() {
            self.received = None;
        }
        Ok(done as u32)
    }

    /// Writes to standard output; returns the number of bytes.
    ///
    /// # Errors
    /// Nobody reads.
    pub fn write(&mut self, guest: &Guest<'_>, vectors: &[(u32, u32)]) -> Result<u32, Errno> {
        let Some(output) = &mut self.output else { return self.write_error(guest, vectors) };
        for (start, length) in vectors {
            for piece in guest.bytes(*start, *length)?.chunks(PIECE_BYTES) {
                output.write(piece)?;
            }
        }
        output.flush()?;
        Ok(total(vectors))
    }

    /// Writes to standard error, which shows whole lines; returns the number of bytes.
    ///
    /// # Errors
    /// None but a fault.
    pub fn write_error(&mut self, guest: &Guest<'_>, vectors: &[(u32, u32)]) -> Result<u32, Errno> {
        for (start, length) in vectors {
            for piece in guest.bytes(*start, *length)?.split_inclusive(|byte| *byte == b'\n') {
                match piece.strip_suffix(b"\n") {
                    Some(end) if self.line.is_empty() => show(end),
                    Some(end) => {
                        self.line.extend_from_slice(end);
                        self.show_line();
                    }
                    None => self.keep(piece),
                }
            }
        }
        Ok(total(vectors))
    }

    /// Keeps the start of a line; one that is too long is shown in pieces.
    fn keep(&mut self, piece: &[u8]) {
        for part in piece.chunks(MAX_LINE_BYTES) {
            if self.line.len() + part.len() > MAX_LINE_BYTES {
                self.show_line();
            }
            self.line.extend_from_slice(part);
        }
    }

    /// Shows an unfinished line of errors: before the program waits, and at its end.
    pub fn show_line(&mut self) {
        if !self.line.is_empty() {
            show(&self.line);
            self.line.clear();
        }
    }

    /// Ends the streams; returns the exit status.
    pub fn finish(&mut self, status: i32) -> i32 {
        self.show_line();
        self.output.take().map_or(status, |output| output.finish_with(status))
    }
}

fn show(line: &[u8]) {
    stdio::report::error(format_args!("{}", alloc::string::String::from_utf8_lossy(line)));
}
