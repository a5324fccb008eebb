//! What was refused: a ring of lines that whoever refuses adds to and a few may read.
//!
//! The kernel notes what it refuses itself; services that have the permission note what they refuse. A line that
//! repeats the one before is only counted, so that asking for one thing in a loop does not push out what
//! others did. Locks: the ring's own, innermost.

use abi::limits::{AUDIT_LINES, AUDIT_TEXT_BYTES};
use alloc::collections::VecDeque;
use alloc::string::String;
use core::fmt::Write;

use crate::lock::SpinLock;
use crate::machine::machine;
use crate::process::ProcessRef;

/// Who notes what the kernel refuses.
const KERNEL: &str = "kernel";

struct Entry {
    first_ms: u64,
    noted_by: &'static str,
    text: String,
    times: u64,
}

struct Ring {
    entries: VecDeque<Entry>,
    /// Number of the first entry.
    first: u64,
}

static RING: SpinLock<Ring> = SpinLock::new(Ring { entries: VecDeque::new(), first: 0 });

/// Adds what a SIP refused. Control characters, which could look like another line, are replaced.
pub fn note(by: ProcessRef, text: &str) {
    add(machine().monotonic_ns() / 1_000_000, by.name(), text);
}

/// Adds what the kernel refused: to whom, which right on what, by which rule.
#[cold]
pub fn refused(process: ProcessRef, right: &str, object: &str, rule: &str) {
    let principal = process.principal();
    let who = principal.as_ref().map_or("?", |principal| principal.text());
    add(machine().monotonic_ns() / 1_000_000, KERNEL, &abi::audit::refusal(who, right, object, rule));
}

fn add(now_ms: u64, noted_by: &'static str, text: &str) {
    let clean: String = text.chars().map(|each| if each.is_control() { '?' } else { each }).collect();
    let clean = abi::audit::beginning(&clean, AUDIT_TEXT_BYTES);
    let mut ring = RING.lock();
    if let Some(last) = ring.entries.back_mut()
        && last.noted_by == noted_by
        && last.text == clean
    {
        last.times += 1;
        return;
    }
    if ring.entries.len() == AUDIT_LINES || (crate::memory::is_low() && !ring.entries.is_empty()) {
        ring.entries.pop_front();
        ring.first += 1;
    }
    ring.entries.push_back(Entry { first_ms: now_ms, noted_by, text: clean, times: 1 });
}

/// The lines from the one with this number on, and the number of the first that is not there yet. If lines that were
/// asked for are no longer kept, the first line says how many.
pub fn lines(from: u64) -> (String, u64) {
    let ring = RING.lock();
    let mut text = String::new();
    if from < ring.first {
        // Writing to a String cannot fail, here and below.
        let _ = writeln!(text, "{} earlier refusals are no longer kept", ring.first - from);
    }
    let skipped = usize::try_from(from.saturating_sub(ring.first)).unwrap_or(usize::MAX);
    for entry in ring.entries.iter().skip(skipped) {
        let _ = write!(text, "{} {}: {}", entry.first_ms, entry.noted_by, entry.text);
        if entry.times > 1 {
            let _ = write!(text, ", {} times", entry.times);
        }
        text.push('\n');
    }
    (text, ring.first + ring.entries.len() as u64)
}
