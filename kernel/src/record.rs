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
use crate::recorder::Piece;
use crate::thread::ThreadRef;
use crate::{call_words, claims, cpu, deferred, device, exheap, hardware, installed, recorder};

/// A thread calls a function. Another of its process may run from here on. Inlined for each function, so that it is
/// known which words it reads.
#[inline(always)]
pub fn begin(function: usize, arguments: &[u64]) {
    let thread = cpu::current();
    let Some(process) = thread.owner() else { return };
    thread.message().with_words(call_words::words_in(function as u64, arguments), |read| {
        if process.turn.is_opaque() {
            begin_opaque(process, thread, function, arguments, read);
        } else {
            recorder::called(thread, function, arguments, read);
        }
    });
    // A thread that is alone keeps it: another is started only by a call of its own, and waits for the next one.
    if process.live_threads.load(Ordering::Relaxed) > 1 {
        process.turn.release();
    }
}

/// Records a call of an opaque process with its words, since no replay makes them again.
#[cold]
fn begin_opaque(process: ProcessRef, thread: ThreadRef, function: usize, arguments: &[u64], read: &[u64]) {
    recorder::append(process, thread.handle(), (EventKind::Called, function), 0, (arguments, read), &[]);
    mark_given_away(process, function, arguments, read);
}

/// The call returns to the thread's code, when it is the thread's turn. Inlined as [`begin`] is.
#[inline(always)]
pub fn end(function: usize, arguments: &[u64], answer: AbiReturn) {
    let thread = cpu::current();
    let Some(process) = thread.owner() else { return };
    // Of a thread that was alone when it called, no other has run since.
    let kept_turn = process.turn.is_mine();
    deferred::take_turn(process);
    thread.message().with_words(call_words::words_out(function as u64, &answer), |written| {
        let is_plain = effects::counted(function) == Some((answer.status, answer.value)) && kept_turn;
        if is_plain && recorder::returned_plainly(thread) {
            return;
        }
        if has_usual_memory(function, answer.status) {
            recorder::returned(process, thread, function, (answer.status, answer.value, written), &[]);
        } else {
            end_with_memory(process, function, arguments, answer, written);
        }
    });
    if effects::shares_memory(function, answer.status) {
        recorder::make_opaque(process);
    }
    if is_device_open(function) && answer.status == Status::Ok as u64 {
        device_opened(process, thread, function, answer.value);
    }
}

/// Records a return that gives memory.
#[inline(never)]
fn end_with_memory(process: ProcessRef, function: usize, arguments: &[u64], answer: AbiReturn, written: &[u64]) {
    let mut memory = Pieces::none();
    add_memory(function, arguments, &answer, written, &mut memory);
    if process.turn.is_opaque() {
        memory.leave_all();
    }
    let answered = (answer.status, answer.value, written);
    recorder::returned(process, cpu::current(), function, answered, memory.as_slice());
}

#[cold]
fn device_opened(process: ProcessRef, thread: ThreadRef, function: usize, device: u64) {
    let hardware = claims::hardware(device, process).ok();
    let port = hardware.and_then(hardware::first_port).unwrap_or(0);
    let words = [device, device::kind_of(device, process), port];
    recorder::append(process, thread.handle(), (EventKind::Opened, function), 0, (&words, &[]), &[]);
}

/// Whether a return gives no memory, or none whose content is not as usual.
#[inline(always)]
fn has_usual_memory(function: usize, status: u64) -> bool {
    match effects::memory(function) {
        Memory::Nothing | Memory::RestOfBlock | Memory::ZeroBlock => true,
        Memory::Message | Memory::Detached => status != Status::Closed as u64 && !recorder::keeps_messages(),
        _ => false,
    }
}

/// Memory that a process gets with a return. Messages seldom have more than a few blocks.
struct Pieces {
    first: [Piece; Pieces::FIRST],
    count: usize,
    /// All, if they are more.
    all: Vec<Piece>,
}

impl Pieces {
    const FIRST: usize = 2;

    fn none() -> Pieces {
        let none = Piece { address: 0, bytes: 0, content: Content::Left };
        Pieces { first: [none; Pieces::FIRST], count: 0, all: Vec::new() }
    }

    fn add(&mut self, piece: Piece) {
        match self.first.get_mut(self.count) {
            Some(place) => *place = piece,
            None => {
                if self.all.is_empty() {
                    self.all.extend(self.first);
                }
                self.all.push(piece);
            }
        }
        self.count += 1;
    }

    fn as_slice(&self) -> &[Piece] {
        if self.all.is_empty() { &self.first[..self.count.min(Pieces::FIRST)] } else { &self.all }
    }

    /// Nobody replays what the process does with them.
    fn leave_all(&mut self) {
        self.first.iter_mut().chain(&mut self.all).for_each(|piece| piece.content = Content::Left);
    }
}

/// Adds the memory that a process gets with a return, without that whose content is as usual.
fn add_memory(function: usize, arguments: &[u64], answer: &AbiReturn, buffer: &[u64], pieces: &mut Pieces) {
    let memory = effects::memory(function);
    let is_ok = answer.status == Status::Ok as u64;
    let argument = |index: usize| arguments.get(index).copied().unwrap_or(0);
    let content = match memory {
        Memory::OfArgument(index) if is_ok => {
            let found = exheap::block(argument(index)).ok().zip(cpu::current().owner());
            let place = found.map(|(block, process)| exheap::describe_of(process, block, argument(index)));
            if let Some(Ok([address, bytes, ..])) = place {
                pieces.add(Piece { address, bytes, content: Content::Bytes(()) });
            }
            return;
        }
        Memory::Completed => return add_filled(answer, pieces),
        Memory::Nothing | Memory::RestOfBlock | Memory::ZeroBlock => return,
        Memory::ZeroPages | Memory::MorePages | Memory::Window => Content::Zero,
        // What a borrower has written that was ended in the middle, nobody can repeat.
        Memory::Message if answer.status == Status::Closed as u64 => Content::Bytes(()),
        Memory::Message | Memory::Detached if !keeps_all() => Content::Left,
        _ => Content::Bytes(()),
    };
    for block in effects::named(function, [argument(0), argument(1)], (answer.status, answer.value), buffer) {
        let content = if content == Content::Left && was_opaque(block.handle) { Content::Bytes(()) } else { content };
        if content == Content::Left {
            continue;
        }
        pieces.add(Piece { address: block.address, bytes: block.bytes, content });
    }
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
fn mark_given_away(process: ProcessRef, function: usize, arguments: &[u64], read: &[u64]) {
    let argument = |index: usize| arguments.get(index).copied().unwrap_or(0);
    let own = |handle: u64| {
        exheap::block(handle).ok().filter(|block| block.owner.get().is_some_and(|owner| core::ptr::eq(owner, process)))
    };
    let mark = |handle: u64| own(handle).into_iter().for_each(|block| block.is_opaque.store(true, Ordering::Relaxed));
    if function == const { effects::number_of("channel_send") } {
        effects::sent(argument(1), read).into_iter().for_each(mark);
    } else if function == const { effects::number_of("heap_attach") } {
        mark(argument(1));
    }
}

/// Adds the parts of a block that a device has written to.
fn add_filled(answer: &AbiReturn, pieces: &mut Pieces) {
    let Some(block) = exheap::block(answer.value).ok().filter(|_| answer.status == Status::Ok as u64) else { return };
    let base = block.address.load(Ordering::Relaxed);
    for (first, bytes) in device::filled(block) {
        if bytes > 0 {
            pieces.add(Piece { address: (base + first) as u64, bytes: bytes as u64, content: Content::Bytes(()) });
        }
    }
}

fn is_device_open(function: usize) -> bool {
    function == const { effects::number_of("device_open") }
}

#[cfg(test)]
mod tests;
