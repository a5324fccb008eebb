//! The writer of a recording: whether there is one, its events, and its chunks, one in work for each processor, which is
//! written when it is full.
//!
//! Neighbours: `record` above has the calls. Deliberately not here: what a call gives its caller.

use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use recording::{
    Chunk, Content, Contents, Event, EventKind, Filling, Header, Known, MAX_BLOCKS, Started, Unreturned, Whole,
    chunk_head, chunk_of, padding,
};

use crate::lock::SpinLock;
use crate::machine::machine;
use crate::pending_call::PendingCall;
use crate::process::{Epitaph, ProcessRef};
use crate::thread::{THREADS, ThreadRef};
use crate::{cpu, memory};

/// Bytes of a chunk at which it is written.
const CHUNK_BYTES: usize = 128 << 10;
const PROCESSORS_MAX: usize = 64;

static ON: AtomicBool = AtomicBool::new(false);
static CHUNKS: [SpinLock<Filling>; PROCESSORS_MAX] = [const { SpinLock::new(Filling::NONE) }; PROCESSORS_MAX];
/// Number of the next event. Calls are not counted: they come before the event that has the number then.
static NEXT: AtomicU64 = AtomicU64::new(0);
/// Whether there is one processor: only its own interrupts come between two accesses of it, and they add no event.
static IS_ALONE: AtomicBool = AtomicBool::new(false);
/// Whether there is, or was, an opaque process or a hardware domain.
static KEEPS_MESSAGES: AtomicBool = AtomicBool::new(false);
/// Contents that are in the recording.
static KNOWN: Known = Known::new();
static IS_OVER: AtomicBool = AtomicBool::new(false);

/// Memory that a process gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Its address.
    pub address: u64,
    /// Its size in bytes.
    pub bytes: u64,
    /// Whether it is zero, or known, or what is there is to be recorded.
    pub content: Content<()>,
}

/// Whether this kernel can record: the standard one of a bare machine cannot, and has none of the code.
pub const CAN_RECORD: bool = cfg!(feature = "recording");

/// Whether the run is recorded.
#[inline(always)]
pub fn is_on() -> bool {
    CAN_RECORD && ON.load(Ordering::Relaxed)
}

/// Begins a recording if the machine takes one. Called at boot, before there are threads.
pub fn start(system_image: &'static [u8]) {
    if !CAN_RECORD || !machine().takes_recording() {
        return;
    }
    begin_file(system_image);
    IS_ALONE.store(machine().processor_count() == 1, Ordering::Relaxed);
    ON.store(true, Ordering::Relaxed);
}

/// Writes what is before the events.
fn begin_file(system_image: &'static [u8]) {
    // When the machine started, to the nanosecond, and where the host has put the kernel.
    KNOWN.set_key([machine().monotonic_ns() ^ machine().wall_ns(), (&raw const KNOWN).addr() as u64]);
    let layout = machine().layout();
    let arenas = [layout.images, layout.stacks, layout.memory, layout.windows];
    let arenas = arenas.map(|arena| (arena.base as u64, arena.bytes as u64));
    let header = Header { functions: abi::TABLE_ID, arenas, system_bytes: system_image.len() as u64 };
    machine().record(&chunk_of(Chunk::Header, header.words()));
    machine().record(&chunk_head(Chunk::System, system_image));
    machine().record(system_image);
    machine().record(padding(system_image.len()));
}

/// Writes a file of these events, which are in order, to a machine that records nothing else.
pub fn write_file(system_image: &'static [u8], events: &[Event]) {
    begin_file(system_image);
    let mut chunk = Filling::default();
    for event in events {
        event.write(&mut chunk, &KNOWN);
        if chunk.length() >= CHUNK_BYTES {
            write(&mut chunk);
        }
    }
    write(&mut chunk);
    machine().record(&chunk_of(Chunk::End, [events.len() as u64]));
    machine().record_end();
}

/// Notes that a process is opaque from here on.
pub fn make_opaque(process: ProcessRef) {
    KEEPS_MESSAGES.store(true, Ordering::Relaxed);
    process.turn.make_opaque();
}

/// Whether contents of messages may have to be kept: those of opaque processes, and between hardware domains.
#[inline]
pub fn keeps_messages() -> bool {
    KEEPS_MESSAGES.load(Ordering::Relaxed)
}

/// A thread's code is about to run for the first time. It has its process's turn.
pub fn thread_started(process: ProcessRef, thread: ThreadRef) {
    if let Some(pending) = pending_of(thread) {
        pending.begin(process.id.load(Ordering::Relaxed), thread.handle());
    }
    let [entry, argument] = thread.inside.start.each_ref().map(|word| word.load(Ordering::Relaxed) as u64);
    let program = process.program.get();
    let has_own_data = process.loaded.get().is_some_and(|loaded| !loaded.data.is_empty());
    let in_domain = thread.inside.space.get().is_some();
    if has_own_data {
        make_opaque(process);
    }
    if in_domain {
        KEEPS_MESSAGES.store(true, Ordering::Relaxed);
    }
    let started = Started {
        entry,
        argument,
        thread_block: thread.sip_block_address() as u64,
        image: process.loaded.get().map_or(0, |loaded| loaded.base as u64),
        writes_to_machine: process.debug_text.get().is_none(),
        in_domain,
        has_own_data,
        identity: program.map_or([0; 32], |program| program.identity),
        program: process.name().into(),
    };
    let text = words_of(&started.program);
    append(process, thread.handle(), (EventKind::Started, 0), 0, (&started.words(), &text), &[]);
}

/// A process installs a program.
pub fn program_installed(process: ProcessRef, package: &[u8]) {
    let (address, bytes) = (package.as_ptr().addr() as u64, package.len() as u64);
    let piece = Piece { address, bytes, content: Content::Bytes(()) };
    append(process, 0, (EventKind::Installed, 0), 0, (&[], &[]), &[piece]);
}

/// A process has ended.
pub fn process_ended(process: ProcessRef, epitaph: &Epitaph) {
    let text = words_of(&epitaph.text);
    append(process, 0, (EventKind::Ended, epitaph.kind as usize), 0, (&[epitaph.status], &text), &[]);
}

/// Text as words, as much as an event has room for.
fn words_of(text: &str) -> Vec<u64> {
    let word = |bytes: &[u8]| bytes.iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte));
    text.as_bytes().chunks(8).map(word).take(255).collect()
}

/// Takes a number for an event.
#[inline]
fn take_number() -> u64 {
    if !IS_ALONE.load(Ordering::Relaxed) {
        return NEXT.fetch_add(1, Ordering::Relaxed);
    }
    let number = NEXT.load(Ordering::Relaxed);
    NEXT.store(number + 1, Ordering::Relaxed);
    number
}

/// Keeps a thread's call until it returns.
#[inline(always)]
pub fn called(thread: ThreadRef, function: usize, arguments: &[u64], read: &[u64]) {
    // What a call of the end's time has left stays, for `finish`.
    if !IS_OVER.load(Ordering::Relaxed)
        && let Some(pending) = pending_of(thread)
    {
        pending.put(NEXT.load(Ordering::Relaxed), function, arguments, read);
    }
}

/// A thread's call has returned at once, without value or words, and no other thread of its process has run since: it
/// is only counted, until the thread's next entry, which is no later than after a byte's count. False if it is to be
/// recorded as others are.
#[inline(always)]
pub fn returned_plainly(thread: ThreadRef) -> bool {
    !IS_OVER.load(Ordering::Relaxed) && pending_of(thread).is_some_and(PendingCall::count)
}

/// A thread's call has returned.
#[inline(never)]
pub fn returned(
    process: ProcessRef,
    thread: ThreadRef,
    function: usize,
    (status, value, written): (u64, u64, &[u64]),
    pieces: &[Piece],
) {
    let pending = pending_of(thread).map(|pending| (pending, pending.get()));
    let Some((pending, Unreturned { number: next, process, thread, call: Some((called, check)), plain })) = pending
    else {
        return append(process, thread.handle(), (EventKind::Returned, function), status, (&[value], written), pieces);
    };
    let pieces = &pieces[..pieces.len().min(MAX_BLOCKS)];
    with_chunk(|chunk| {
        let number = take_number();
        let since_call = number.wrapping_sub(next);
        let whole = Whole { number, since_call, process, thread, function: called, check, plain, status };
        Event::write_whole(chunk, &whole, (value, written), pieces.len());
        pieces.iter().for_each(|piece| write_piece(chunk, piece));
        pending.clear();
    });
}

/// A thread ends. If it was in a call, that did not return.
pub fn thread_ended(thread: ThreadRef) {
    if let Some(pending) = pending_of(thread) {
        with_chunk(|chunk| {
            write_unreturned(chunk, pending.get());
            pending.clear();
        });
    }
}

fn pending_of(thread: ThreadRef) -> Option<&'static PendingCall> {
    thread.pending.first()
}

/// Writes a call without a return, and the plain calls before it, if there are any.
fn write_unreturned(chunk: &mut Filling, left: Unreturned) {
    if left.call.is_some() {
        Event::write_unreturned(chunk, &left);
    } else if left.plain > 0 {
        Event::write_unreturned(chunk, &Unreturned { number: NEXT.load(Ordering::Relaxed), ..left });
    }
}

/// Adds to the calling processor's chunk, unless the recording is over.
#[inline]
fn with_chunk(add: impl FnOnce(&mut Filling)) {
    let Some(chunk) = CHUNKS.get(cpu::this().number as usize) else { return };
    let mut chunk = chunk.lock();
    if IS_OVER.load(Ordering::Relaxed) {
        return;
    }
    add(&mut chunk);
    if chunk.length() >= CHUNK_BYTES {
        write(&mut chunk);
    }
}

/// Adds an event of a process. A call has its arguments and the words that it read.
pub fn append(
    process: ProcessRef,
    thread: u64,
    (kind, function): (EventKind, usize),
    status: u64,
    words: (&[u64], &[u64]),
    pieces: &[Piece],
) {
    let process = process.id.load(Ordering::Relaxed);
    let pieces = &pieces[..pieces.len().min(MAX_BLOCKS)];
    with_chunk(|chunk| {
        let number =
            if kind == EventKind::Called { NEXT.load(Ordering::Relaxed) } else { NEXT.fetch_add(1, Ordering::Relaxed) };
        let fixed = [number, process, thread, status];
        Event::write_head(chunk, (kind, function as u8), fixed, (words.0, words.1, pieces.len()));
        pieces.iter().for_each(|piece| write_piece(chunk, piece));
    });
}

fn write_piece(chunk: &mut Filling, piece: &Piece) {
    let Piece { address, bytes, content } = *piece;
    Event::write_block(chunk, (address, bytes, content), &KNOWN, &InBlock(address as usize));
}

/// What is in a block, from this address on.
struct InBlock(usize);

impl Contents for InBlock {
    #[inline(always)]
    fn words(&self, first: usize) -> [u64; 8] {
        memory::block_words(self.0 + first)
    }

    fn copy(&self, first: usize, into: &mut [u8]) {
        memory::copy_block(into, self.0 + first);
    }
}

fn write(chunk: &mut Filling) {
    chunk.complete().into_iter().for_each(|bytes| machine().record(bytes));
}

/// Ends the recording, before the machine ends. What happens afterwards is not in it.
pub fn finish() {
    if !is_on() || IS_OVER.swap(true, Ordering::SeqCst) {
        return;
    }
    let mut events = 0;
    for chunk in &CHUNKS {
        let mut chunk = chunk.lock();
        write(&mut chunk);
        events += chunk.events();
    }
    // Whoever had a chunk locked before has cleared its call; from now on none is cleared, and none takes the place of another.
    let mut chunk = CHUNKS[0].lock();
    let before = chunk.events();
    for pending in THREADS.all().filter_map(pending_of) {
        write_unreturned(&mut chunk, pending.get());
        if chunk.length() >= CHUNK_BYTES {
            write(&mut chunk);
        }
    }
    write(&mut chunk);
    machine().record(&chunk_of(Chunk::End, [events + chunk.events() - before]));
    machine().record_end();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_kept_in_words() {
        assert_eq!(words_of("recorded"), [u64::from_le_bytes(*b"recorded")]);
        assert_eq!(words_of("ab"), [u64::from_le_bytes(*b"ab\0\0\0\0\0\0")]);
        assert_eq!(words_of(&"x".repeat(10_000)).len(), 255);
    }
}
