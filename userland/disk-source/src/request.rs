//! One attempt at a request to the driver, on a channel of its own.

use client::answer::{DISK_LIMIT, within};
use contracts::disk::{self, DiskError};
use sip::channel::Closed;
use sip::exheap::{ExVec, Lendable};

use crate::{Acquired, Channels};

/// Direction of a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the disk into the block.
    Read,
    /// From the block to the disk.
    Write,
}

/// Outcome of a transfer attempt.
pub enum Answer {
    /// The driver answered.
    Done(ExVec<u8>, Result<(), DiskError>),
    /// The driver ended; the block came back, if its owner is still alive.
    Ended(Option<ExVec<u8>>),
    /// No answer within [`DISK_LIMIT`]; the driver still has the block.
    NoAnswer,
}

/// Outcome of a flush attempt.
pub enum Flushed {
    /// The driver answered.
    Done(Result<(), DiskError>),
    /// The driver ended.
    Ended,
    /// No answer within [`DISK_LIMIT`].
    NoAnswer,
}

impl Channels {
    /// Transfers `count` bytes between the disk, at `offset`, and the start of the block.
    pub async fn transfer(
        &self,
        Acquired { channel, opening }: Acquired,
        direction: Direction,
        offset: u64,
        block: impl Lendable<ExVec<u8>>,
        count: u32,
    ) -> Answer {
        use disk::{ImpReadyAfterRead as Read, ImpReadyAfterWrite as Write};
        let (block, result, next) = match direction {
            Direction::Read => match within(DISK_LIMIT, channel.read(block, offset, count).receive_async()).await {
                Some(Read::ReadDone { data, next }) => (data, Ok(()), next),
                Some(Read::ReadFailed { data, error, next }) => (data, Err(error), next),
                Some(Read::ChannelClosed(closed)) => return self.ended(closed, opening),
                None => return self.unanswered(opening),
            },
            Direction::Write => match within(DISK_LIMIT, channel.write(block, offset, count).receive_async()).await {
                Some(Write::WriteDone { data, next }) => (data, Ok(()), next),
                Some(Write::WriteFailed { data, error, next }) => (data, Err(error), next),
                Some(Write::ChannelClosed(closed)) => return self.ended(closed, opening),
                None => return self.unanswered(opening),
            },
        };
        self.release(next, opening);
        Answer::Done(block, result)
    }

    /// Makes earlier writes durable.
    pub async fn flush(&self, Acquired { channel, opening }: Acquired) -> Flushed {
        let (result, next) = match within(DISK_LIMIT, channel.flush().receive_async()).await {
            Some(disk::ImpReadyAfterFlush::Flushed { next }) => (Ok(()), next),
            Some(disk::ImpReadyAfterFlush::FlushFailed { error, next }) => (Err(error), next),
            Some(disk::ImpReadyAfterFlush::ChannelClosed(_)) => {
                self.lose(opening);
                return Flushed::Ended;
            }
            None => {
                self.stalls(opening);
                return Flushed::NoAnswer;
            }
        };
        self.release(next, opening);
        Flushed::Done(result)
    }

    fn ended(&self, mut closed: Closed, opening: u64) -> Answer {
        self.lose(opening);
        Answer::Ended(closed.take_home().into_iter().find_map(|block| block.into_vec::<u8>().ok()))
    }

    fn unanswered(&self, opening: u64) -> Answer {
        self.stalls(opening);
        Answer::NoAnswer
    }
}
