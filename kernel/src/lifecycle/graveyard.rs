//! Epitaphs and traces of SIPs that have ended.

use alloc::borrow::Cow;
use alloc::collections::VecDeque;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::Write;
use core::sync::atomic::Ordering;

use abi::{ProcessState, TraceRecord};

use super::cores;
use crate::cpu;
use crate::lock::SpinLock;
use crate::preempt;
use crate::process::{Epitaph, PROCESSES, ProcessRef};

/// The epitaph of a SIP that has ended.
struct Grave {
    id: u64,
    /// Last tick of its processor before it ended, in nanoseconds of the monotonic clock.
    time_ns: u64,
    /// Name of the program.
    name: &'static str,
    text: Cow<'static, str>,
}

/// Records of ended SIPs.
struct Graveyard {
    epitaphs: VecDeque<Grave>,
    traces: VecDeque<(u64, Vec<TraceRecord>)>,
}

static GRAVEYARD: SpinLock<Graveyard> = SpinLock::new(Graveyard { epitaphs: VecDeque::new(), traces: VecDeque::new() });
const EPITAPHS_KEPT: usize = 256;
const TRACES_KEPT: usize = 64;

/// Records the epitaph and the trace of a SIP that has just ended.
pub(super) fn remember(process: ProcessRef, epitaph: &Epitaph) {
    let id = process.id.load(Ordering::Relaxed);
    let grave = Grave { id, time_ns: cpu::tick_ns(), name: process.name(), text: epitaph.text.clone() };
    let mut graveyard = GRAVEYARD.lock();
    if graveyard.epitaphs.len() == EPITAPHS_KEPT {
        graveyard.epitaphs.pop_front();
    }
    graveyard.epitaphs.push_back(grave);
    // The memory of the oldest is reused for the newest.
    let oldest = if graveyard.traces.len() == TRACES_KEPT { graveyard.traces.pop_front() } else { None };
    let mut records = oldest.map(|(_, records)| records).unwrap_or_default();
    process.trace.copy_to(&mut records);
    graveyard.traces.push_back((id, records));
}

/// Formats the kept epitaphs, one per line.
pub fn epitaph_lines() -> String {
    let graveyard = GRAVEYARD.lock();
    let mut text = String::new();
    for Grave { id, time_ns, name, text: epitaph } in &graveyard.epitaphs {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{id} {time_ns} {name} {epitaph}");
    }
    text
}

/// Returns the trace of a SIP that runs or ended recently; of one that died, with its core.
pub fn trace_of(id: u64) -> Option<Vec<TraceRecord>> {
    let running = preempt::pausing(PROCESSES.iter()).find(|process| process.id.load(Ordering::Relaxed) == id);
    if let Some(process) = running {
        // Its parent may still hold one that has ended.
        let has_ended = process.state() == ProcessState::Ended;
        let mut records = Vec::new();
        process.trace.copy_to(&mut records);
        if has_ended {
            cores::append(id, &mut records);
        }
        return Some(records);
    }
    let kept = GRAVEYARD.lock().traces.iter().find(|(dead, _)| *dead == id).map(|(_, records)| records.clone());
    let mut records = kept.or_else(|| cores::events(id))?;
    cores::append(id, &mut records);
    Some(records)
}
