//! A message in the thread's buffer, outgoing or received.
//!
//! Both types refer to the one buffer of the thread, which any ABI call may overwrite. So each goes through its [use of
//! the buffer](BufferUse), which panics if the buffer has been used for something else meanwhile; neither can leave its
//! thread. The counts (scalar words, blocks, endpoints) travel with the tag, and the kernel refuses counts that the
//! contract does not have: so safe code cannot pass a number off as a block, whatever its view of a contract.

use core::marker::PhantomData;

use abi::{Status, limits};

use super::{AnyEndpoint, Contract, RawEndpoint, TypedEndpoint, refused, unexpected};
use crate::exheap::sealed::Loan as _;
use crate::exheap::{Block, ExBlock, Lendable, Lent};
use crate::raw;
use crate::thread_block::{self, BufferUse};

/// A value that lies inline in a message, one word per scalar.
pub trait Inline: Copy {
    /// Appends its words.
    fn put(self, outgoing: Outgoing) -> Outgoing;
    /// Takes its words. Words out of range map to some valid value.
    fn take(incoming: &mut Incoming) -> Self;
}

macro_rules! inline_numbers {
    ($($type:ty as $unsigned:ty),*) => {$(
        impl Inline for $type {
            #[inline(always)]
            fn put(self, outgoing: Outgoing) -> Outgoing {
                outgoing.word(self as $unsigned as u64)
            }
            #[inline(always)]
            fn take(incoming: &mut Incoming) -> $type {
                incoming.word() as $type
            }
        }
    )*};
}

inline_numbers!(u8 as u8, u16 as u16, u32 as u32, u64 as u64, i8 as u8, i16 as u16, i32 as u32, i64 as u64);

impl Inline for bool {
    #[inline(always)]
    fn put(self, outgoing: Outgoing) -> Outgoing {
        outgoing.word(u64::from(self))
    }
    #[inline(always)]
    fn take(incoming: &mut Incoming) -> bool {
        incoming.word() != 0
    }
}

impl Inline for char {
    #[inline(always)]
    fn put(self, outgoing: Outgoing) -> Outgoing {
        outgoing.word(u64::from(u32::from(self)))
    }
    #[inline(always)]
    fn take(incoming: &mut Incoming) -> char {
        let code = u32::try_from(incoming.word()).unwrap_or(u32::MAX);
        char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER)
    }
}

/// A message being written: scalars first, then blocks, then endpoints. Blocks and endpoints put into a message that is
/// not sent stay with the process until it ends.
///
/// It is bound to the thread whose buffer it uses:
///
/// ```compile_fail,E0277
/// fn moved<T: Send>() {}
/// moved::<sip::channel::Outgoing>();
/// ```
#[must_use = "a message that is not sent loses what was put into it"]
pub struct Outgoing {
    buffer: BufferUse,
    scalars: u16,
    blocks: u8,
    endpoints: u8,
    thread: PhantomData<*mut ()>,
}

impl Default for Outgoing {
    fn default() -> Outgoing {
        Outgoing::new()
    }
}

impl Outgoing {
    /// An empty message.
    #[inline(always)]
    pub fn new() -> Outgoing {
        Outgoing { buffer: BufferUse::begin(), scalars: 0, blocks: 0, endpoints: 0, thread: PhantomData }
    }

    /// Appends a scalar word.
    #[inline(always)]
    pub fn word(mut self, word: u64) -> Outgoing {
        if self.blocks != 0 || self.endpoints != 0 {
            out_of_order();
        }
        self.put(word);
        self.scalars += 1;
        self
    }

    /// Appends an inline value.
    #[inline(always)]
    pub fn value<T: Inline>(self, value: T) -> Outgoing {
        value.put(self)
    }

    /// Appends a fixed array, one value at a time.
    #[inline(always)]
    pub fn array<T: Inline, const N: usize>(self, values: [T; N]) -> Outgoing {
        values.into_iter().fold(self, |outgoing, value| value.put(outgoing))
    }

    /// Appends bytes, eight per word, little-endian, the last word padded with zeroes.
    #[inline(always)]
    pub fn bytes<const N: usize>(self, bytes: [u8; N]) -> Outgoing {
        bytes.chunks(8).fold(self, |outgoing, chunk| {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            outgoing.word(u64::from_le_bytes(word))
        })
    }

    /// Appends a block; ownership moves to the receiver.
    #[inline(always)]
    pub fn block<B: Block>(self, block: B) -> Outgoing {
        self.put_block(block.into_block())
    }

    /// Appends a block that is lent: it returns when the peer sends it back or ends.
    #[inline(always)]
    pub fn lend<B: Block>(self, block: impl Lendable<B>) -> Outgoing {
        self.put_block(block.into_loan())
    }

    /// Appends a borrowed block, which returns to its owner.
    #[inline(always)]
    pub fn give_back<B: Block>(self, block: Lent<B>) -> Outgoing {
        self.put_block(block.into_loan())
    }

    /// Appends an endpoint; ownership moves to the receiver.
    #[inline(always)]
    pub fn endpoint<E: TypedEndpoint>(self, endpoint: E) -> Outgoing {
        self.put_endpoint(endpoint.into_raw())
    }

    /// Appends an endpoint of any contract; ownership moves to the receiver.
    #[inline(always)]
    pub fn any_endpoint(self, endpoint: AnyEndpoint) -> Outgoing {
        self.put_endpoint(endpoint.into_raw())
    }

    /// Sends the message and returns the endpoint for its next state. Panics if the kernel refuses it.
    #[inline(always)]
    pub fn send(self, endpoint: RawEndpoint, tag: u64) -> RawEndpoint {
        self.buffer.check();
        let message = abi::message_word(tag as u16, self.scalars, self.blocks, self.endpoints);
        // SAFETY: the buffer holds as many block handles as `message` says, each of a block that was
        // consumed by `put_block`; the check shows that nothing else has written to it since.
        let answer = unsafe { raw::channel_send(endpoint.handle(), message) };
        if answer.status != Status::Ok as u64 {
            refused(Status::from_number(answer.status));
        }
        endpoint
    }

    #[inline(always)]
    fn put(&mut self, word: u64) {
        let position = self.scalars as usize
            + self.blocks as usize * limits::BLOCK_WORDS
            + self.endpoints as usize * limits::ENDPOINT_WORDS;
        if position >= limits::MESSAGE_WORDS {
            too_long();
        }
        self.buffer.set_word(position, word);
    }

    #[inline(always)]
    fn put_block(mut self, block: ExBlock) -> Outgoing {
        if self.endpoints != 0 {
            out_of_order();
        }
        self.put(block.handle());
        self.blocks += 1;
        block.forget();
        self
    }

    #[inline(always)]
    fn put_endpoint(mut self, endpoint: RawEndpoint) -> Outgoing {
        self.put(endpoint.handle());
        self.endpoints += 1;
        endpoint.forget();
        self
    }
}

/// A received message that still lies in the buffer. Dropping it frees the blocks and closes the endpoints not taken.
pub struct Incoming {
    buffer: BufferUse,
    message: u64,
    next_scalar: usize,
    next_block: usize,
    next_endpoint: usize,
    thread: PhantomData<*mut ()>,
}

impl Incoming {
    /// # Safety
    ///
    /// `message` is the kernel's answer to a receive on this thread, nothing has written to the buffer since, and
    /// no other `Incoming` is made from that answer.
    #[inline(always)]
    pub(super) unsafe fn received(message: u64) -> Incoming {
        Incoming {
            buffer: BufferUse::current(),
            message,
            next_scalar: 0,
            next_block: 0,
            next_endpoint: 0,
            thread: PhantomData,
        }
    }

    /// Returns the message's position in the contract.
    #[inline(always)]
    pub fn tag(&self) -> u64 {
        self.message & 0xffff
    }

    /// Takes the next scalar word.
    #[inline(always)]
    pub fn word(&mut self) -> u64 {
        if self.next_scalar >= self.scalars() {
            unexpected(self.tag());
        }
        let word = self.buffer.word(self.next_scalar);
        self.next_scalar += 1;
        word
    }

    /// Takes an inline value.
    #[inline(always)]
    pub fn value<T: Inline>(&mut self) -> T {
        T::take(self)
    }

    /// Takes a fixed array, one value at a time.
    #[inline(always)]
    pub fn array<T: Inline, const N: usize>(&mut self) -> [T; N] {
        core::array::from_fn(|_| T::take(self))
    }

    /// Takes bytes, eight per word, little-endian.
    #[inline(always)]
    pub fn bytes<const N: usize>(&mut self) -> [u8; N] {
        let mut bytes = [0; N];
        for chunk in bytes.chunks_mut(8) {
            let word = self.word().to_le_bytes();
            chunk.copy_from_slice(&word[..chunk.len()]);
        }
        bytes
    }

    /// Takes the next block, moved here or returned from a loan.
    #[inline(always)]
    pub fn block<B: Block>(&mut self) -> B {
        self.take_block::<B>()
    }

    /// Takes the next block, on loan from the sender.
    #[inline(always)]
    pub fn lent<B: Block>(&mut self) -> Lent<B> {
        Lent::new(self.take_block::<B>())
    }

    /// Takes the next endpoint. The kernel has checked its contract, side and state.
    #[inline(always)]
    pub fn endpoint<E: TypedEndpoint>(&mut self) -> E {
        E::Contract::keep_record();
        E::from_raw(self.take_endpoint())
    }

    /// Takes the next endpoint, whose contract is checked at run time.
    #[inline(always)]
    pub fn any_endpoint(&mut self) -> AnyEndpoint {
        AnyEndpoint::from_raw(self.take_endpoint())
    }

    fn take_block<B: Block>(&mut self) -> B {
        match B::from_block(self.take_raw_block()) {
            Ok(block) => block,
            Err(short) => self.lengthened(short),
        }
    }

    #[inline(always)]
    fn take_raw_block(&mut self) -> ExBlock {
        if self.next_block >= self.blocks() {
            unexpected(self.tag());
        }
        self.buffer.check();
        let position = self.scalars() + self.next_block * limits::BLOCK_WORDS;
        if position + limits::BLOCK_WORDS > limits::MESSAGE_WORDS {
            unexpected(self.tag());
        }
        self.next_block += 1;
        // SAFETY: by the kernel's answer the message has a block here, which this process now owns; the check shows
        // that nothing else has written to the buffer; incrementing `next_block` makes sure that it is taken once.
        unsafe { ExBlock::from_message(position) }
    }

    #[inline(always)]
    fn take_endpoint(&mut self) -> RawEndpoint {
        if self.next_endpoint >= self.endpoints() {
            unexpected(self.tag());
        }
        let position = self.scalars() + self.blocks() * limits::BLOCK_WORDS + self.next_endpoint;
        if position >= limits::MESSAGE_WORDS {
            unexpected(self.tag());
        }
        self.next_endpoint += 1;
        RawEndpoint::from_handle(self.buffer.word(position))
    }

    /// Extends a block that is too short for one element, with zeroes: a peer may send one, and that must not end this
    /// process.
    #[cold]
    fn lengthened<B: Block>(&mut self, short: ExBlock) -> B {
        let words: [u64; limits::MESSAGE_WORDS] = core::array::from_fn(thread_block::message_word);
        let whole = B::lengthened(short);
        thread_block::put_words(&words);
        self.buffer = BufferUse::current();
        match whole {
            Ok(block) => block,
            Err(status) => refused(status),
        }
    }

    /// Number of its scalar words.
    #[inline(always)]
    pub fn scalars(&self) -> usize {
        (self.message >> 16) as u16 as usize
    }

    /// Number of its blocks, taken or not.
    #[inline(always)]
    pub fn blocks(&self) -> usize {
        (self.message >> 32) as u8 as usize
    }

    /// Number of its endpoints, taken or not.
    #[inline(always)]
    pub fn endpoints(&self) -> usize {
        (self.message >> 40) as u8 as usize
    }
}

impl Drop for Incoming {
    #[inline(always)]
    fn drop(&mut self) {
        if self.next_block < self.blocks() || self.next_endpoint < self.endpoints() {
            // By value, so that the common case keeps everything in registers.
            drop_rest(self.buffer, self.message, self.next_block, self.next_endpoint);
        }
    }
}

/// Frees the blocks and closes the endpoints not taken, unless the buffer has been overwritten: then they stay with
/// the process until it ends.
#[cold]
fn drop_rest(buffer: BufferUse, message: u64, next_block: usize, next_endpoint: usize) {
    let mut blocks: [Option<ExBlock>; limits::MESSAGE_WORDS / limits::BLOCK_WORDS] = Default::default();
    let mut endpoints: [Option<RawEndpoint>; limits::MESSAGE_WORDS] = [const { None }; limits::MESSAGE_WORDS];
    if buffer != BufferUse::current() {
        return;
    }
    let mut rest = Incoming { buffer, message, next_scalar: 0, next_block, next_endpoint, thread: PhantomData };
    // All are taken before any is dropped, because dropping uses the buffer.
    for slot in blocks.iter_mut() {
        if rest.next_block < rest.blocks() {
            *slot = Some(rest.take_raw_block());
        }
    }
    for slot in endpoints.iter_mut() {
        if rest.next_endpoint < rest.endpoints() {
            *slot = Some(rest.take_endpoint());
        }
    }
}

#[cold]
fn out_of_order() -> ! {
    panic!("a message is written in the order scalars, blocks, endpoints")
}

#[cold]
fn too_long() -> ! {
    panic!("the message does not fit the message buffer")
}
