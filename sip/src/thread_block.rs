//! The calling thread's [`ThreadBlock`]: its location, its message buffer, the runtime's own words.
//!
//! The block is found from the stack pointer alone, so an image needs no thread-local storage and no writable data.
//! Neighbours: [`raw`](crate::raw) calls through the table found here. Deliberately not here: the meaning of a
//! message's words (see [`channel`](crate::channel)).

use core::arch::asm;
use core::ptr::{addr_of, addr_of_mut};

use abi::{AbiTable, Status, ThreadBlock, limits};
use alloc::string::String;
use alloc::vec::Vec;

/// Runtime word: address of the state that the process's threads share (see [`allocator`](crate::allocator)).
pub(crate) const SHARED: usize = 0;
/// Runtime word: generation of the message buffer.
const GENERATION: usize = 1;
/// Runtime word: address of the executor that runs on this thread.
pub(crate) const EXECUTOR: usize = 2;
/// Runtime word: reserved for an adapter (see [`adapter`](crate::adapter)).
pub(crate) const ADAPTER: usize = 3;

#[inline(always)]
fn current() -> *mut ThreadBlock {
    let stack: usize;
    // SAFETY: reads a register and nothing else. A thread stays on its own stack slot for life, so
    // the masked value is the same wherever the compiler moves or merges this.
    unsafe { asm!("mov {}, rsp", out(reg) stack, options(pure, nomem, nostack, preserves_flags)) };
    let block = (stack | (limits::STACK_SLOT_BYTES - 1)) - (size_of::<ThreadBlock>() - 1);
    core::ptr::with_exposed_provenance_mut(block)
}

/// Returns the kernel's function table.
#[inline(always)]
pub(crate) fn table() -> &'static AbiTable {
    // SAFETY: the kernel wrote the address of its table, which it never moves or changes, before the
    // thread started; nothing in this crate writes that word.
    unsafe {
        let address = addr_of!((*current()).abi_table).read();
        &*core::ptr::with_exposed_provenance(address as usize)
    }
}

/// Returns the calling thread's handle.
pub(crate) fn own_thread() -> u64 {
    // SAFETY: the kernel wrote the word before the thread started, and it does not change.
    unsafe { addr_of!((*current()).thread).read() }
}

/// One use of the message buffer, for an outgoing message or for an answer that the kernel has left there. It is over as
/// soon as anything else writes to the buffer: an ABI call, [`put_bytes`], [`put_words`] or a newer use. Access through a
/// use that is over panics.
///
/// There is no other way to write to the buffer outside this module. That makes it sound to read a block's
/// description from the buffer after code of the program has run.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct BufferUse {
    generation: u64,
}

impl BufferUse {
    /// Begins a new use and ends the previous one.
    #[inline(always)]
    pub(crate) fn begin() -> BufferUse {
        let generation = runtime_word(GENERATION).wrapping_add(1);
        set_runtime_word(GENERATION, generation);
        BufferUse { generation }
    }

    /// Returns the use begun by the last ABI call or writer.
    #[inline(always)]
    pub(crate) fn current() -> BufferUse {
        BufferUse { generation: runtime_word(GENERATION) }
    }

    /// Returns a word of the buffer.
    #[inline(always)]
    pub(crate) fn word(self, index: usize) -> u64 {
        self.check();
        message_word(index)
    }

    /// Sets a word of the buffer.
    #[inline(always)]
    pub(crate) fn set_word(self, index: usize, value: u64) {
        self.check();
        set_message_word(index, value);
    }

    /// Panics if this use is over.
    #[inline(always)]
    pub(crate) fn check(self) {
        if self != BufferUse::current() {
            buffer_reused();
        }
    }
}

#[cold]
fn buffer_reused() -> ! {
    panic!("the message buffer was used for something else while a message lay in it")
}

#[inline(always)]
pub(crate) fn runtime_word(index: usize) -> u64 {
    assert!(index < abi::RUNTIME_WORDS);
    // SAFETY: the thread owns the block, which lives as long as it runs, and the index is in bounds.
    unsafe { addr_of!((*current()).runtime).cast::<u64>().add(index).read() }
}

#[inline(always)]
pub(crate) fn set_runtime_word(index: usize, value: u64) {
    assert!(index < abi::RUNTIME_WORDS);
    // SAFETY: as in `runtime_word`; no reference to the words is ever made.
    unsafe { addr_of_mut!((*current()).runtime).cast::<u64>().add(index).write(value) }
}

/// Returns a word of the message buffer, as the last ABI call left it. After code of the program has run, words must be
/// read through a [`BufferUse`].
#[inline(always)]
pub(crate) fn message_word(index: usize) -> u64 {
    assert!(index < limits::MESSAGE_WORDS);
    // SAFETY: as in `runtime_word`. The kernel changes the buffer only during this thread's calls.
    unsafe { addr_of!((*current()).message).cast::<u64>().add(index).read() }
}

#[inline(always)]
fn set_message_word(index: usize, value: u64) {
    assert!(index < limits::MESSAGE_WORDS);
    // SAFETY: as in `message_word`; no reference to the words is ever made.
    unsafe { addr_of_mut!((*current()).message).cast::<u64>().add(index).write(value) }
}

/// Copies text or bytes to the start of the buffer, as a use of their own, and returns their number.
///
/// # Errors
/// [`Status::TooLarge`] if they do not fit.
pub(crate) fn put_bytes(bytes: &[u8]) -> Result<u64, Status> {
    if bytes.len() > limits::TEXT_BYTES {
        return Err(Status::TooLarge);
    }
    BufferUse::begin();
    // SAFETY: the thread owns the buffer, which has TEXT_BYTES bytes; `bytes` cannot overlap it, as
    // no reference to it is ever handed out.
    unsafe {
        let buffer = addr_of_mut!((*current()).message).cast::<u8>();
        buffer.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
    }
    Ok(bytes.len() as u64)
}

/// Copies words to the start of the buffer, as a use of their own. Panics if they do not fit.
pub(crate) fn put_words(words: &[u64]) {
    BufferUse::begin();
    for (index, &word) in words.iter().enumerate() {
        set_message_word(index, word);
    }
}

/// Copies the whole buffer.
pub(crate) fn copy_bytes() -> [u8; limits::TEXT_BYTES] {
    let mut copy = [0u8; limits::TEXT_BYTES];
    // SAFETY: as in `put_bytes`; the whole buffer has `TEXT_BYTES` bytes.
    unsafe {
        let buffer = addr_of!((*current()).message).cast::<u8>();
        copy.as_mut_ptr().copy_from_nonoverlapping(buffer, limits::TEXT_BYTES);
    }
    copy
}

/// Appends the bytes `from..from + length` of the buffer, cut at its end, to `out`.
pub(crate) fn append_bytes(from: usize, length: u64, out: &mut Vec<u8>) {
    let from = from.min(limits::TEXT_BYTES);
    let length = usize::try_from(length).unwrap_or(usize::MAX).min(limits::TEXT_BYTES - from);
    // Copied to the stack first, because growing `out` may make ABI calls.
    out.extend_from_slice(&copy_bytes()[from..from + length]);
}

/// Returns the reason that the message buffer holds after `Status::Refused`.
pub(crate) fn refusal() -> String {
    text(0, message_word(limits::MESSAGE_WORDS - 1).min((limits::TEXT_BYTES - 8) as u64))
}

/// Returns the bytes `from..from + length` of the buffer as text; invalid UTF-8 is replaced.
pub(crate) fn text(from: usize, length: u64) -> String {
    let mut bytes = Vec::new();
    append_bytes(from, length, &mut bytes);
    match String::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
    }
}
