//! Data transfer between a connection and its client's blocks.

use alloc::rc::Rc;
use core::cell::{Cell, RefCell};

use sip::device::sockets::{Failure, MAX_KEPT_BYTES, MORE};
use sip::exheap::ExVec;

use sip::channel::TypedEndpoint;
use sip::executor::Member;

use crate::host::Socket;
use crate::returned::Content;
use provider::waiting::{self, Waited};

/// Minimum and maximum size of a receive block.
const MIN_BLOCK_BYTES: usize = 1 << 10;
const MAX_BLOCK_BYTES: usize = 64 << 10;
/// Maximum size of a block that a connection keeps for its next read after having sent it.
const MAX_SPARE_BYTES: usize = 4 << 10;

/// A connection, shared by its two channels.
pub struct Stream {
    /// The connection's socket.
    pub socket: Socket,
    /// Size of the next receive block, in bytes.
    block_bytes: Cell<usize>,
    /// A receive block kept for reuse. It has nobody's data but the client's.
    spare: RefCell<Option<ExVec<u8>>>,
    /// The peer has shut down its write half and all data was read.
    pub ended: Cell<bool>,
    /// This end has shut down its write half.
    pub finished: Cell<bool>,
    /// The device has bytes that it sends before those of the next write.
    has_kept: Cell<bool>,
    /// Sticky error of reads, and of writes.
    read_failure: Cell<Option<Failure>>,
    write_failure: Cell<Option<Failure>>,
}

/// Result of a read.
pub enum Reading {
    /// A block and the number of bytes in it.
    Data(ExVec<u8>, u32),
    /// Timed out.
    Nothing,
    /// End of the stream.
    End,
    /// The read failed.
    Failed(Failure),
    /// The client is gone.
    Gone,
}

/// Bytes written, and how the write ended.
pub struct Written {
    /// Bytes queued for sending.
    pub bytes: u32,
    /// Outcome of the write.
    pub end: Writing,
}

/// How a write ended.
pub enum Writing {
    /// All bytes were taken.
    Done,
    /// The write failed.
    Failed(Failure),
    /// The client is gone.
    Gone,
}

impl Stream {
    /// Wraps an established connection. Until its write half is shut down, closing it sends a reset.
    pub fn new(socket: Socket) -> Rc<Stream> {
        socket.reset_when_closed(true);
        Rc::new(Stream {
            socket,
            block_bytes: Cell::new(MIN_BLOCK_BYTES),
            spare: RefCell::new(None),
            ended: Cell::new(false),
            finished: Cell::new(false),
            has_kept: Cell::new(false),
            read_failure: Cell::new(None),
            write_failure: Cell::new(None),
        })
    }

    /// Aborts the connection.
    pub fn abort(&self) {
        self.read_failure.set(Some(Failure::Closed));
        self.write_failure.set(Some(Failure::Closed));
        self.socket.reset_when_closed(true);
        self.socket.close();
    }

    /// Shuts down the write half.
    pub fn finish(&self) -> Result<(), Failure> {
        if let Some(failure) = self.write_failure.get() {
            return Err(failure);
        }
        if self.has_kept.get() {
            // Accepted, and never sent.
            return Err(Self::note(Failure::Closed, &self.write_failure));
        }
        if !self.finished.get() {
            self.socket.finish()?;
            self.finished.set(true);
            self.socket.reset_when_closed(false);
        }
        Ok(())
    }

    /// Whether the connection was reset, by the peer or by the network.
    pub fn was_reset(&self) -> bool {
        let reset = Some(Failure::Reset);
        self.read_failure.get() == reset || self.write_failure.get() == reset
    }

    fn note(failure: Failure, place: &Cell<Option<Failure>>) -> Failure {
        place.set(Some(failure));
        failure
    }

    /// Reads available data, at most `most` bytes, waiting for it on behalf of a client; also returns the client's place in
    /// the wait set.
    pub async fn read<E: TypedEndpoint>(&self, client: &E, most: u32, timeout_ms: u32) -> (Reading, Option<Member>) {
        let (mut deadline, mut member) = (None, None);
        loop {
            let reading = self.try_read(most);
            if !matches!(reading, Reading::Nothing) || most == 0 || timeout_ms == 0 {
                return (reading, member);
            }
            let deadline = *deadline.get_or_insert_with(|| waiting::until(timeout_ms));
            drop(member);
            let waited = waiting::wait_as_member(client, deadline, self.socket.readable()).await;
            member = waited.1;
            match waited.0 {
                Waited::Done => {}
                Waited::TimedOut => return (Reading::Nothing, member),
                Waited::Gone => return (Reading::Gone, None),
            }
        }
    }

    fn try_read(&self, most: u32) -> Reading {
        if self.ended.get() {
            return Reading::End;
        }
        if let Some(failure) = self.read_failure.get() {
            return Reading::Failed(failure);
        }
        if most == 0 || self.socket.would_block_to_read() {
            return Reading::Nothing;
        }
        self.read_now(most as usize)
    }

    fn read_now(&self, most: usize) -> Reading {
        let wanted = self.block_bytes.get().min(most);
        let spare = self.spare.take().filter(|block| block.len() >= wanted);
        let block = match spare {
            Some(block) => block,
            None => match ExVec::new(wanted) {
                Ok(block) => block,
                // A later read may succeed; the connection has lost nothing.
                Err(_) => return Reading::Failed(Failure::Exhausted),
            },
        };
        let room = block.len().min(most);
        match self.socket.read(block, room) {
            (_, Ok(0)) => {
                self.ended.set(true);
                // Both ends have shut down, so unsent data still goes out.
                self.socket.reset_when_closed(false);
                Reading::End
            }
            (Some(block), Ok(count)) => {
                self.adapt(count, room);
                Reading::Data(block, count as u32)
            }
            (block, Err(Failure::WouldBlock)) => {
                *self.spare.borrow_mut() = block;
                Reading::Nothing
            }
            (None, Ok(_)) => Reading::Failed(Self::note(Failure::Other, &self.read_failure)),
            (_, Err(failure)) => Reading::Failed(Self::note(failure, &self.read_failure)),
        }
    }

    /// Quadruples the block size after a full read and halves it after one that filled less than a quarter.
    fn adapt(&self, count: usize, room: usize) {
        let bytes = self.block_bytes.get();
        if count == room && room >= bytes {
            self.block_bytes.set((bytes * 4).min(MAX_BLOCK_BYTES));
        } else if count < bytes / 4 {
            self.block_bytes.set((bytes / 2).max(MIN_BLOCK_BYTES));
        }
    }

    /// Keeps a block that was sent for the next read, unless it is long, or idle connections keep no memory.
    pub fn keep_spare(&self, block: ExVec<u8>) {
        if (MIN_BLOCK_BYTES..=MAX_SPARE_BYTES).contains(&block.len()) && !self.socket.is_crowded() {
            *self.spare.borrow_mut() = Some(block);
        }
    }

    /// Whether closing the connection as it is resets it.
    pub fn reset_when_closed(&self, reset: bool) {
        self.socket.reset_when_closed(reset && !self.finished.get() && !self.ended.get());
    }

    /// Writes from a block on behalf of a client.
    pub async fn write<E: TypedEndpoint>(
        &self,
        client: &E,
        piece: &mut Piece<impl Content>,
        timeout_ms: u32,
    ) -> Written {
        self.write_after(client, 0, piece, timeout_ms).await
    }

    /// Writes two pieces as one.
    pub async fn write_two<E: TypedEndpoint>(
        &self,
        client: &E,
        head: &mut Piece<impl Content>,
        data: &mut Piece<impl Content>,
        timeout_ms: u32,
    ) -> Written {
        if data.remaining > 0 && head.can_be_kept() && self.may_write().is_ok() {
            match self.keep(head) {
                Ok(kept) => return self.write_after(client, kept, data, timeout_ms).await,
                // The send buffer is full: the head waits for space, and the data after it.
                Err(Failure::WouldBlock) => {}
                Err(failure) => return Written { bytes: 0, end: Writing::Failed(failure) },
            }
        }
        let first = self.write_after(client, 0, head, timeout_ms).await;
        if !matches!(first.end, Writing::Done) {
            return first;
        }
        let second = self.write_after(client, 0, data, timeout_ms).await;
        Written { bytes: first.bytes.saturating_add(second.bytes), end: second.end }
    }

    /// Sends from a piece what there is room for, without waiting; returns the number of bytes.
    pub fn send(&self, piece: &mut Piece<impl Content>) -> usize {
        let mut sent = 0;
        while piece.remaining > 0 {
            match self.may_write().and_then(|()| piece.send(&self.socket, 0)) {
                Ok(count) => {
                    self.has_kept.set(false);
                    piece.advance(count);
                    sent += count;
                }
                Err(Failure::WouldBlock) => break,
                Err(failure) => {
                    Self::note(failure, &self.write_failure);
                    break;
                }
            }
        }
        sent
    }

    /// As [`Stream::send`], for two pieces as one.
    pub fn send_two(&self, head: &mut Piece<impl Content>, data: &mut Piece<impl Content>) -> usize {
        let kept = if data.remaining > 0 && head.can_be_kept() && self.may_write().is_ok() {
            self.keep(head).unwrap_or(0)
        } else {
            0
        };
        let first = kept + self.send(head);
        if head.remaining > 0 { first } else { first + self.send(data) }
    }

    /// Lets the device buffer a piece, to be sent before the next write.
    fn keep(&self, piece: &mut Piece<impl Content>) -> Result<usize, Failure> {
        let kept = piece.send(&self.socket, MORE)?;
        piece.advance(kept);
        self.has_kept.set(true);
        Ok(kept)
    }

    fn may_write(&self) -> Result<(), Failure> {
        match self.write_failure.get() {
            Some(failure) => Err(failure),
            None if self.finished.get() => Err(Failure::Closed),
            None => Ok(()),
        }
    }

    /// Writes a piece after bytes buffered by the device, which go first.
    async fn write_after<E: TypedEndpoint>(
        &self,
        client: &E,
        mut kept: usize,
        piece: &mut Piece<impl Content>,
        timeout_ms: u32,
    ) -> Written {
        let mut bytes = 0u32;
        while piece.remaining > 0 {
            let sent = self.may_write().and_then(|()| piece.send(&self.socket, 0));
            let failure = match sent {
                Ok(count) => {
                    self.has_kept.set(false);
                    piece.advance(count);
                    bytes = bytes.saturating_add((kept + count) as u32);
                    kept = 0;
                    continue;
                }
                Err(Failure::WouldBlock) => {
                    let deadline = waiting::until_or_never(timeout_ms);
                    match waiting::wait(client, deadline, self.socket.writable()).await {
                        Waited::Done => continue,
                        Waited::TimedOut => Failure::TimedOut,
                        Waited::Gone => return Written { bytes, end: Writing::Gone },
                    }
                }
                Err(failure) => Self::note(failure, &self.write_failure),
            };
            if self.has_kept.get() {
                // Data buffered by the device can be neither taken back nor sent on behalf of another.
                self.write_failure.set(Some(failure));
            }
            return Written { bytes, end: Writing::Failed(failure) };
        }
        Written { bytes, end: Writing::Done }
    }
}

/// The unwritten rest of a block.
pub struct Piece<C> {
    block: Option<C>,
    from: usize,
    remaining: usize,
}

impl<C: Content> Piece<C> {
    /// A range of `count` bytes of a block from an offset, clamped to the block.
    pub fn new(block: C, from: u32, count: u32) -> Piece<C> {
        let from = (from as usize).min(block.bytes());
        let remaining = (count as usize).min(block.bytes() - from);
        Piece { block: Some(block), from, remaining }
    }

    /// Whether it is short enough for the device to buffer until more follows.
    fn can_be_kept(&self) -> bool {
        (1..=MAX_KEPT_BYTES).contains(&self.remaining)
    }

    fn send(&mut self, socket: &Socket, flags: u64) -> Result<usize, Failure> {
        let Some(block) = self.block.take() else { return Err(Failure::Other) };
        let (block, answer) = socket.write(block, self.from..self.from + self.remaining, flags);
        self.block = block;
        answer
    }

    /// Advances past bytes that were written.
    fn advance(&mut self, count: usize) {
        let count = count.min(self.remaining);
        self.from += count;
        self.remaining -= count;
    }

    /// Whether all of it was written.
    pub fn is_done(&self) -> bool {
        self.remaining == 0
    }

    /// Returns the block.
    pub fn into_block(self) -> Option<C> {
        self.block
    }
}
