//! Moving bytes between a connection and the blocks of its client.

use alloc::rc::Rc;
use core::cell::{Cell, RefCell};

use sip::device::sockets::{Failure, MAX_KEPT_BYTES, MORE};
use sip::exheap::{ExVec, Lent};

use sip::channel::TypedEndpoint;

use crate::host::Socket;
use provider::waiting::{self, Waited};

/// The smallest block that is read into, and the greatest.
const MIN_BLOCK_BYTES: usize = 1 << 10;
const MAX_BLOCK_BYTES: usize = 64 << 10;

/// A connection as its two channels share it.
pub struct Stream {
    /// The socket.
    pub socket: Socket,
    /// Bytes of the next block to read into.
    block_bytes: Cell<usize>,
    /// A block into which nothing came.
    spare: RefCell<Option<ExVec<u8>>>,
    /// Whether the other end has finished and all was read.
    pub ended: Cell<bool>,
    /// Whether this end has finished.
    pub finished: Cell<bool>,
    /// Why nothing can be read any more, or written.
    read_failure: Cell<Option<Failure>>,
    write_failure: Cell<Option<Failure>>,
}

/// What a read gave.
pub enum Reading {
    /// So many bytes.
    Data(ExVec<u8>, u32),
    /// Nothing in that time.
    Nothing,
    /// No more will come.
    End,
    /// It failed.
    Failed(Failure),
    /// The client has gone.
    Gone,
}

/// How much was written, and how it ended.
pub struct Written {
    /// Bytes that are on their way.
    pub bytes: u32,
    /// How it ended.
    pub end: Writing,
}

/// How a write ended.
pub enum Writing {
    /// All of it was taken.
    Done,
    /// It failed.
    Failed(Failure),
    /// The client has gone.
    Gone,
}

impl Stream {
    /// A connection that stands. Until it is finished, closing it resets it.
    pub fn new(socket: Socket) -> Rc<Stream> {
        socket.reset_when_closed(true);
        Rc::new(Stream {
            socket,
            block_bytes: Cell::new(MIN_BLOCK_BYTES),
            spare: RefCell::new(None),
            ended: Cell::new(false),
            finished: Cell::new(false),
            read_failure: Cell::new(None),
            write_failure: Cell::new(None),
        })
    }

    /// Ends the connection at once.
    pub fn abort(&self) {
        self.read_failure.set(Some(Failure::Closed));
        self.write_failure.set(Some(Failure::Closed));
        self.socket.reset_when_closed(true);
        self.socket.close();
    }

    /// Nothing more is written.
    pub fn finish(&self) -> Result<(), Failure> {
        if let Some(failure) = self.write_failure.get() {
            return Err(failure);
        }
        if !self.finished.get() {
            self.socket.finish()?;
            self.finished.set(true);
            self.socket.reset_when_closed(false);
        }
        Ok(())
    }

    /// Whether the other end, or a host on the way, ended it.
    pub fn was_reset(&self) -> bool {
        let reset = Some(Failure::Reset);
        self.read_failure.get() == reset || self.write_failure.get() == reset
    }

    fn note(failure: Failure, place: &Cell<Option<Failure>>) -> Failure {
        place.set(Some(failure));
        failure
    }

    /// Reads what there is, at most `most` bytes; waits for it on behalf of a client.
    pub async fn read<E: TypedEndpoint>(&self, client: &E, most: u32, timeout_ms: u32) -> Reading {
        if self.ended.get() {
            return Reading::End;
        }
        if let Some(failure) = self.read_failure.get() {
            return Reading::Failed(failure);
        }
        if most == 0 {
            return Reading::Nothing;
        }
        let mut deadline = None;
        loop {
            if !self.socket.would_block_to_read() {
                match self.read_now(most as usize) {
                    Reading::Nothing => {}
                    reading => return reading,
                }
            }
            if timeout_ms == 0 {
                return Reading::Nothing;
            }
            let deadline = *deadline.get_or_insert_with(|| waiting::until(timeout_ms));
            match waiting::wait(client, deadline, self.socket.readable()).await {
                Waited::Done => {}
                Waited::TimedOut => return Reading::Nothing,
                Waited::Gone => return Reading::Gone,
            }
        }
    }

    fn read_now(&self, most: usize) -> Reading {
        let wanted = self.block_bytes.get().min(most);
        let spare = self.spare.take().filter(|block| block.len() == wanted);
        let block = match spare {
            Some(block) => block,
            None => match ExVec::new(wanted) {
                Ok(block) => block,
                // It may be better next time; nothing of the connection is lost.
                Err(_) => return Reading::Failed(Failure::Exhausted),
            },
        };
        match self.socket.read(block) {
            (_, Ok(0)) => {
                self.ended.set(true);
                // What was not sent so far is on its way all the same: both ends have finished then.
                self.socket.reset_when_closed(false);
                Reading::End
            }
            (Some(block), Ok(count)) => {
                self.adapt(count, wanted);
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

    /// A block that was filled is followed by a greater one, one that was hardly used by a smaller one.
    fn adapt(&self, count: usize, room: usize) {
        let bytes = self.block_bytes.get();
        if count == room && room == bytes {
            self.block_bytes.set((bytes * 4).min(MAX_BLOCK_BYTES));
        } else if count < bytes / 4 {
            self.block_bytes.set((bytes / 2).max(MIN_BLOCK_BYTES));
        }
    }

    /// Writes bytes of a block on behalf of a client.
    pub async fn write<E: TypedEndpoint>(&self, client: &E, piece: &mut Piece, timeout_ms: u32) -> Written {
        self.write_after(client, 0, piece, timeout_ms).await
    }

    /// Writes two pieces as one.
    pub async fn write_two<E: TypedEndpoint>(
        &self,
        client: &E,
        head: &mut Piece,
        data: &mut Piece,
        timeout_ms: u32,
    ) -> Written {
        if data.remaining > 0 && head.can_be_kept() && self.may_write().is_ok() {
            match head.keep(&self.socket) {
                Ok(kept) => return self.write_after(client, kept, data, timeout_ms).await,
                // There is no room for anything: the head waits for it, and the data after it.
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

    fn may_write(&self) -> Result<(), Failure> {
        match self.write_failure.get() {
            Some(failure) => Err(failure),
            None if self.finished.get() => Err(Failure::Closed),
            None => Ok(()),
        }
    }

    /// Writes a piece after bytes that the device keeps, which go first.
    async fn write_after<E: TypedEndpoint>(
        &self,
        client: &E,
        mut kept: usize,
        piece: &mut Piece,
        timeout_ms: u32,
    ) -> Written {
        let mut bytes = 0u32;
        while piece.remaining > 0 {
            let sent = self.may_write().and_then(|()| piece.send(&self.socket, 0));
            let failure = match sent {
                Ok(count) => {
                    let of_kept = count.min(kept);
                    kept -= of_kept;
                    piece.advance(count - of_kept);
                    bytes = bytes.saturating_add(count as u32);
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
            if kept > 0 {
                // What the device keeps can be neither taken back nor sent for somebody else.
                self.write_failure.set(Some(failure));
            }
            return Written { bytes, end: Writing::Failed(failure) };
        }
        Written { bytes, end: Writing::Done }
    }
}

/// What is left to write of one block.
pub struct Piece {
    block: Option<Lent<ExVec<u8>>>,
    from: usize,
    remaining: usize,
}

impl Piece {
    /// So many bytes of a block from a place on; what lies outside of it is left out.
    pub fn new(block: Lent<ExVec<u8>>, from: u32, count: u32) -> Piece {
        let from = (from as usize).min(block.len());
        let remaining = (count as usize).min(block.len() - from);
        Piece { block: Some(block), from, remaining }
    }

    /// Whether it is short enough to be kept by the device until more comes.
    fn can_be_kept(&self) -> bool {
        (1..=MAX_KEPT_BYTES).contains(&self.remaining)
    }

    /// Lets the device keep it, to be sent with what comes next.
    fn keep(&mut self, socket: &Socket) -> Result<usize, Failure> {
        self.send(socket, MORE)
    }

    fn send(&mut self, socket: &Socket, flags: u64) -> Result<usize, Failure> {
        let Some(block) = self.block.take() else { return Err(Failure::Other) };
        let address = block.as_ptr() as usize;
        let (block, answer) = socket.write(block, address, self.from..self.from + self.remaining, flags);
        self.block = block;
        answer
    }

    /// So many bytes are gone.
    fn advance(&mut self, count: usize) {
        let count = count.min(self.remaining);
        self.from += count;
        self.remaining -= count;
    }

    /// The block, to be returned.
    pub fn into_block(self) -> Option<Lent<ExVec<u8>>> {
        self.block
    }
}
