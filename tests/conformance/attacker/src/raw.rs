//! Raw calls: any function of the table by name or number, with any arguments, and the buffer's words.

use core::arch::asm;

use sip::Status;
use sip::abi::{AbiReturn, FUNCTIONS, ThreadBlock, limits, stack};

/// Maximum arguments of a function in the table.
pub(crate) const MAX_ARGUMENTS: usize = 6;

type Entry = extern "C" fn(u64, u64, u64, u64, u64, u64) -> AbiReturn;

/// The lowest address of the calling thread's stack slot.
pub(crate) fn slot() -> usize {
    let pointer: usize;
    // SAFETY: reads a register.
    unsafe { asm!("mov {}, rsp", out(reg) pointer, options(nomem, nostack, preserves_flags)) };
    pointer & !(limits::STACK_SLOT_BYTES - 1)
}

/// The lowest address of the calling thread's stack: its guard's.
pub(crate) fn stack_start() -> usize {
    stack::start(slot())
}

fn thread_block() -> *mut ThreadBlock {
    let address = slot() + limits::STACK_SLOT_BYTES - size_of::<ThreadBlock>();
    core::ptr::with_exposed_provenance_mut(address)
}

/// A word of the message buffer.
pub(crate) fn word(index: usize) -> u64 {
    assert!(index < limits::MESSAGE_WORDS);
    // SAFETY: the block is at the end of this thread's stack slot.
    unsafe { (*thread_block()).message[index] }
}

/// Sets a word of the message buffer.
pub(crate) fn set_word(index: usize, word: u64) {
    assert!(index < limits::MESSAGE_WORDS);
    // SAFETY: as in `word`.
    unsafe { (*thread_block()).message[index] = word };
}

/// Sets words of the message buffer, from its start.
pub(crate) fn set_words(words: &[u64]) {
    for (index, &word) in words.iter().enumerate().take(limits::MESSAGE_WORDS) {
        set_word(index, word);
    }
}

/// Writes text to the start of the buffer; returns its length.
pub(crate) fn put_text(text: &str) -> u64 {
    for (index, chunk) in text.as_bytes().chunks(8).enumerate() {
        let mut bytes = [0; 8];
        bytes[..chunk.len()].copy_from_slice(chunk);
        set_word(index, u64::from_le_bytes(bytes));
    }
    text.len() as u64
}

/// A byte of this process's memory.
pub(crate) fn byte_at(address: u64) -> u8 {
    let place: *const u8 = core::ptr::with_exposed_provenance(address as usize);
    // SAFETY: as in `set_byte`.
    unsafe { place.read_volatile() }
}

/// Sets a byte of this process's memory.
pub(crate) fn set_byte(address: u64, byte: u8) {
    let place: *mut u8 = core::ptr::with_exposed_provenance_mut(address as usize);
    // SAFETY: the kernel returned the address for this process to write to, and nothing refers to it in between.
    unsafe { place.write_volatile(byte) };
}

/// The address of the function with this number in the table.
pub(crate) fn entry_address(number: usize) -> usize {
    assert!(number < FUNCTIONS.len());
    // SAFETY: the table is a version word followed by one pointer for each function.
    unsafe {
        let table: *const usize = core::ptr::with_exposed_provenance((*thread_block()).abi_table as usize);
        table.add(1 + number).read()
    }
}

/// Calls the function with this number; missing arguments are 0.
pub(crate) fn call(number: usize, arguments: &[u64]) -> Result<u64, Status> {
    let mut all = [0; MAX_ARGUMENTS];
    all[..arguments.len()].copy_from_slice(arguments);
    // SAFETY: every function of the table takes at most these arguments, all in registers, and ignores further ones.
    // Its effect on this process's memory is the purpose of the attack.
    let entry: Entry = unsafe { core::mem::transmute(entry_address(number)) };
    entry(all[0], all[1], all[2], all[3], all[4], all[5]).into_result()
}

/// The number of the function with this name.
pub(crate) fn number_of(name: &str) -> usize {
    let found = FUNCTIONS.iter().position(|function| function.name == name);
    found.unwrap_or_else(|| panic!("the table has no function `{name}`"))
}

/// Calls a function by name.
pub(crate) fn abi(name: &str, arguments: &[u64]) -> Result<u64, Status> {
    call(number_of(name), arguments)
}

/// Calls a function that must succeed.
#[track_caller]
pub(crate) fn must(name: &str, arguments: &[u64]) -> u64 {
    match abi(name, arguments) {
        Ok(value) => value,
        Err(status) => panic!("{name}: {}", status.text()),
    }
}

/// Calls a function that must be refused with one of these errors.
#[track_caller]
pub(crate) fn refused(name: &str, arguments: &[u64], with: &[Status]) {
    let answer = abi(name, arguments);
    assert!(
        answer.is_err_and(|status| with.contains(&status)),
        "{name}({arguments:x?}) answered {answer:?}, not {with:?}"
    );
}
