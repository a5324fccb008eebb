//! Debugging and diagnostics.

use abi::limits::{DEBUG_SINK_NAME_WORD, DEBUG_SINK_TEXT_WORD};
use abi::{Status, StreamRecord, TraceKind};
use manifest_model::Permission;

use super::channels::close_sync;
use super::exchange::new_block;
use super::{Caller, caller};
use crate::machine::machine;
use crate::memory::Record;
use crate::process::stream;
use crate::sync::SyncKind;
use crate::sync::debug_sink::{self, Found, Written};
use crate::{arch, audit, claims, contract, debug_output, diagnostics, exheap, lifecycle, memory, preempt, sched};

#[inline(always)]
pub fn cycles() -> Result<u64, Status> {
    Ok(arch::cycles())
}

pub fn debug_write(length: u64) -> Result<u64, Status> {
    let caller = caller()?;
    let length = usize::try_from(length).map_err(|_| Status::TooLarge)?;
    let text = caller.buffer.bytes(length).ok_or(Status::TooLarge)?;
    let written = debug_sink::write(caller.process, &text);
    if written == Written::NoSink {
        debug_output::lines_of(caller.process.name(), &text);
    }
    drop(text);
    if written == Written::NearlyFull {
        sched::yield_now();
    }
    Ok(0)
}

pub fn debug_sink_create() -> Result<u64, Status> {
    debug_sink::create(caller()?.process)
}

pub fn debug_sink_give(child: u64, sink: u64) -> Result<u64, Status> {
    let caller = caller()?;
    let sink = debug_sink::reference(claims::sync(sink, caller.process)?)?;
    claims::child(child)?.give_debug_sink(caller.process, sink).map(|()| 0)
}

pub fn debug_sink_read(sink: u64) -> Result<u64, Status> {
    let caller = caller()?;
    let buffer = caller.buffer;
    let mut room = [0; debug_sink::READ_BYTES];
    Ok(match debug_sink::read(claims::sync(sink, caller.process)?, &mut room)? {
        Found::Lost(bytes) => {
            buffer.set(0, bytes);
            0
        }
        Found::Text { process_id, name, bytes } => {
            buffer.set(0, process_id);
            buffer.set(1, name.len() as u64);
            buffer.put_bytes(DEBUG_SINK_NAME_WORD, name.as_bytes());
            buffer.put_bytes(DEBUG_SINK_TEXT_WORD, &room[..bytes]) as u64
        }
    })
}

pub fn debug_sink_close(sink: u64) -> Result<u64, Status> {
    close_sync(sink, SyncKind::DebugSink)
}

pub fn trace_note(a: u64, b: u64) -> Result<u64, Status> {
    let caller = caller()?;
    caller.process.trace.add(TraceKind::Note, a, b);
    // A program that reports its progress may be part of a measured boot.
    machine().boot_mark(caller.process.name());
    Ok(0)
}

/// Takes a block from a permitted caller for the kernel to write to.
fn report<R>(block: u64, write: impl FnOnce(usize, usize) -> R) -> Result<R, Status> {
    let caller = caller()?;
    caller.needs(Permission::Diagnostics)?;
    let taken = claims::block(block)?;
    exheap::take_from(caller.process, taken, block)?;
    let address = taken.address.load(core::sync::atomic::Ordering::Relaxed);
    let answer = write(address, taken.size());
    exheap::give_to(caller.process, taken);
    Ok(answer)
}

fn permitted() -> Result<Caller, Status> {
    let caller = caller()?;
    caller.needs(Permission::Diagnostics)?;
    Ok(caller)
}

/// Writes the records that fit and returns the total number. The caller may be preempted.
fn write_all<R: Record>(address: usize, size: usize, records: impl Iterator<Item = R>) -> u64 {
    let mut count = 0;
    for record in preempt::pausing(records) {
        memory::write_record(address, size, count, &record);
        count += 1;
    }
    count as u64
}

macro_rules! lists {
    ($($name:ident = $records:expr;)*) => {
        $(pub fn $name(block: u64) -> Result<u64, Status> {
            report(block, |address, size| write_all(address, size, $records))
        })*
    };
}

lists! {
    list_processes = diagnostics::processes();
    list_threads = diagnostics::threads();
    list_channels = diagnostics::channels();
    list_counters = diagnostics::counters();
    list_latencies = diagnostics::latencies();
}

pub fn stream_start(events: u64) -> Result<u64, Status> {
    stream::start(permitted()?.process, events).map(|()| 0)
}

pub fn stream_read(block: u64) -> Result<u64, Status> {
    let caller = permitted()?;
    let (count, lost) = report(block, |address, size| {
        let write = |place, record: &StreamRecord| memory::write_record(address, size, place, record);
        stream::read(caller.process, size / size_of::<StreamRecord>(), write)
    })??;
    caller.buffer.set(0, lost);
    Ok(count)
}

pub fn list_trace(process_id: u64, block: u64) -> Result<u64, Status> {
    permitted()?;
    let records = lifecycle::trace_of(process_id).ok_or(Status::NotFound)?;
    report(block, |address, size| write_all(address, size, records.into_iter()))
}

pub fn epitaphs() -> Result<u64, Status> {
    new_block(permitted()?, lifecycle::epitaph_lines().as_bytes())
}

pub fn audit_note(length: u64) -> Result<u64, Status> {
    let caller = caller()?;
    caller.needs(Permission::Audit)?;
    audit::note(caller.process.name(), &caller.text(length)?);
    Ok(0)
}

pub fn audit_read(from: u64) -> Result<u64, Status> {
    let caller = permitted()?;
    let (text, next) = audit::lines(from);
    let block = new_block(caller, text.as_bytes())?;
    caller.buffer.set(2, next);
    Ok(block)
}

pub fn contract_automaton(index: u64) -> Result<u64, Status> {
    let caller = permitted()?;
    let contract = contract::by_index(index as usize).ok_or(Status::NotFound)?;
    new_block(caller, &contract.bytes)
}
