//! Destination of a SIP's debug text.

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// A debug sink, as its writers name it.
#[derive(Clone, Copy)]
pub struct SinkRef {
    /// Index of its slot.
    pub index: u32,
    /// Its unique number, above 0, never reused.
    pub number: u64,
}

/// The sink that a SIP writes to, if any. Changes only before the SIP's first thread runs.
#[derive(Default)]
pub struct DebugText {
    index: AtomicU32,
    /// 0 without a sink.
    number: AtomicU64,
}

impl DebugText {
    /// Directs the text to this sink, or to the debug output.
    pub fn set(&self, sink: Option<SinkRef>) {
        self.index.store(sink.map_or(0, |sink| sink.index), Ordering::Relaxed);
        self.number.store(sink.map_or(0, |sink| sink.number), Ordering::Relaxed);
    }

    /// Returns the sink.
    pub fn get(&self) -> Option<SinkRef> {
        let number = self.number.load(Ordering::Relaxed);
        (number != 0).then(|| SinkRef { index: self.index.load(Ordering::Relaxed), number })
    }
}
