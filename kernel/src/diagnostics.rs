//! Diagnostics for tools: processes, threads, channels, counters.

use abi::{ChannelRecord, CounterRecord, LatencyRecord, NAME_BYTES, ProcessRecord, ThreadRecord, ThreadState};
use alloc::format;
use core::sync::atomic::Ordering;

use crate::channel::CHANNELS;
use crate::exheap::BLOCKS;
use crate::process::{PROCESSES, ProcessRef};
use crate::sync::SYNCS;
use crate::thread::THREADS;
use crate::{contract, cpu, lifecycle, memory, sched, wait_word};

/// One record per SIP.
pub fn processes() -> impl Iterator<Item = ProcessRecord> {
    PROCESSES.iter().map(process_record)
}

fn process_record(process: ProcessRef) -> ProcessRecord {
    // Each lock is released before the next is taken: a guard in the literal would live to its end.
    let blocks = process.blocks.lock().count();
    let endpoints = process.endpoints.lock().count();
    let handles = process.handles();
    ProcessRecord {
        id: process.id.load(Ordering::Relaxed),
        parent: process.parent_id(),
        state: process.state() as u64,
        threads: u64::from(process.live_threads.load(Ordering::Relaxed)),
        memory_bytes: (process.page_usage().0 * abi::limits::PAGE_BYTES) as u64,
        blocks: u64::from(blocks),
        block_bytes: process.block_bytes.load(Ordering::Relaxed) as u64,
        endpoints: u64::from(endpoints),
        handles: u64::from(handles),
        children: u64::from(process.child_count()),
        cycles: process.cycles.load(Ordering::Relaxed),
        messages_sent: process.sent.load(Ordering::Relaxed),
        messages_received: process.received.load(Ordering::Relaxed),
        started_ns: process.started_ns.load(Ordering::Relaxed),
        kernel_bytes: process.kept_for() as u64,
        domain: process.space.get().map_or(0, |space| u64::from(space.domain().0) + 1),
        name: name_bytes(process.name()),
    }
}

/// One record per thread.
pub fn threads() -> impl Iterator<Item = ThreadRecord> {
    THREADS.iter().map(|thread| ThreadRecord {
        process: thread.owner().map_or(0, |process| process.id.load(Ordering::Relaxed)),
        thread: thread.handle(),
        state: match thread.state.load(Ordering::Relaxed) & 3 {
            wait_word::RUNNING => ThreadState::Running,
            wait_word::RUNNABLE => ThreadState::Runnable,
            wait_word::BLOCKED => ThreadState::Blocked,
            _ => ThreadState::Ended,
        } as u64,
        cycles: thread.cycles.load(Ordering::Relaxed),
    })
}

/// One record per channel.
pub fn channels() -> impl Iterator<Item = ChannelRecord> {
    CHANNELS.iter().filter_map(|channel| {
        let inner = channel.lock();
        let contract = inner.contract?;
        let [importer, exporter] = &inner.sides;
        Some(ChannelRecord {
            channel: u64::from(channel.index()),
            importer: importer.owner_id(),
            exporter: exporter.owner_id(),
            importer_state: u64::from(importer.state),
            exporter_state: u64::from(exporter.state),
            waiting_for_importer: importer.waiting.into(),
            waiting_for_exporter: exporter.waiting.into(),
            contract: name_bytes(&contract.automaton.name),
            importer_state_name: name_bytes(contract.state_name(importer.state)),
            exporter_state_name: name_bytes(contract.state_name(exporter.state)),
        })
    })
}

/// Latencies of each contract and direction that has some.
pub fn latencies() -> impl Iterator<Item = LatencyRecord> {
    let contracts = (0..).map_while(contract::by_index);
    let sides = contracts.flat_map(|contract| [(contract, 0), (contract, 1)]);
    sides.filter_map(|(contract, side)| {
        let (buckets, sum_ns) = contract.latencies[side].read();
        let contract = name_bytes(&contract.automaton.name);
        let record = LatencyRecord { to_exporter: side as u64, sum_ns, buckets, contract };
        (record.count() > 0).then_some(record)
    })
}

/// The system's counters.
pub fn counters() -> impl Iterator<Item = CounterRecord> {
    let (pages, exchange, stacks) = memory::usage();
    let list = [
        ("processes", u64::from(PROCESSES.live())),
        ("processes created", lifecycle::CREATED.load(Ordering::Relaxed)),
        ("processes ended", lifecycle::ENDED.load(Ordering::Relaxed)),
        ("threads", u64::from(THREADS.live())),
        ("channels", u64::from(CHANNELS.live())),
        ("blocks", u64::from(BLOCKS.live())),
        ("compound principals", crate::principal::kept()),
        ("quarantined blocks", crate::hardware::quarantined_blocks() as u64),
        ("synchronization objects", u64::from(SYNCS.live())),
        ("pages", pages as u64),
        ("exchange bytes", exchange as u64),
        ("stacks", stacks as u64),
        ("arena bytes", memory::arena_in_use() as u64),
        ("kernel heap bytes", crate::heap::in_use() as u64),
        ("idle processors", u64::from(sched::idle_processors())),
        ("processors", crate::machine::machine().processor_count() as u64),
    ];
    let in_use = memory::in_use_bytes().map(|bytes| ("memory bytes in use", bytes));
    let switches = cpu::switches().enumerate();
    let longest = crate::latency::longest();
    let longest = longest.map(|(name, ns)| CounterRecord { value: ns, name: name_bytes(&format!("ns {name}")) });
    list.into_iter()
        .chain(in_use)
        .chain(crate::machine::machine().counters())
        .map(|(name, value)| CounterRecord { value, name: name_bytes(name) })
        .chain(switches.map(|(number, value)| CounterRecord {
            value,
            name: name_bytes(&format!("switches of processor {number}")),
        }))
        .chain(longest)
}

/// Encodes a name for a record: cut at a character boundary, padded with zero bytes.
fn name_bytes(name: &str) -> [u8; NAME_BYTES] {
    let mut bytes = [0; NAME_BYTES];
    let cut = name.floor_char_boundary(NAME_BYTES);
    bytes[..cut].copy_from_slice(&name.as_bytes()[..cut]);
    bytes
}
