//! The state of the system, as typed lists. Needs the manifest's `diagnostics` permission.

use alloc::string::String;

pub use abi::{
    Automaton, BlockShape, BlockState, ChannelRecord, CounterRecord, DMA, DeviceOperation, Direction, EndpointShape,
    HeldEndpoint, LATENCY_BUCKETS, LatencyRecord, MessageShape, NO_TRANSITION, ProcessRecord, ProcessState, StateRow,
    StreamRecord, ThreadRecord, ThreadState, TraceKind, TraceRecord, name_tag,
};

pub use abi::limits::STREAM_EVENTS;

use crate::Status;
use crate::exheap::sealed::Typed as _;
use crate::exheap::{ExBlock, ExVec, Plain};
use crate::{raw, thread_block};

/// Records allocated for on the first try; a longer list is requested again with more.
const FIRST_ROOM: usize = 64;

/// A list of records.
#[derive(Debug)]
pub struct List<T: Plain> {
    block: ExVec<T>,
    count: usize,
}

impl<T: Plain> core::ops::Deref for List<T> {
    type Target = [T];
    fn deref(&self) -> &[T] {
        &self.block[..self.count]
    }
}

fn list<T: Plain>(fill: impl Fn(u64) -> Result<u64, Status>) -> Result<List<T>, Status> {
    let mut room = FIRST_ROOM;
    loop {
        let block = ExVec::new(room)?;
        let count = usize::try_from(fill(block.handle())?).map_err(|_| Status::TooLarge)?;
        if count <= room {
            return Ok(List { block, count });
        }
        // The list may grow before the next call.
        room = count.saturating_add(FIRST_ROOM);
    }
}

/// Lists all SIPs.
pub fn processes() -> Result<List<ProcessRecord>, Status> {
    // SAFETY: the kernel writes into a block that `list` owns and to which there is no other reference.
    list(|block| unsafe { raw::list_processes(block) }.into_result())
}

/// Lists all threads.
pub fn threads() -> Result<List<ThreadRecord>, Status> {
    // SAFETY: as in `processes`.
    list(|block| unsafe { raw::list_threads(block) }.into_result())
}

/// Lists all channels.
pub fn channels() -> Result<List<ChannelRecord>, Status> {
    // SAFETY: as in `processes`.
    list(|block| unsafe { raw::list_channels(block) }.into_result())
}

/// Lists all counters of the system.
pub fn counters() -> Result<List<CounterRecord>, Status> {
    // SAFETY: as in `processes`.
    list(|block| unsafe { raw::list_counters(block) }.into_result())
}

/// Lists the latencies of messages, by contract and direction: of those that the kernel has sampled.
pub fn latencies() -> Result<List<LatencyRecord>, Status> {
    // SAFETY: as in `processes`.
    list(|block| unsafe { raw::list_latencies(block) }.into_result())
}

/// Events moved by one [`Stream::read`].
const STREAM_ROOM: usize = 4096;

/// The trace stream: events of all processes but this one, from its start until it is dropped.
#[derive(Debug)]
pub struct Stream {
    block: ExVec<StreamRecord>,
}

impl Stream {
    /// Starts it, with room for this many events that are not yet read, which is charged to the kernel memory of this
    /// process. [`Status::Busy`] if another process has the stream.
    pub fn start(events: u64) -> Result<Stream, Status> {
        let block = ExVec::new(STREAM_ROOM)?;
        raw::value::stream_start(events)?;
        Ok(Stream { block })
    }

    /// Takes waiting events: those of one processor in order. Returns them, and how many were lost since the call
    /// before because there was no room.
    pub fn read(&mut self) -> Result<(&[StreamRecord], u64), Status> {
        // SAFETY: as in `processes`; this value owns the block.
        let count = unsafe { raw::stream_read(self.block.handle()) }.into_result()?;
        let lost = thread_block::message_word(0);
        let records = usize::try_from(count).ok().and_then(|count| self.block.get(..count));
        Ok((records.ok_or(Status::Unknown)?, lost))
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        // 0 ends the stream of the caller, and is not refused.
        let _ = raw::value::stream_start(0);
    }
}

/// Returns the trace ring of a SIP, oldest event first; also of one that ended recently. Of one that died otherwise
/// than by exit, its core follows.
pub fn trace(process_id: u64) -> Result<List<TraceRecord>, Status> {
    // SAFETY: as in `processes`.
    list(|block| unsafe { raw::list_trace(process_id, block) }.into_result())
}

/// Returns one line for each of the last SIPs that ended, oldest first: process id, nanoseconds since the machine
/// started, name, epitaph.
pub fn epitaphs() -> Result<String, Status> {
    // SAFETY: the block becomes owned by the value made in `bytes`.
    let answer = unsafe { raw::epitaphs() };
    Ok(bytes(answer)?.to_text())
}

/// Returns the lines of the audit ring from number `from` on, and the number of the next.
pub(crate) fn audit_lines(from: u64) -> Result<(String, u64), Status> {
    // SAFETY: as in `epitaphs`.
    let answer = unsafe { raw::audit_read(from) };
    let next = thread_block::message_word(2);
    Ok((bytes(answer)?.to_text(), next))
}

/// Returns the automaton of a contract that installed programs use, by index; `None` past the end.
pub fn contract(index: usize) -> Result<Option<Automaton>, Status> {
    // SAFETY: as in `epitaphs`.
    match bytes(unsafe { raw::contract_automaton(index as u64) }) {
        Ok(encoded) => Automaton::decode(&encoded).map(Some).map_err(|_| Status::Unknown),
        Err(Status::NotFound) => Ok(None),
        Err(status) => Err(status),
    }
}

/// Returns the system manifest, as the boot image carries it. Needs the `system-manifest` permission.
pub fn system_manifest() -> Result<ExVec<u8>, Status> {
    // SAFETY: as in `epitaphs`.
    bytes(unsafe { raw::system_manifest() })
}

/// Subject of a [`measurement`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measured {
    /// The kernel's own image: when hosted, the file it was started from; on a bare machine, its code and constants.
    Kernel,
    /// The head of the system image, which covers all of it.
    System,
}

/// Returns the SHA-256 of the subject; [`Status::NotFound`] if the machine has no measurement of it.
pub fn measurement(of: Measured) -> Result<[u8; 32], Status> {
    let which = match of {
        Measured::Kernel => 0,
        Measured::System => 1,
    };
    raw::value::measurement(which)?;
    let mut digest = [0; 32];
    for (index, word) in digest.chunks_exact_mut(8).enumerate() {
        word.copy_from_slice(&thread_block::message_word(index).to_le_bytes());
    }
    Ok(digest)
}

/// Returns the number of installed programs.
pub fn program_count() -> usize {
    raw::value::program_count().unwrap_or(0) as usize
}

/// Returns the manifest of the installed program at `index`, in its binary form.
pub fn program_manifest(index: usize) -> Result<ExVec<u8>, Status> {
    // SAFETY: as in `epitaphs`.
    bytes(unsafe { raw::program_manifest(index as u64) })
}

/// Returns the image of the installed template of WebAssembly programs at `index`; [`Status::NotFound`] for any other
/// program. Needs the `install` permission.
pub fn template_image(index: usize) -> Result<ExVec<u8>, Status> {
    // SAFETY: as in `epitaphs`.
    bytes(unsafe { raw::template_image(index as u64) })
}

/// Returns how often programs were installed or removed since the machine started. A cache of data about programs reads
/// this number *before* the programs, and is invalid once the number differs.
pub fn program_changes() -> u64 {
    raw::value::program_changes().unwrap_or(0)
}

/// Returns the manifest of the installed program at `index`, and the key that its package is signed with: all zero if it
/// is unsigned.
pub fn program_and_key(index: usize) -> Result<(ExVec<u8>, [u8; 32]), Status> {
    // SAFETY: as in `epitaphs`.
    let answer = unsafe { raw::program_manifest(index as u64) };
    let mut key = [0; 32];
    for (word, part) in key.chunks_mut(8).enumerate() {
        part.copy_from_slice(&thread_block::message_word(2 + word).to_le_bytes());
    }
    Ok((bytes(answer)?, key))
}

/// Returns a name of a record without its padding.
pub fn name(padded: &[u8]) -> String {
    let length = padded.iter().position(|&byte| byte == 0).unwrap_or(padded.len());
    String::from_utf8_lossy(&padded[..length]).into_owned()
}

fn bytes(answer: abi::AbiReturn) -> Result<ExVec<u8>, Status> {
    let handle = answer.into_result()?;
    // SAFETY: each caller passes the answer of a call that has just returned a new block.
    let block = unsafe { ExBlock::from_answer(handle) };
    ExVec::from_block(block).map_err(|_| Status::Unknown)
}
