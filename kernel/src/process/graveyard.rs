//! What is known of SIPs that have ended.

use alloc::collections::VecDeque;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::sync::atomic::Ordering;

use abi::{EpitaphKind, TraceRecord};

use super::{PROCESSES, ProcessRef};
use crate::lock::SpinLock;

/// How a SIP ended.
#[derive(Clone, Debug)]
pub struct Epitaph {
    /// The kind.
    pub kind: EpitaphKind,
    /// Exit status, if it exited.
    pub status: u64,
    /// For people.
    pub text: String,
}

impl Epitaph {
    /// An epitaph.
    pub fn new(kind: EpitaphKind, text: impl Into<String>) -> Epitaph {
        Epitaph { kind, status: 0, text: text.into() }
    }

    /// That of a SIP which exited by itself.
    pub fn exited(status: u64) -> Epitaph {
        let text = if status == 0 { "exited".to_string() } else { format!("exited with status {}", status as i64) };
        Epitaph { kind: EpitaphKind::Exited, status, text }
    }
}

/// What is kept of SIPs that have ended.
struct Graveyard {
    lines: VecDeque<String>,
    traces: VecDeque<(u64, Vec<TraceRecord>)>,
}

static GRAVEYARD: SpinLock<Graveyard> = SpinLock::new(Graveyard { lines: VecDeque::new(), traces: VecDeque::new() });
const EPITAPHS_KEPT: usize = 256;
const TRACES_KEPT: usize = 64;

/// Keeps the epitaph and trace of a SIP that has just ended.
pub(super) fn remember(process: ProcessRef, epitaph: &Epitaph) {
    let id = process.id.load(Ordering::Relaxed);
    let line = format!("{id} {} {}", process.name(), epitaph.text);
    let records = process.trace.records();
    let mut graveyard = GRAVEYARD.lock();
    if graveyard.lines.len() == EPITAPHS_KEPT {
        graveyard.lines.pop_front();
    }
    graveyard.lines.push_back(line);
    if graveyard.traces.len() == TRACES_KEPT {
        graveyard.traces.pop_front();
    }
    graveyard.traces.push_back((id, records));
}

/// The epitaphs that are kept, a line each.
pub fn epitaph_lines() -> String {
    let graveyard = GRAVEYARD.lock();
    let mut text = String::new();
    for line in &graveyard.lines {
        text.push_str(line);
        text.push('\n');
    }
    text
}

/// The trace of a SIP that runs or ended lately.
pub fn trace_of(id: u64) -> Option<Vec<TraceRecord>> {
    let running = PROCESSES.iter().find(|process| process.id.load(Ordering::Relaxed) == id);
    if let Some(process) = running {
        return Some(process.trace.records());
    }
    let graveyard = GRAVEYARD.lock();
    graveyard.traces.iter().find(|(dead, _)| *dead == id).map(|(_, records)| records.clone())
}
