//! Audit log: a ring of lines about refused requests, with few permitted readers.
//!
//! The kernel logs its own refusals; services with the permission log theirs. No principal can flood out the lines of
//! others: a repetition of a recent line is only counted, and when the ring is full, the principal with the most lines
//! loses its oldest. Locks: the ring's own, innermost.

use abi::Printable;
use abi::limits::{AUDIT_LINES, AUDIT_TEXT_BYTES};
use alloc::collections::VecDeque;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt::Write;

use crate::lock::SpinLock;
use crate::machine::machine;
use crate::preempt;

/// Author of the kernel's own lines.
const KERNEL: &str = "kernel";
/// Lines formatted for a reader per locking of the ring.
const LINES_AT_ONCE: usize = 32;
/// Number of recent lines that a new one is compared with: more than one, so that alternating lines are folded, too.
const FOLDED_LINES: usize = 16;

struct Entry {
    number: u64,
    first_ms: u64,
    noted_by: &'static str,
    text: String,
    times: u64,
    /// Index among the owners.
    owner: usize,
}

/// A principal and its number of kept lines; an entry without lines is free.
struct Owner {
    name: String,
    lines: usize,
}

struct Ring {
    /// By number.
    entries: VecDeque<Entry>,
    owners: Vec<Owner>,
    /// Number of the next entry.
    next: u64,
}

static RING: SpinLock<Ring> = SpinLock::new(Ring::new());

/// Logs a refusal by the program of this name. Characters that could forge another line are escaped.
pub fn note(program: &'static str, text: &str) {
    add(program, text);
}

/// Logs a refusal by the kernel: the principal, the right, the object and the rule.
#[cold]
pub fn refused(principal: &str, right: &str, object: &str, rule: &str) {
    add(KERNEL, &abi::audit::refusal(principal, right, object, rule));
}

fn add(noted_by: &'static str, text: &str) {
    let clean = abi::audit::beginning(&Printable(text.as_bytes()).to_string(), AUDIT_TEXT_BYTES);
    let now_ms = machine().monotonic_ns() / 1_000_000;
    let room = if crate::memory::is_low() { 0 } else { AUDIT_LINES };
    RING.lock().add(now_ms, noted_by, clean, room);
}

/// Returns the lines from this number on, and the number of the next. If requested lines are no longer kept, the first
/// line has their number.
pub fn lines(from: u64) -> (String, u64) {
    let (mut text, mut next) = (RING.lock().lost(from), from);
    loop {
        let ring = RING.lock();
        let Some(after) = ring.write_lines(next, LINES_AT_ONCE, &mut text) else { return (text, ring.next) };
        drop(ring);
        next = after;
        preempt::pause();
    }
}

impl Ring {
    const fn new() -> Ring {
        Ring { entries: VecDeque::new(), owners: Vec::new(), next: 0 }
    }

    /// Adds a line, after evicting one if there are `room` or more.
    fn add(&mut self, now_ms: u64, noted_by: &'static str, text: String, room: usize) {
        let last = self.entries.iter_mut().rev().take(FOLDED_LINES);
        if let Some(same) = last.into_iter().find(|entry| entry.noted_by == noted_by && entry.text == text) {
            same.times += 1;
            return;
        }
        if self.entries.len() >= room {
            self.drop_one();
        }
        let owner = self.owner(abi::audit::principal_of(&text).unwrap_or(noted_by));
        self.entries.push_back(Entry { number: self.next, first_ms: now_ms, noted_by, text, times: 1, owner });
        self.next += 1;
    }

    /// Drops the oldest line of the owner with the most; on a tie, the oldest of all.
    fn drop_one(&mut self) {
        let most = self.owners.iter().map(|owner| owner.lines).max();
        let of_most = |entry: &Entry| self.owners.get(entry.owner).map(|owner| owner.lines) == most;
        let Some(dropped) = self.entries.iter().position(of_most).and_then(|place| self.entries.remove(place)) else {
            return;
        };
        if let Some(owner) = self.owners.get_mut(dropped.owner) {
            owner.lines -= 1;
        }
    }

    /// Returns the index of the owner with this name and adds one to its lines.
    fn owner(&mut self, name: &str) -> usize {
        let has_lines = |owner: &Owner| owner.lines > 0;
        let known = self.owners.iter().position(|owner| has_lines(owner) && owner.name == name);
        let place = known.or_else(|| self.owners.iter().position(|owner| !has_lines(owner))).unwrap_or_else(|| {
            self.owners.push(Owner { name: String::new(), lines: 0 });
            self.owners.len() - 1
        });
        let owner = &mut self.owners[place];
        if known.is_none() {
            owner.name = name.into();
        }
        owner.lines += 1;
        place
    }

    /// Reports how many lines from this one on are no longer kept, if any.
    fn lost(&self, from: u64) -> String {
        let kept = self.entries.len() - self.entries.partition_point(|entry| entry.number < from);
        match self.next.saturating_sub(from).saturating_sub(kept as u64) {
            0 => String::new(),
            lost => alloc::format!("{lost} refusals are no longer kept\n"),
        }
    }

    /// Writes at most `most` lines from this number on. Returns the number after the last, `None` if there is none.
    fn write_lines(&self, from: u64, most: usize, text: &mut String) -> Option<u64> {
        let skipped = self.entries.partition_point(|entry| entry.number < from);
        let mut after = None;
        for entry in self.entries.iter().skip(skipped).take(most) {
            // Writing to a String cannot fail.
            let _ = write!(text, "{} {}: {}", entry.first_ms, entry.noted_by, entry.text);
            if entry.times > 1 {
                let _ = write!(text, ", {} times", entry.times);
            }
            text.push('\n');
            after = Some(entry.number + 1);
        }
        after
    }

    #[cfg(test)]
    fn lines(&self, from: u64) -> String {
        let mut text = self.lost(from);
        self.write_lines(from, usize::MAX, &mut text);
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::format;

    const ROOM: usize = 64;

    fn refuse(ring: &mut Ring, who: &str, object: &str) {
        ring.add(7, KERNEL, abi::audit::refusal(who, "read", object, "a rule"), ROOM);
    }

    fn count(ring: &Ring, who: &str) -> usize {
        ring.lines(0).lines().filter(|line| line.contains(&format!("{who} refused"))).count()
    }

    #[test]
    fn who_takes_turns_between_some_refusals_gets_a_line_of_each() {
        let mut ring = Ring::new();
        refuse(&mut ring, "victim.a", "/secret");
        for _ in 0..10_000 {
            for object in ["/one", "/two", "/three"] {
                refuse(&mut ring, "flood.b", object);
            }
        }
        assert_eq!(count(&ring, "flood.b"), 3);
        assert_eq!(count(&ring, "victim.a"), 1);
        assert!(ring.lines(0).contains("flood.b refused read on /two (a rule), 10000 times\n"), "{}", ring.lines(0));
    }

    #[test]
    fn who_thinks_of_ever_new_refusals_loses_only_its_own() {
        let mut ring = Ring::new();
        for number in 0..20 {
            refuse(&mut ring, "victim.a", &format!("/secret/{number}"));
        }
        refuse(&mut ring, "other.a", "/secret");
        for number in 0..10_000 {
            refuse(&mut ring, "flood.b", &format!("/{number}"));
        }
        assert_eq!(count(&ring, "victim.a"), 20);
        assert_eq!(count(&ring, "other.a"), 1);
        assert_eq!(count(&ring, "flood.b"), ROOM - 21);
        // Later lines are kept, too.
        refuse(&mut ring, "victim.a", "/later");
        assert_eq!(count(&ring, "victim.a"), 21);
        assert!(ring.lines(0).contains("flood.b refused read on /9999 "));
    }

    #[test]
    fn among_equals_the_oldest_line_goes() {
        let mut ring = Ring::new();
        for number in 0..ROOM {
            refuse(&mut ring, &format!("p{number}.a"), "/same");
        }
        refuse(&mut ring, "new.a", "/same");
        assert_eq!((count(&ring, "p0.a"), count(&ring, "p1.a"), count(&ring, "new.a")), (0, 1, 1));
        assert!(ring.owners.len() <= ROOM + 1, "{} owners of {ROOM} lines", ring.owners.len());
    }

    #[test]
    fn lines_keep_their_numbers_and_lost_ones_are_counted() {
        let mut ring = Ring::new();
        refuse(&mut ring, "victim.a", "/first");
        for number in 0..ROOM + 9 {
            refuse(&mut ring, "flood.b", &format!("/{number}"));
        }
        assert_eq!(ring.next, ROOM as u64 + 10);
        let all = ring.lines(0);
        assert_eq!(all.lines().next(), Some("10 refusals are no longer kept"));
        assert_eq!(all.lines().nth(1), Some("7 kernel: victim.a refused read on /first (a rule)"));
        assert_eq!(all.lines().count(), 1 + ROOM);
        let later = ring.lines(ring.next - 2);
        assert_eq!(later.lines().count(), 2, "{later}");
        assert!(later.contains(&format!("/{} ", ROOM + 8)), "{later}");
        assert_eq!(ring.lines(ring.next), "");
        assert_eq!(ring.lines(u64::MAX), "");
    }

    #[test]
    fn what_a_service_says_without_a_principal_is_its_own() {
        let mut ring = Ring::new();
        refuse(&mut ring, "victim.a", "/secret");
        for number in 0..1_000 {
            ring.add(7, "service", format!("line {number}"), ROOM);
        }
        assert_eq!(count(&ring, "victim.a"), 1);
        assert_eq!(ring.entries.len(), ROOM);
    }

    #[test]
    fn without_room_a_line_takes_the_place_of_another() {
        let mut ring = Ring::new();
        ring.add(7, KERNEL, "one".into(), 0);
        ring.add(7, KERNEL, "two".into(), 0);
        assert_eq!(ring.lines(1), "7 kernel: two\n");
        assert_eq!(ring.entries.len(), 1);
    }
}
