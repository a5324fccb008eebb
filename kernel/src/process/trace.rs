//! Trace ring of each SIP: its last events, kept for a while after its end.

use core::sync::atomic::{AtomicU64, Ordering};

use abi::{TraceKind, TraceRecord};
use alloc::vec::Vec;

use super::stream;
use crate::cpu;

/// Capacity of a ring, in events.
pub const EVENTS: usize = 32;

#[derive(Default)]
struct Event {
    kind: AtomicU64,
    a: AtomicU64,
    b: AtomicU64,
    time_ns: AtomicU64,
}

/// A ring of events. Threads of one SIP on several processors may overwrite each other's events; nothing but the trace
/// depends on it, so it is not worth a lock on every message.
#[derive(Default)]
pub struct Ring {
    count: AtomicU64,
    /// Process id of the SIP.
    process: AtomicU64,
    events: [Event; EVENTS],
}

impl Ring {
    /// Adds an event here and to the stream.
    #[inline(always)]
    pub fn add(&self, kind: TraceKind, a: u64, b: u64) {
        self.keep(kind, a, b);
        if stream::is_on() {
            stream::add(self.process.load(Ordering::Relaxed), kind, a, b, 0);
        }
    }

    /// Adds an event, with the time of this processor's last tick, here alone. For messages, which reach the stream with
    /// more about them.
    #[inline(always)]
    pub fn keep(&self, kind: TraceKind, a: u64, b: u64) {
        let number = self.count.load(Ordering::Relaxed);
        self.count.store(number + 1, Ordering::Relaxed);
        let event = &self.events[number as usize % EVENTS];
        event.kind.store(kind as u64, Ordering::Relaxed);
        event.a.store(a, Ordering::Relaxed);
        event.b.store(b, Ordering::Relaxed);
        event.time_ns.store(cpu::tick_ns(), Ordering::Relaxed);
    }

    /// Begins the ring again, for the SIP with this process id and with its first event.
    #[inline(always)]
    pub fn restart(&self, process: u64, parent: u64) {
        self.process.store(process, Ordering::Relaxed);
        self.count.store(0, Ordering::Relaxed);
        self.add(TraceKind::Created, parent, 0);
    }

    /// Fills `records` with the events, oldest first.
    pub fn copy_to(&self, records: &mut Vec<TraceRecord>) {
        records.clear();
        records.extend(self.records());
    }

    /// The events, oldest first; at most [`EVENTS`].
    pub fn records(&self) -> impl Iterator<Item = TraceRecord> {
        let count = self.count.load(Ordering::Relaxed);
        let first = count.saturating_sub(EVENTS as u64);
        (first..count).map(|sequence| {
            let event = &self.events[sequence as usize % EVENTS];
            TraceRecord {
                sequence,
                kind: event.kind.load(Ordering::Relaxed),
                a: event.a.load(Ordering::Relaxed),
                b: event.b.load(Ordering::Relaxed),
                time_ns: event.time_ns.load(Ordering::Relaxed),
            }
        })
    }
}
