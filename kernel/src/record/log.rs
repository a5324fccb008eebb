//! The chunks of a recording: one in work for each processor, written when it is full.

use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use recording::{Chunk, Content, Event, EventKind, HEADER_BYTES, Header, MAX_BLOCKS, chunk_of, complete_chunk};

use crate::lock::SpinLock;
use crate::machine::machine;
use crate::process::ProcessRef;
use crate::{cpu, memory};

/// Bytes of a chunk at which it is written.
const CHUNK_BYTES: usize = 1 << 20;
const PROCESSORS_MAX: usize = 64;

static CHUNKS: [SpinLock<Vec<u8>>; PROCESSORS_MAX] = [const { SpinLock::new(Vec::new()) }; PROCESSORS_MAX];
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

/// Writes what stands at the start of the file.
pub fn start(header: &Header, system_image: &[u8]) {
    machine().record(&chunk_of(Chunk::Header, header.words()));
    let mut chunk = alloc::vec![0; HEADER_BYTES];
    chunk.extend_from_slice(system_image);
    chunk.resize(chunk.len().next_multiple_of(8), 0);
    complete_chunk(Chunk::System, &mut chunk);
    machine().record(&chunk);
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
    if chunk.is_empty() {
        chunk.reserve(CHUNK_BYTES + CHUNK_BYTES / 4);
        chunk.resize(HEADER_BYTES, 0);
    }
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let fixed = [number, process, thread, status];
    Event::write_head(&mut chunk, (kind, function as u16), fixed, (words.0, words.1, pieces.len()));
    pieces.iter().for_each(|piece| write_piece(&mut chunk, piece));
    if chunk.len() >= CHUNK_BYTES {
        write(&mut chunk);
    }
}

fn write_piece(chunk: &mut Vec<u8>, piece: &Piece) {
    let Piece { address, bytes, content } = *piece;
    if content != Content::Bytes(()) {
        Event::write_block_head(chunk, address, bytes, content);
        return;
    }
    Event::write_block_head(chunk, address, bytes, Content::Bytes(()));
    memory::append_block(chunk, address as usize, bytes as usize);
    chunk.resize(chunk.len().next_multiple_of(8), 0);
}

fn write(chunk: &mut Vec<u8>) {
    complete_chunk(Chunk::Events, chunk);
    machine().record(chunk);
    chunk.clear();
    chunk.resize(HEADER_BYTES, 0);
}

/// Ends the recording, before the machine ends. What happens afterwards is not in it.
pub fn finish() {
    if !super::is_on() || IS_OVER.swap(true, Ordering::SeqCst) {
        return;
    }
    for chunk in &CHUNKS {
        let mut chunk = chunk.lock();
        if chunk.len() > HEADER_BYTES {
            write(&mut chunk);
        }
    }
    machine().record(&chunk_of(Chunk::End, [NEXT.load(Ordering::SeqCst)]));
}
