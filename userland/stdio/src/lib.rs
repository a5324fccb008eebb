//! Standard output and input: the `Pipe` contract as a buffered writer and a reader.
//!
//! Key types: [`Output`], [`Input`]. One block is in flight while the program fills the next one; only the block after
//! that waits for the reader. [`report`] has standard error. Deliberately not here: the pipe's other end.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod report;

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use contracts::pipe::{self, PipeError};
use sip::Status;
use sip::exheap::ExVec;
use sip::select::Waitable;

/// Bytes buffered before they are sent as a block.
const GATHER_BYTES: usize = 16 * 1024;

/// Error of a pipe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PipeBroken {
    /// The peer ended without an end of data.
    Closed,
    /// The reader refused the data.
    Refused(PipeError),
    /// The kernel refused a block.
    System(Status),
}

impl fmt::Display for PipeBroken {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PipeBroken::Closed => formatter.write_str("broken pipe"),
            PipeBroken::Refused(PipeError::Exhausted) => formatter.write_str("the reader of the pipe is out of memory"),
            PipeBroken::Refused(PipeError::DeviceError) => formatter.write_str("the device behind the pipe failed"),
            PipeBroken::Refused(PipeError::NotPermitted) => formatter.write_str("the reader of the pipe denies access"),
            PipeBroken::System(status) => write!(formatter, "the kernel refused a block: {}", status.text()),
        }
    }
}

enum Writer {
    Ready(pipe::Imp<pipe::states::Ready>),
    Waiting(pipe::Imp<pipe::states::ReadyAfterWrite>),
    Broken(PipeBroken),
}

/// Standard output. Buffered data is lost when it is dropped without [`finish`](Output::finish).
pub struct Output {
    writer: Writer,
    gathered: Vec<u8>,
}

impl Output {
    /// Wraps the endpoint that the program was given.
    pub fn new(endpoint: pipe::Imp<pipe::states::Ready>) -> Output {
        Output { writer: Writer::Ready(endpoint), gathered: Vec::new() }
    }

    /// Buffers bytes, and sends full blocks.
    pub fn write(&mut self, bytes: &[u8]) -> Result<(), PipeBroken> {
        self.gathered.extend_from_slice(bytes);
        if self.gathered.len() >= GATHER_BYTES { self.flush() } else { Ok(()) }
    }

    /// Sends a block without copying it, after the data written before.
    pub fn write_block(&mut self, block: ExVec<u8>) -> Result<(), PipeBroken> {
        self.flush()?;
        self.send(block)
    }

    /// What to wait for before the next block can be sent without waiting; `None` if it can be.
    pub fn pending(&self) -> Option<&dyn Waitable> {
        match &self.writer {
            Writer::Waiting(endpoint) => Some(endpoint),
            Writer::Ready(_) | Writer::Broken(_) => None,
        }
    }

    /// Sends buffered data.
    pub fn flush(&mut self) -> Result<(), PipeBroken> {
        if self.gathered.is_empty() {
            return Ok(());
        }
        let block = ExVec::from_slice(&self.gathered).map_err(PipeBroken::System)?;
        self.gathered.clear();
        self.send(block)
    }

    /// Sends the rest, and the end of data.
    pub fn finish(mut self) -> Result<(), PipeBroken> {
        self.flush()?;
        match self.ready()?.end().receive() {
            pipe::ImpReadyAfterEnd::Ended { .. } => Ok(()),
            pipe::ImpReadyAfterEnd::ChannelClosed(_) => Err(PipeBroken::Closed),
        }
    }

    /// [`finish`](Output::finish) for the end of a program: returns `status`, or 1 if output was cut off. A reader that
    /// ended first has read enough (`... | head`), so that is not reported.
    pub fn finish_with(self, status: i32) -> i32 {
        match self.finish() {
            Ok(()) => status,
            Err(_) => status.max(1),
        }
    }

    fn send(&mut self, block: ExVec<u8>) -> Result<(), PipeBroken> {
        let endpoint = self.ready()?;
        self.writer = Writer::Waiting(endpoint.write(block));
        Ok(())
    }

    /// Returns the endpoint once the reader has taken the previous block. The writer counts as closed until it gets a
    /// new state.
    fn ready(&mut self) -> Result<pipe::Imp<pipe::states::Ready>, PipeBroken> {
        let broken = match core::mem::replace(&mut self.writer, Writer::Broken(PipeBroken::Closed)) {
            Writer::Ready(endpoint) => return Ok(endpoint),
            Writer::Waiting(endpoint) => match endpoint.receive() {
                pipe::ImpReadyAfterWrite::Accepted { next } => return Ok(next),
                pipe::ImpReadyAfterWrite::Failed { error, .. } => PipeBroken::Refused(error),
                pipe::ImpReadyAfterWrite::ChannelClosed(_) => PipeBroken::Closed,
            },
            Writer::Broken(broken) => broken,
        };
        self.writer = Writer::Broken(broken);
        Err(broken)
    }
}

impl fmt::Write for Output {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.write(text.as_bytes()).map_err(|_| fmt::Error)
    }
}

/// Standard input.
pub struct Input {
    endpoint: Option<pipe::Exp<pipe::states::Ready>>,
    pending: Vec<u8>,
    ended: bool,
}

impl Input {
    /// Wraps the endpoint that the program was given.
    pub fn new(endpoint: pipe::Exp<pipe::states::Ready>) -> Input {
        Input { endpoint: Some(endpoint), pending: Vec::new(), ended: false }
    }

    /// What to wait for before [`block`](Input::block) returns without waiting; `None` at the end.
    pub fn pending(&self) -> Option<&dyn Waitable> {
        self.endpoint.as_ref().map(|endpoint| endpoint as &dyn Waitable)
    }

    /// Returns the next block as it was written, or `None` at the end. Do not mix with [`line`](Input::line).
    pub fn block(&mut self) -> Result<Option<ExVec<u8>>, PipeBroken> {
        let Some(endpoint) = self.endpoint.take() else {
            return if self.ended { Ok(None) } else { Err(PipeBroken::Closed) };
        };
        match endpoint.receive() {
            pipe::ExpReady::Write { data, next } => {
                self.endpoint = Some(next.accepted());
                Ok(Some(data))
            }
            pipe::ExpReady::End { next } => {
                let _ended = next.ended();
                self.ended = true;
                Ok(None)
            }
            pipe::ExpReady::ChannelClosed(_) => Err(PipeBroken::Closed),
        }
    }

    /// Returns the next line without its terminator, or `None` at the end.
    pub fn line(&mut self) -> Result<Option<String>, PipeBroken> {
        loop {
            if let Some(end) = self.pending.iter().position(|&byte| byte == b'\n') {
                let rest = self.pending.split_off(end + 1);
                let line = core::mem::replace(&mut self.pending, rest);
                return Ok(Some(String::from_utf8_lossy(&line[..end]).into_owned()));
            }
            match self.block()? {
                Some(block) => self.pending.extend_from_slice(&block),
                None if self.pending.is_empty() => return Ok(None),
                None => {
                    let line = core::mem::take(&mut self.pending);
                    return Ok(Some(String::from_utf8_lossy(&line).into_owned()));
                }
            }
        }
    }
}

/// An open pipe: the writer's end and the reader's.
pub type OpenPipe = (pipe::Imp<pipe::states::Ready>, pipe::Exp<pipe::states::Ready>);

/// Creates an open pipe.
pub fn new_pipe() -> Result<OpenPipe, Status> {
    let (importer, exporter) = pipe::new_channel()?;
    let exporter = exporter.success();
    match importer.receive() {
        pipe::ImpStart::Success { next } => Ok((next, exporter)),
        // Unreachable: this function holds the other end and has sent Success.
        pipe::ImpStart::Refused { .. } | pipe::ImpStart::ChannelClosed(_) => Err(Status::Closed),
    }
}
