//! Boot profile: named points in time since the kernel was entered.
//!
//! The machine's own are always recorded, and printed on the debug output at power-off on request.

use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crate::{clock, report};

const MOST: usize = 64;
const NAME_BYTES: usize = 32;

#[derive(Clone, Copy)]
struct Mark {
    name: [u8; NAME_BYTES],
    bytes: usize,
    cycles: u64,
}

struct Marks(UnsafeCell<[Mark; MOST]>);

// SAFETY: each slot is written once, by the caller that drew its number, and read only after that (`WRITTEN`).
unsafe impl Sync for Marks {}

static MARKS: Marks = Marks(UnsafeCell::new([Mark { name: [0; NAME_BYTES], bytes: 0, cycles: 0 }; MOST]));
static DRAWN: AtomicUsize = AtomicUsize::new(0);
static WRITTEN: [AtomicBool; MOST] = [const { AtomicBool::new(false) }; MOST];
static WANTED: AtomicBool = AtomicBool::new(false);

/// Enables marks beyond the machine's own, and printing.
pub fn want() {
    WANTED.store(true, Ordering::Relaxed);
}

/// Records a mark of the machine's own start.
pub(crate) fn mark(name: &str) {
    let number = DRAWN.fetch_add(1, Ordering::Relaxed);
    if number >= MOST {
        return;
    }
    let mut mark = Mark { name: [0; NAME_BYTES], bytes: name.len().min(NAME_BYTES), cycles: clock::cycles() };
    mark.name[..mark.bytes].copy_from_slice(&name.as_bytes()[..mark.bytes]);
    // SAFETY: the slot with this number has no other user until it is marked as written.
    unsafe { (&raw mut (*MARKS.0.get())[number]).write(mark) };
    WRITTEN[number].store(true, Ordering::Release);
}

/// Records a mark of the kernel's, if enabled.
pub(crate) fn mark_late(name: &str) {
    if WANTED.load(Ordering::Relaxed) {
        mark(name);
    }
}

/// Prints the marks, in nanoseconds since the kernel was entered, if enabled.
pub(crate) fn print() {
    if !WANTED.load(Ordering::Relaxed) {
        return;
    }
    mark("end");
    for (number, written) in WRITTEN.iter().enumerate() {
        if written.load(Ordering::Acquire) {
            // SAFETY: written, and never again.
            let mark = unsafe { (&raw const (*MARKS.0.get())[number]).read() };
            let name = str::from_utf8(&mark.name[..mark.bytes]).unwrap_or("?");
            report::say(format_args!("boot-mark {} {}", Words(name), clock::ns_at(mark.cycles)));
        }
    }
}

/// A name with its blanks as hyphens.
struct Words<'a>(&'a str);

impl core::fmt::Display for Words<'_> {
    fn fmt(&self, formatter: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        for (index, word) in self.0.split_whitespace().enumerate() {
            if index > 0 {
                formatter.write_str("-")?;
            }
            formatter.write_str(word)?;
        }
        Ok(())
    }
}
