//! What a client sent and nobody has looked at yet.
//!
//! While nothing is there, nothing is held. What came in one piece is looked at where it lies, in the block that the
//! stack gave; only what is in several is put together in memory of the server's own.

use alloc::vec::Vec;

use sip::exheap::ExVec;

use crate::wire::{Gone, Read, Wire};

/// Bytes that are asked for at once.
const READ_BYTES: u32 = 64 << 10;

/// Bytes between the connection and who reads them.
#[derive(Default)]
pub(crate) struct Input {
    block: Option<ExVec<u8>>,
    joined: Vec<u8>,
    start: usize,
    end: usize,
}

/// Whether there is more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum More {
    /// There is.
    Data,
    /// Nothing came in time.
    Nothing,
    /// The client has finished.
    End,
}

impl Input {
    /// What is there.
    pub(crate) fn bytes(&self) -> &[u8] {
        let all = self.block.as_deref().unwrap_or(&self.joined);
        all.get(self.start..self.end).unwrap_or(&[])
    }

    /// Bytes at the start are done with.
    pub(crate) fn consume(&mut self, count: usize) {
        self.start = (self.start + count).min(self.end);
        if self.start == self.end {
            self.block = None;
            self.joined = Vec::new();
            self.start = 0;
            self.end = 0;
        }
    }

    /// Waits for more, behind what is there.
    pub(crate) async fn read(&mut self, wire: &mut Wire, timeout_ms: u32) -> Result<More, Gone> {
        match wire.read(READ_BYTES, timeout_ms).await? {
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
