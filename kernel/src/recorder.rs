//! The writer of a recording: whether there is one, its events, and its chunks, one in work for each processor, which is
//! written when it is full.
//!
//! Neighbours: `record` above has the calls. Deliberately not here: what a call gives its caller.

use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use recording::{
    Chunk, Content, Event, EventKind, Filling, Header, MAX_BLOCKS, Started, chunk_head, chunk_of, padding,
};

use crate::lock::SpinLock;
use crate::machine::machine;
use crate::process::{Epitaph, ProcessRef};
use crate::thread::ThreadRef;
use crate::{cpu, memory};

/// Bytes of a chunk at which it is written.
const CHUNK_BYTES: usize = 128 << 10;
const PROCESSORS_MAX: usize = 64;

static ON: AtomicBool = AtomicBool::new(false);
static CHUNKS: [SpinLock<Filling>; PROCESSORS_MAX] = [const { SpinLock::new(Filling::NONE) }; PROCESSORS_MAX];
/// Number of the next event. Taken with a chunk locked, so that whoever has locked them all knows that none is missing.
static NEXT: AtomicU64 = AtomicU64::new(0);
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
    let layout = machine().layout();
    let arenas = [layout.images, layout.stacks, layout.memory, layout.windows];
    let arenas = arenas.map(|arena| (arena.base as u64, arena.bytes as u64));
    let header = Header { functions: recording::functions(), arenas, system_bytes: system_image.len() as u64 };
    machine().record(&chunk_of(Chunk::Header, header.words()));
    machine().record(&chunk_head(Chunk::System, system_image));
    machine().record(system_image);
    machine().record(padding(system_image.len()));
    ON.store(true, Ordering::Relaxed);
}

/// A thread's code is about to run for the first time. It has its process's turn.
pub fn thread_started(process: ProcessRef, thread: ThreadRef) {
    let [entry, argument] = thread.inside.start.each_ref().map(|word| word.load(Ordering::Relaxed) as u64);
    let program = process.program.get();
    let has_own_data = process.loaded.get().is_some_and(|loaded| !loaded.data.is_empty());
    if has_own_data {
        process.turn.make_opaque();
    }
    let started = Started {
        entry,
        argument,
        thread_block: thread.sip_block_address() as u64,
        image: process.loaded.get().map_or(0, |loaded| loaded.base as u64),
        writes_to_machine: process.debug_text.get().is_none(),
        in_domain: thread.inside.space.get().is_some(),
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

/// Adds an event of a process.
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
    let Some(chunk) = CHUNKS.get(cpu::this().number as usize) else { return };
    let mut chunk = chunk.lock();
    if IS_OVER.load(Ordering::Relaxed) {
        return;
    }
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let fixed = [number, process, thread, status];
    Event::write_head(&mut chunk, (kind, function as u8), fixed, (words.0, words.1, pieces.len()));
    pieces.iter().for_each(|piece| write_piece(&mut chunk, piece));
    if chunk.length() >= CHUNK_BYTES {
        write(&mut chunk);
    }
}

fn write_piece(chunk: &mut Filling, piece: &Piece) {
    let Piece { address, bytes, content } = *piece;
    Event::write_block_head(chunk, address, bytes, content);
    if content == Content::Bytes(()) {
        let bytes = bytes as usize;
        let (block, filling) = chunk.room(bytes.next_multiple_of(8)).split_at_mut(bytes);
        memory::copy_block(block, address as usize);
        filling[..padding(bytes).len()].fill(0);
        chunk.filled(bytes.next_multiple_of(8));
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
    for chunk in &CHUNKS {
        write(&mut chunk.lock());
    }
    machine().record(&chunk_of(Chunk::End, [NEXT.load(Ordering::SeqCst)]));
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
