//! The calling thread's [`ThreadBlock`]: where it is, its message buffer, the runtime's own words.
//!
//! The block is found from the stack pointer alone, so an image needs no thread-local storage and no
//! writable data. Neighbours: [`raw`](crate::raw) calls through the table found here. Deliberately
//! not here: what the words of a message mean (see [`channel`](crate::channel)).

use core::arch::asm;
use core::ptr::{addr_of, addr_of_mut};

use abi::{AbiTable, ThreadBlock, limits};
use alloc::string::String;
use alloc::vec::Vec;

/// Runtime word: address of what the process's threads share (see [`allocator`](crate::allocator)).
pub(crate) const SHARED: usize = 0;
/// Runtime word: counts the uses of the message buffer.
const GENERATION: usize = 1;
/// Runtime word: address of the executor that runs on this thread.
pub(crate) const EXECUTOR: usize = 2;
/// Runtime word: an adapter's own (see [`adapter`](crate::adapter)).
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

/// The functions of the kernel.
#[inline(always)]
pub(crate) fn table() -> &'static AbiTable {
    // SAFETY: the kernel wrote the address of its table, which it never moves or changes, before the
    // thread started; nothing in this crate writes that word.
    unsafe {
        let address = addr_of!((*current()).abi_table).read();
        &*core::ptr::with_exposed_provenance(address as usize)
    }
}

/// The calling thread's handle.
pub(crate) fn own_thread() -> u64 {
    // SAFETY: the kernel wrote the word before the thread started; nobody changes it.
    unsafe { addr_of!((*current()).thread).read() }
}

/// The number of the present use of the message buffer.
#[inline(always)]
pub(crate) fn generation() -> u64 {
    runtime_word(GENERATION)
}

/// Begins a new use of the message buffer: whoever believes that its words still lie there finds out.
#[inline(always)]
pub(crate) fn renew_generation() -> u64 {
    let next = generation().wrapping_add(1);
    set_runtime_word(GENERATION, next);
    next
}

#[inline(always)]
pub(crate) fn runtime_word(index: usize) -> u64 {
    assert!(index < abi::RUNTIME_WORDS);
    // SAFETY: the block is this thread's own, alive as long as it runs, and the index is in bounds.
    unsafe { addr_of!((*current()).runtime).cast::<u64>().add(index).read() }
}

#[inline(always)]
pub(crate) fn set_runtime_word(index: usize, value: u64) {
    assert!(index < abi::RUNTIME_WORDS);
    // SAFETY: as in `runtime_word`; no reference to the words is ever made.
    unsafe { addr_of_mut!((*current()).runtime).cast::<u64>().add(index).write(value) }
}

/// A word of the message buffer.
#[inline(always)]
pub(crate) fn message_word(index: usize) -> u64 {
    assert!(index < limits::MESSAGE_WORDS);
    // SAFETY: as in `runtime_word`. The kernel changes the buffer only during this thread's calls.
    unsafe { addr_of!((*current()).message).cast::<u64>().add(index).read() }
}

/// Sets a word of the message buffer.
#[inline(always)]
pub(crate) fn set_message_word(index: usize, value: u64) {
    assert!(index < limits::MESSAGE_WORDS);
    // SAFETY: as in `message_word`; no reference to the words is ever made.
    unsafe { addr_of_mut!((*current()).message).cast::<u64>().add(index).write(value) }
}

/// Puts text or bytes at the start of the buffer; what does not fit is left out. How many fitted.
pub(crate) fn put_bytes(bytes: &[u8]) -> u64 {
    let length = bytes.len().min(limits::TEXT_BYTES);
    // SAFETY: the buffer is this thread's own and has TEXT_BYTES bytes; `bytes` cannot overlap it, as
    // no reference to it is ever given out.
    unsafe {
        let buffer = addr_of_mut!((*current()).message).cast::<u8>();
        buffer.copy_from_nonoverlapping(bytes.as_ptr(), length);
    }
    length as u64
}

/// Appends the bytes `from..from + length` of the buffer, cut at its end, to `out`.
pub(crate) fn append_bytes(from: usize, length: u64, out: &mut Vec<u8>) {
    let from = from.min(limits::TEXT_BYTES);
    let length = usize::try_from(length).unwrap_or(usize::MAX).min(limits::TEXT_BYTES - from);
    // By way of the stack, because growing `out` may call the kernel.
    let mut copy = [0u8; limits::TEXT_BYTES];
    // SAFETY: as in `put_bytes`; `from + length` is within the buffer.
    unsafe {
        let buffer = addr_of!((*current()).message).cast::<u8>();
        copy.as_mut_ptr().copy_from_nonoverlapping(buffer.add(from), length);
    }
    out.extend_from_slice(&copy[..length]);
}

/// The reason that stands in the message buffer after an answer of `Status::Refused`.
pub(crate) fn refusal() -> String {
    text(0, message_word(limits::MESSAGE_WORDS - 1).min((limits::TEXT_BYTES - 8) as u64))
}

/// The bytes `from..from + length` of the buffer as text; what is not UTF-8 is replaced.
pub(crate) fn text(from: usize, length: u64) -> String {
    let mut bytes = Vec::new();
    append_bytes(from, length, &mut bytes);
    match String::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
    }
}
