//! Recording of a run: what enters each process at the ABI is written to the machine's recording.
//!
//! Off unless the machine takes a recording: then threads get an ABI table whose entries pass through here, and the
//! others cost nothing. A process's inputs are its image, the results of its calls, the words and bytes that come with
//! them ([`recording::effects`]), and where its memory is. Its threads run one at a time and take turns at calls alone ([`Turn`]),
//! so the order of returns is all there is of their interleaving. Another process runs whenever the timer says so: they
//! share no memory. Neighbours: `entry` above, `log` writes, `crate::replay` reads. Deliberately not here: registers of
//! devices and memory that they write by DMA, which are no results of calls.

mod log;
mod turn;

pub use log::finish;
pub use turn::Turn;

use core::sync::atomic::{AtomicBool, Ordering};

use abi::{AbiReturn, Status};
use alloc::vec::Vec;
use recording::effects::{self, Memory};
use recording::{Content, EventKind, Header, Started};

use crate::crossing::buffer;
use crate::machine::machine;
use crate::process::{Epitaph, ProcessRef};
use crate::thread::ThreadRef;
use crate::{arch, cpu, deferred, device, exheap, lifecycle};

static ON: AtomicBool = AtomicBool::new(false);

/// Whether the run is recorded.
#[inline(always)]
pub fn is_on() -> bool {
    ON.load(Ordering::Relaxed)
}

/// Begins a recording if the machine takes one. Called at boot, before there are threads.
pub fn start(system_image: &'static [u8]) {
    if !machine().takes_recording() {
        return;
    }
    let layout = machine().layout();
    let arenas = [layout.images, layout.stacks, layout.memory].map(|arena| (arena.base as u64, arena.bytes as u64));
    let functions = recording::functions();
    let header = Header { functions, arenas, system_bytes: system_image.len() as u64 };
    log::start(&header, system_image);
    ON.store(true, Ordering::Relaxed);
}

/// A thread calls a function. Another of its process may run from here on.
pub fn begin(function: usize, arguments: &[u64]) {
    let thread = cpu::current();
    let Some(process) = thread.owner() else { return };
    let mut six = [0; 6];
    six.iter_mut().zip(arguments).for_each(|(word, argument)| *word = *argument);
    let count = buffer::words_in(function as u64, &six);
    thread.message().with_words(count, |read| {
        log::append(process, thread.handle(), (EventKind::Called, function), 0, (arguments, read), &[]);
    });
    process.turn.release();
}

/// The call returns to the thread's code, when it is the thread's turn.
pub fn end(function: usize, arguments: &[u64], answer: AbiReturn) {
    let thread = cpu::current();
    let Some(process) = thread.owner() else { return };
    take_turn(process);
    thread.message().with_words(buffer::words_out(function as u64, &answer), |written| {
        let memory = memory_of(function, arguments, &answer, written);
        let event = (EventKind::Returned, function);
        log::append(process, thread.handle(), event, answer.status, (&[answer.value], written), &memory);
    });
    if is_device_open(function) && answer.status == Status::Ok as u64 {
        let kind = device::kind_of(answer.value, process);
        log::append(process, thread.handle(), (EventKind::Opened, function), 0, (&[answer.value, kind], &[]), &[]);
    }
}

/// Waits for the process's turn, and does what has come up meanwhile.
fn take_turn(process: ProcessRef) {
    if !process.turn.take() || process.is_dying() {
        lifecycle::end_current_thread();
    }
    if arch::cpu_pending() != 0 {
        deferred::service_pending();
    }
}

/// The memory that a process gets with a return.
fn memory_of(function: usize, arguments: &[u64], answer: &AbiReturn, buffer: &[u64]) -> Vec<log::Piece> {
    let memory = effects::memory(function);
    if let (Memory::OfArgument(index), true) = (memory, answer.status == Status::Ok as u64) {
        let handle = arguments.get(index).copied().unwrap_or(0);
        let found = exheap::block(handle).ok().zip(cpu::current().owner());
        let place = found.and_then(|(block, process)| exheap::describe_of(process, block, handle).ok());
        let piece = |[address, bytes, ..]: [u64; 4]| log::Piece { address, bytes, content: Content::Bytes(()) };
        return place.map(piece).into_iter().collect();
    }
    let content = match memory {
        Memory::Nothing | Memory::RestOfBlock => return Vec::new(),
        Memory::ZeroBlock | Memory::ZeroPages => Content::Zero,
        // What a borrower has written that was ended in the middle, nobody can repeat.
        Memory::Message if answer.status == Status::Closed as u64 => Content::Bytes(()),
        Memory::Message | Memory::Detached if !keeps_all() => Content::Left,
        Memory::Completed => return filled(answer),
        _ => Content::Bytes(()),
    };
    let argument = arguments.first().copied().unwrap_or(0);
    let named = effects::named(function, argument, (answer.status, answer.value), buffer);
    named.into_iter().map(|block| log::Piece { address: block.address, bytes: block.bytes, content }).collect()
}

/// Whether the contents of all messages are kept: programs in domains may be such as no replay runs.
fn keeps_all() -> bool {
    machine().max_domains() > 0
}

/// The parts of a block that a device has written to.
fn filled(answer: &AbiReturn) -> Vec<log::Piece> {
    let Some(block) = exheap::block(answer.value).ok().filter(|_| answer.status == Status::Ok as u64) else {
        return Vec::new();
    };
    let base = block.address.load(Ordering::Relaxed);
    let piece = |(first, bytes): (usize, usize)| log::Piece {
        address: (base + first) as u64,
        bytes: bytes as u64,
        content: Content::Bytes(()),
    };
    device::filled(block).into_iter().filter(|part| part.1 > 0).map(piece).collect()
}

/// A process has installed a program.
pub fn installed(package: &[u8]) {
    if let Some(process) = cpu::current().owner() {
        let (address, bytes) = (package.as_ptr().addr() as u64, package.len() as u64);
        let piece = log::Piece { address, bytes, content: Content::Bytes(()) };
        log::append(process, 0, (EventKind::Installed, 0), 0, (&[], &[]), &[piece]);
    }
}

/// A thread's code is about to run for the first time.
pub fn thread_started(thread: ThreadRef) {
    let Some(process) = thread.owner() else { return };
    take_turn(process);
    let [entry, argument] = thread.inside.start.each_ref().map(|word| word.load(Ordering::Relaxed) as u64);
    let program = process.program.get();
    let started = Started {
        entry,
        argument,
        thread_block: thread.sip_block_address() as u64,
        image: process.loaded.get().map_or(0, |loaded| loaded.base as u64),
        writes_to_machine: process.debug_text.get().is_none(),
        in_domain: thread.inside.space.get().is_some(),
        identity: program.map_or([0; 32], |program| program.identity),
        program: process.name().into(),
    };
    let text = words_of(&started.program);
    log::append(process, thread.handle(), (EventKind::Started, 0), 0, (&started.words(), &text), &[]);
}

/// A process has ended.
pub fn process_ended(process: ProcessRef, epitaph: &Epitaph) {
    let text = words_of(&epitaph.text);
    log::append(process, 0, (EventKind::Ended, epitaph.kind as usize), 0, (&[epitaph.status], &text), &[]);
}

fn is_device_open(function: usize) -> bool {
    function == const { device_open() }
}

const fn device_open() -> usize {
    let mut number = 0;
    while !matches!(abi::FUNCTIONS[number].name.as_bytes(), b"device_open") {
        number += 1;
    }
    number
}

/// Text as words, as much as an event has room for.
fn words_of(text: &str) -> Vec<u64> {
    let word = |bytes: &[u8]| bytes.iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte));
    text.as_bytes().chunks(8).map(word).take(255).collect()
}

#[cfg(test)]
mod tests;
