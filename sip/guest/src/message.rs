//! Messages as words: numbers, then blocks, then endpoints, the latter two as handles.

use alloc::boxed::Box;

use abi::limits::MESSAGE_WORDS;

use crate::channel::{AnyEndpoint, RawEndpoint, TypedEndpoint, refused, unexpected};
use crate::exheap::{Block, ExBlock, Lendable, Lent};
use crate::imports::{self, RECEIVED_WORDS};

/// A value that travels in the words of a message.
pub trait Inline: Copy {
    /// Appends the value.
    fn put(self, outgoing: Outgoing) -> Outgoing;
    /// Takes a value.
    fn take(incoming: &mut Incoming) -> Self;
}

macro_rules! inline_numbers {
    ($($type:ty as $bits:ty),* $(,)?) => {$(
        impl Inline for $type {
            fn put(self, outgoing: Outgoing) -> Outgoing {
                // A signed number is a bit pattern of its own width.
                outgoing.word(self as $bits as u64)
            }
            fn take(incoming: &mut Incoming) -> $type {
                incoming.word() as $type
            }
        }
    )*};
}

inline_numbers!(u8 as u8, u16 as u16, u32 as u32, u64 as u64, i8 as u8, i16 as u16, i32 as u32, i64 as u64);

impl Inline for bool {
    fn put(self, outgoing: Outgoing) -> Outgoing {
        outgoing.word(self.into())
    }
    fn take(incoming: &mut Incoming) -> bool {
        incoming.word() != 0
    }
}

impl Inline for char {
    fn put(self, outgoing: Outgoing) -> Outgoing {
        outgoing.word(u32::from(self).into())
    }
    fn take(incoming: &mut Incoming) -> char {
        let code = u32::try_from(incoming.word()).unwrap_or(u32::MAX);
        char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER)
    }
}

/// A message being written: scalars first, then blocks, then endpoints.
#[must_use = "a message that is not sent loses what was put into it"]
pub struct Outgoing {
    words: [u64; MESSAGE_WORDS],
    count: usize,
    blocks: u32,
    endpoints: u32,
}

impl Default for Outgoing {
    fn default() -> Outgoing {
        Outgoing::new()
    }
}

impl Outgoing {
    /// An empty message.
    pub fn new() -> Outgoing {
        Outgoing { words: [0; MESSAGE_WORDS], count: 0, blocks: 0, endpoints: 0 }
    }

    /// Appends a scalar word.
    pub fn word(mut self, word: u64) -> Outgoing {
        assert!(
            self.blocks == 0 && self.endpoints == 0,
            "a message has its numbers first, then blocks, then endpoints"
        );
        self.put(word);
        self
    }

    /// Appends an inline value.
    pub fn value<T: Inline>(self, value: T) -> Outgoing {
        value.put(self)
    }

    /// Appends a fixed array, one value at a time.
    pub fn array<T: Inline, const N: usize>(self, values: [T; N]) -> Outgoing {
        values.into_iter().fold(self, |outgoing, value| value.put(outgoing))
    }

    /// Appends bytes, eight per word, little-endian, the last word padded with zeroes.
    pub fn bytes<const N: usize>(self, bytes: [u8; N]) -> Outgoing {
        bytes.chunks(8).fold(self, |outgoing, chunk| {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            outgoing.word(u64::from_le_bytes(word))
        })
    }

    /// Appends a block; ownership moves to the receiver.
    pub fn block<B: Block>(self, block: B) -> Outgoing {
        self.put_block(block.into_block())
    }

    /// Appends a block that is lent: it returns when the peer sends it back or ends.
    pub fn lend<B: Block>(self, block: impl Lendable<B>) -> Outgoing {
        self.put_block(block.into_loan())
    }

    /// Appends a borrowed block, which returns to its owner.
    pub fn give_back<B: Block>(self, block: Lent<B>) -> Outgoing {
        self.lend(block)
    }

    /// Appends an endpoint; ownership moves to the receiver.
    pub fn endpoint<E: TypedEndpoint>(self, endpoint: E) -> Outgoing {
        self.put_endpoint(endpoint.into_raw())
    }

    /// Appends an endpoint of any contract; ownership moves to the receiver.
    pub fn any_endpoint(self, endpoint: AnyEndpoint) -> Outgoing {
        self.put_endpoint(endpoint.into_raw())
    }

    /// Sends the message and returns the endpoint for its next state. Panics if the host refuses it; the kernel ends a
    /// program that breaks the contract.
    pub fn send(self, endpoint: RawEndpoint, tag: u64) -> RawEndpoint {
        let words = &self.words[..self.count];
        match imports::send(endpoint.handle(), tag as u16, words, self.blocks, self.endpoints) {
            Ok(()) => endpoint,
            Err(status) => refused(status),
        }
    }

    fn put(&mut self, word: u64) {
        self.words[self.count] = word;
        self.count += 1;
    }

    fn put_block(mut self, block: ExBlock) -> Outgoing {
        assert!(self.endpoints == 0, "a message has its blocks in front of its endpoints");
        self.put(block.into_handle());
        self.blocks += 1;
        self
    }

    fn put_endpoint(mut self, endpoint: RawEndpoint) -> Outgoing {
        self.put(endpoint.into_handle());
        self.endpoints += 1;
        self
    }
}

/// A received message. Dropping it frees the blocks and closes the endpoints not taken.
pub struct Incoming {
    words: Box<[u64; RECEIVED_WORDS]>,
    scalars: core::ops::Range<usize>,
    /// Of each, its handle and its length.
    blocks: core::ops::Range<usize>,
    endpoints: core::ops::Range<usize>,
}

/// Words of a block.
const BLOCK_WORDS: usize = 2;

impl Incoming {
    pub(crate) fn new(words: Box<[u64; RECEIVED_WORDS]>) -> Incoming {
        let (scalars, blocks) = ((words[0] >> 16) as u16 as usize, (words[0] >> 32) as u8 as usize);
        let endpoints = (words[0] >> 40) as u8 as usize;
        let scalars = 1..1 + scalars;
        let blocks = scalars.end..scalars.end + blocks * BLOCK_WORDS;
        let endpoints = blocks.end..blocks.end + endpoints;
        Incoming { words, scalars, blocks, endpoints }
    }

    /// Returns the message's position in the contract.
    pub fn tag(&self) -> u64 {
        self.words[0] & 0xffff
    }

    /// Takes the next scalar word.
    pub fn word(&mut self) -> u64 {
        let Some(index) = self.scalars.next() else { unexpected(self.tag()) };
        self.words[index]
    }

    /// Takes an inline value.
    pub fn value<T: Inline>(&mut self) -> T {
        T::take(self)
    }

    /// Takes a fixed array, one value at a time.
    pub fn array<T: Inline, const N: usize>(&mut self) -> [T; N] {
        core::array::from_fn(|_| T::take(self))
    }

    /// Takes bytes, eight per word, little-endian.
    pub fn bytes<const N: usize>(&mut self) -> [u8; N] {
        let mut bytes = [0; N];
        for chunk in bytes.chunks_mut(8) {
            chunk.copy_from_slice(&self.word().to_le_bytes()[..chunk.len()]);
        }
        bytes
    }

    /// Takes the next block, moved here or returned from a loan.
    pub fn block<B: Block>(&mut self) -> B {
        let Some(block) = self.next_block() else { unexpected(self.tag()) };
        B::from_block(block)
    }

    /// Takes the next block, on loan from the sender.
    pub fn lent<B: Block>(&mut self) -> Lent<B> {
        let Some(block) = self.next_block() else { unexpected(self.tag()) };
        Lent::from_block(block)
    }

    /// Takes the next endpoint. The kernel has checked its contract, side and state.
    pub fn endpoint<E: TypedEndpoint>(&mut self) -> E {
        E::from_raw(self.any_endpoint().into_raw())
    }

    /// Takes the next endpoint, whose contract is checked at run time.
    pub fn any_endpoint(&mut self) -> AnyEndpoint {
        let Some(index) = self.endpoints.next() else { unexpected(self.tag()) };
        AnyEndpoint::from_raw(RawEndpoint::from_handle(self.words[index]))
    }

    pub(crate) fn next_block(&mut self) -> Option<ExBlock> {
        let (handle, bytes) = (self.blocks.next()?, self.blocks.next()?);
        Some(ExBlock::from_parts(self.words[handle], self.words[bytes] as usize))
    }
}

impl Drop for Incoming {
    fn drop(&mut self) {
        while let Some(block) = self.next_block() {
            drop(block);
        }
        self.endpoints.by_ref().for_each(|index| imports::close(self.words[index]));
    }
}
