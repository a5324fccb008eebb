//! Takes the run-time checks of safe Rust out of machine code.
//!
//! A check is a conditional jump to code that does nothing but call a function of `core` that reports the failure. It
//! becomes a NOP, and so does the comparison before it, if nothing else uses its flags; a jump over such a call becomes
//! unconditional. Addresses do not change. As long as no check would have failed, the code computes the same. What stays:
//! the NOPs, operands that only checks needed, the calls that nothing reaches any more.
//!
//! Deliberately not here: ELF files (`image`).

use std::collections::{BTreeMap, BTreeSet};

use iced_x86::FlowControl;

use super::code::{Code, is_conditional_jump, target};
use super::flags;

/// Maximum instructions between a jump and the call that reports the failure.
const STEPS: usize = 32;
/// Longest NOP, in bytes: an FS override and three operand-size prefixes before the longest usual form.
const NOP_BYTES_MAX: usize = 12;

/// What a check looks after.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Indices and ranges of arrays, slices and strings.
    Bounds,
    /// Divisions by zero and overflows.
    Arithmetic,
    /// Futures polled after their end.
    Resumed,
    /// Values that are not there: `unwrap` and `expect`, and borrows at run time.
    Unwrap,
}

/// What becomes of an instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Edit {
    /// A NOP.
    Nothing,
    /// A jump that is always taken.
    Always,
}

/// Numbers of checks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counts {
    /// Removed checks by what they look after.
    pub removed: BTreeMap<Kind, usize>,
    /// Removed comparisons.
    pub comparisons: usize,
    /// Calls that report a failure to which no removed check led.
    pub remaining: usize,
}

impl Counts {
    /// All removed checks.
    pub fn all_removed(&self) -> usize {
        self.removed.values().sum()
    }
}

/// Removes checks from the code of a section that begins at `address`. `failing` are the functions that report
/// failures, `indirect` further addresses to which control may go. Code that changed has a NOP that marks it.
pub fn remove(bytes: &mut [u8], address: u64, failing: &BTreeMap<u64, Kind>, indirect: &BTreeSet<u64>) -> Counts {
    let code = Code::decode(bytes, address);
    let mut counts = Counts::default();
    let mut edits = BTreeMap::new();
    let mut reached = BTreeSet::new();
    for (index, instruction) in code.iter().filter(|(_, instruction)| is_conditional_jump(instruction)) {
        let taken = target(instruction).and_then(|target| code.index(target));
        let taken = taken.and_then(|start| failure_at(&code, start, failing));
        let (edit, failure) = match (taken, failure_at(&code, index + 1, failing)) {
            (Some(failure), None) => (Edit::Nothing, failure),
            (None, Some(failure)) => (Edit::Always, failure),
            _ => continue,
        };
        edits.insert(index, edit);
        reached.insert(failure.call);
        *counts.removed.entry(failure.kind).or_default() += 1;
    }
    let jumps: Vec<usize> = edits.keys().copied().collect();
    for jump in jumps {
        let comparison = flags::comparison_before(&code, jump).filter(|index| !edits.contains_key(index));
        if let Some(index) = comparison.filter(|index| flags::are_dead(&code, index + 1, &edits)) {
            edits.insert(index, Edit::Nothing);
            counts.comparisons += 1;
        }
    }
    if !edits.values().any(|edit| *edit == Edit::Nothing) {
        // Code without a NOP would have no mark.
        return Counts { remaining: remaining(&code, failing, &BTreeSet::new()), ..Counts::default() };
    }
    counts.remaining = remaining(&code, failing, &reached);
    let targets: BTreeSet<u64> = code.targets().union(indirect).copied().collect();
    write(bytes, address, &code, &edits, &targets);
    counts
}

/// A call that reports a failure.
#[derive(Debug, Clone, Copy)]
struct Failure {
    kind: Kind,
    /// Its index.
    call: usize,
}

/// Returns the call that straight-line code from `start` on leads to, if it reports a failure.
fn failure_at(code: &Code, start: usize, failing: &BTreeMap<u64, Kind>) -> Option<Failure> {
    let mut index = start;
    for _ in 0..STEPS {
        let instruction = code.get(index)?;
        match instruction.flow_control() {
            FlowControl::Next => index += 1,
            FlowControl::Call => return failing.get(&target(instruction)?).map(|&kind| Failure { kind, call: index }),
            FlowControl::UnconditionalBranch => {
                let target = target(instruction)?;
                if let Some(&kind) = failing.get(&target) {
                    return Some(Failure { kind, call: index });
                }
                index = code.index(target)?;
            }
            _ => return None,
        }
    }
    None
}

/// Counts the calls that report failures, beside those reached by removed checks.
fn remaining(code: &Code, failing: &BTreeMap<u64, Kind>, reached: &BTreeSet<usize>) -> usize {
    let reports = code.iter().filter(|(index, instruction)| {
        let leads = matches!(instruction.flow_control(), FlowControl::Call | FlowControl::UnconditionalBranch);
        leads && target(instruction).is_some_and(|target| failing.contains_key(&target)) && !reached.contains(index)
    });
    reports.count()
}

/// Writes the edits. Neighbours become one NOP where control goes to none but the first.
fn write(bytes: &mut [u8], address: u64, code: &Code, edits: &BTreeMap<usize, Edit>, targets: &BTreeSet<u64>) {
    let mut run: Option<(u64, u64)> = None;
    for (&index, edit) in edits {
        let Some(instruction) = code.get(index) else { continue };
        let (start, end) = (instruction.ip(), instruction.next_ip());
        if *edit == Edit::Always {
            always(place(bytes, address, (start, end)));
            continue;
        }
        run = match run {
            Some((first, last)) if last == start && !targets.contains(&start) => Some((first, end)),
            Some(before) => {
                nops(place(bytes, address, before));
                Some((start, end))
            }
            None => Some((start, end)),
        };
    }
    if let Some(last) = run {
        nops(place(bytes, address, last));
    }
}

fn place(bytes: &mut [u8], address: u64, (start, end): (u64, u64)) -> &mut [u8] {
    &mut bytes[(start - address) as usize..(end - address) as usize]
}

/// Makes a conditional jump unconditional: `7x rel8` or `0f 8x rel32`.
fn always(jump: &mut [u8]) {
    match jump {
        [opcode, _] => *opcode = 0xeb,
        [0x0f, _, a, b, c, d] => {
            // One byte shorter, so that its end is one byte farther from the target.
            let distance = i32::from_le_bytes([*a, *b, *c, *d]).wrapping_add(1).to_le_bytes();
            jump[0] = 0xe9;
            jump[1..5].copy_from_slice(&distance);
            jump[5] = 0x90;
        }
        // With prefixes, which compilers do not emit.
        _ => {}
    }
}

/// Fills the place with NOPs that carry an FS override, by which every image check but that of the measured machines
/// refuses the image.
fn nops(mut place: &mut [u8]) {
    while !place.is_empty() {
        let length = match place.len() {
            13 => 7,
            length => length.min(NOP_BYTES_MAX),
        };
        let (nop, rest) = place.split_at_mut(length);
        write_nop(nop);
        place = rest;
    }
}

/// Writes one NOP of 1 to [`NOP_BYTES_MAX`] bytes (Intel SDM volume 2, NOP, table 4-12).
fn write_nop(nop: &mut [u8]) {
    let body: &[u8] = match nop.len() {
        0..=3 => &[0x90],
        4 => &[0x0f, 0x1f, 0x00],
        5 => &[0x0f, 0x1f, 0x40, 0x00],
        6 | 7 => &[0x0f, 0x1f, 0x44, 0x00, 0x00],
        8 => &[0x0f, 0x1f, 0x80, 0, 0, 0, 0],
        _ => &[0x0f, 0x1f, 0x84, 0x00, 0, 0, 0, 0],
    };
    let prefixes = nop.len() - body.len();
    nop[..prefixes].fill(0x66);
    nop[prefixes..].copy_from_slice(body);
    if prefixes > 0 {
        nop[0] = 0x64;
    }
}

#[cfg(test)]
mod tests;
