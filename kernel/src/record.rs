//! Recording of a run: what enters each process at the ABI is written to the machine's recording.
//!
//! Off unless the machine takes a recording: then threads get an ABI table whose entries pass through here, and the
//! others cost nothing. A process's inputs are its image, the results of its calls, the words and bytes that come with
//! them ([`recording::effects`]), and where its memory is. Its threads run one at a time and take turns at calls alone
//! ([`crate::process::Turn`]), so the order of returns is all there is of their interleaving. Another process runs
//! whenever the timer says so: they share no memory. Neighbours: `entry` above, `recorder` writes, `replay` reads. Deliberately not here: memory that devices
//! write by themselves, which is no result of a call. A process that shares memory with one is *opaque* from then on, as one
//! with unsafe code is from its start: no replay runs it, so what others get from it is kept with its contents.

use core::sync::atomic::Ordering;

use abi::{AbiReturn, Status};
use alloc::vec::Vec;
use recording::effects::{self, Memory};
use recording::{Content, EventKind};

use crate::process::ProcessRef;
use crate::{call_words, claims, cpu, deferred, device, exheap, hardware, installed, recorder};

/// A thread calls a function. Another of its process may run from here on.
pub fn begin(function: usize, arguments: &[u64]) {
    let thread = cpu::current();
    let Some(process) = thread.owner() else { return };
    let mut six = [0; 6];
    six.iter_mut().zip(arguments).for_each(|(word, argument)| *word = *argument);
    let count = call_words::words_in(function as u64, &six);
    thread.message().with_words(count, |read| {
        recorder::append(process, thread.handle(), (EventKind::Called, function), 0, (arguments, read), &[]);
        if process.turn.is_opaque() {
            mark_given_away(process, function, &six, read);
        }
    });
    // A thread that is alone keeps it: another is started only by a call of its own, and waits for the next one.
    if process.live_threads.load(Ordering::Relaxed) > 1 {
        process.turn.release();
    }
}

/// The call returns to the thread's code, when it is the thread's turn.
pub fn end(function: usize, arguments: &[u64], answer: AbiReturn) {
    let thread = cpu::current();
    let Some(process) = thread.owner() else { return };
    deferred::take_turn(process);
    if effects::shares_memory(function, answer.status) {
        process.turn.make_opaque();
    }
    thread.message().with_words(call_words::words_out(function as u64, &answer), |written| {
        let mut memory = memory_of(function, arguments, &answer, written);
        if process.turn.is_opaque() {
            // Nobody replays what it does with them.
            memory.iter_mut().for_each(|piece| piece.content = Content::Left);
        }
        let event = (EventKind::Returned, function);
        recorder::append(process, thread.handle(), event, answer.status, (&[answer.value], written), &memory);
    });
    if is_device_open(function) && answer.status == Status::Ok as u64 {
        let hardware = claims::hardware(answer.value, process).ok();
        let port = hardware.and_then(hardware::first_port).unwrap_or(0);
        let words = [answer.value, device::kind_of(answer.value, process), port];
        recorder::append(process, thread.handle(), (EventKind::Opened, function), 0, (&words, &[]), &[]);
    }
}

/// The memory that a process gets with a return.
fn memory_of(function: usize, arguments: &[u64], answer: &AbiReturn, buffer: &[u64]) -> Vec<recorder::Piece> {
    let memory = effects::memory(function);
    if let (Memory::OfArgument(index), true) = (memory, answer.status == Status::Ok as u64) {
        let handle = arguments.get(index).copied().unwrap_or(0);
        let found = exheap::block(handle).ok().zip(cpu::current().owner());
        let place = found.and_then(|(block, process)| exheap::describe_of(process, block, handle).ok());
        let piece = |[address, bytes, ..]: [u64; 4]| recorder::Piece { address, bytes, content: Content::Bytes(()) };
        return place.map(piece).into_iter().collect();
    }
    let content = match memory {
        Memory::Nothing | Memory::RestOfBlock => return Vec::new(),
        Memory::ZeroBlock | Memory::ZeroPages | Memory::MorePages | Memory::Window => Content::Zero,
        // What a borrower has written that was ended in the middle, nobody can repeat.
        Memory::Message if answer.status == Status::Closed as u64 => Content::Bytes(()),
        Memory::Message | Memory::Detached if !keeps_all() => Content::Left,
        Memory::Completed => return filled(answer),
        _ => Content::Bytes(()),
    };
    let argument = |index: usize| arguments.get(index).copied().unwrap_or(0);
    let named = effects::named(function, [argument(0), argument(1)], (answer.status, answer.value), buffer);
    let piece = |block: effects::Named| {
        let content = if content == Content::Left && was_opaque(block.handle) { Content::Bytes(()) } else { content };
        recorder::Piece { address: block.address, bytes: block.bytes, content }
    };
    named.into_iter().map(piece).collect()
}

/// Whether the contents of all messages are kept: between hardware domains they are copied to other addresses, where no
/// replay of their sender leaves them.
fn keeps_all() -> bool {
    installed::system().is_some_and(|system| !system.domains.is_empty())
}

/// Whether a block's contents are of a process that no replay makes again; now they are in the recording.
fn was_opaque(handle: u64) -> bool {
    exheap::block(handle).is_ok_and(|block| {
        let was = block.is_opaque.load(Ordering::Relaxed);
        if was {
            block.is_opaque.store(false, Ordering::Relaxed);
        }
        was
    })
}

/// Marks the blocks that a call of an opaque process sends or puts into another block.
fn mark_given_away(process: ProcessRef, function: usize, arguments: &[u64; 6], read: &[u64]) {
    let own = |handle: u64| {
        exheap::block(handle).ok().filter(|block| block.owner.get().is_some_and(|owner| core::ptr::eq(owner, process)))
    };
    let mark = |handle: u64| own(handle).into_iter().for_each(|block| block.is_opaque.store(true, Ordering::Relaxed));
    if function == const { effects::number_of("channel_send") } {
        effects::sent(arguments[1], read).into_iter().for_each(mark);
    } else if function == const { effects::number_of("heap_attach") } {
        mark(arguments[1]);
    }
}

/// The parts of a block that a device has written to.
fn filled(answer: &AbiReturn) -> Vec<recorder::Piece> {
    let Some(block) = exheap::block(answer.value).ok().filter(|_| answer.status == Status::Ok as u64) else {
        return Vec::new();
    };
    let base = block.address.load(Ordering::Relaxed);
    let piece = |(first, bytes): (usize, usize)| recorder::Piece {
        address: (base + first) as u64,
        bytes: bytes as u64,
        content: Content::Bytes(()),
    };
    device::filled(block).into_iter().filter(|part| part.1 > 0).map(piece).collect()
}

fn is_device_open(function: usize) -> bool {
    function == const { effects::number_of("device_open") }
}

#[cfg(test)]
mod tests;
