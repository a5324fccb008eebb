//! Buffered input from a client.
//!
//! An empty buffer holds no memory. Data that arrived in one piece is parsed in place, in the block from the network
//! stack; only data in several pieces is copied.

use alloc::vec::Vec;

use sip::exheap::ExVec;

use crate::wire::{Gone, Read, Wire};

/// Buffer between the connection and its parsers.
#[derive(Default)]
pub(crate) struct Input {
    block: Option<ExVec<u8>>,
    joined: Vec<u8>,
    start: usize,
    end: usize,
}

/// Result of waiting for more input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum More {
    /// More data arrived.
    Data,
    /// Timed out.
    Nothing,
    /// The client has shut down its write half.
    End,
}

impl Input {
    /// Returns the buffered bytes.
    pub(crate) fn bytes(&self) -> &[u8] {
        let all = self.block.as_deref().unwrap_or(&self.joined);
        all.get(self.start..self.end).unwrap_or(&[])
    }

    /// Discards `count` bytes from the front; returns the block that is empty now, if there is one.
    pub(crate) fn consume(&mut self, count: usize) -> Option<ExVec<u8>> {
        self.start = (self.start + count).min(self.end);
        if self.start < self.end {
            return None;
        }
        self.joined = Vec::new();
        self.start = 0;
        self.end = 0;
        self.block.take()
    }

    /// Waits for more data and appends it.
    pub(crate) async fn read(&mut self, wire: &mut Wire, timeout_ms: u32) -> Result<More, Gone> {
        match wire.read(timeout_ms).await? {
            Read::Data(block, count) => {
                self.take_in(block, count);
                Ok(More::Data)
            }
            Read::Nothing => Ok(More::Nothing),
            Read::End => Ok(More::End),
        }
    }

    fn take_in(&mut self, block: ExVec<u8>, count: usize) {
        if self.start == self.end {
            self.joined = Vec::new();
            self.block = Some(block);
            self.start = 0;
            self.end = count;
            return;
        }
        if self.block.is_some() || self.start > 0 {
            self.joined = Vec::from(self.bytes());
            self.block = None;
            self.start = 0;
        }
        self.joined.extend_from_slice(&block[..count]);
        self.end = self.joined.len();
    }
}
