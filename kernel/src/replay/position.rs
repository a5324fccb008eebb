//! Where a replay is, for a debugger, which goes back by replaying again up to an earlier place.
//!
//! A *stretch* is what a thread runs from the return of a call to its next call. The debugger reads [`POSITION`] and sets
//! its limits, and has a breakpoint at [`singularity_replay_stops`]. Deliberately not here: places within a stretch,
//! which the debugger counts.

use core::hint::black_box;
use core::sync::atomic::{AtomicU64, Ordering};

use recording::Event;

use crate::machine::machine;

/// The words that a debugger reads and writes, by their order.
#[repr(C)]
struct Position {
    /// Number of the stretch that runs, or ran last, from 1; 0 before the first.
    stretch: AtomicU64,
    /// Number of the event with which it begins.
    event: AtomicU64,
    /// The process that runs it.
    process: AtomicU64,
    /// The stretch that its thread ran before; 0 if none.
    before: AtomicU64,
    /// The replay stops at the beginning of this stretch. Set by the debugger.
    stop_at: AtomicU64,
    /// The replay stops at the end of this stretch. Set by the debugger.
    leave_at: AtomicU64,
    /// What programs write before this stretch is not shown. Set by the debugger, which has shown it.
    show_from: AtomicU64,
    /// First address of images.
    images: AtomicU64,
    /// Their bytes.
    images_bytes: AtomicU64,
    /// First address of programs' stacks.
    stacks: AtomicU64,
    /// Their bytes.
    stacks_bytes: AtomicU64,
}

static POSITION: Position = Position {
    stretch: AtomicU64::new(0),
    event: AtomicU64::new(0),
    process: AtomicU64::new(0),
    before: AtomicU64::new(0),
    stop_at: AtomicU64::new(u64::MAX),
    leave_at: AtomicU64::new(u64::MAX),
    show_from: AtomicU64::new(0),
    images: AtomicU64::new(0),
    images_bytes: AtomicU64::new(0),
    stacks: AtomicU64::new(0),
    stacks_bytes: AtomicU64::new(0),
};

/// Why a replay stops for a debugger.
#[derive(Clone, Copy)]
enum Stop {
    /// Nothing has been replayed yet.
    Begin = 0,
    /// A stretch begins.
    Stretch = 1,
    /// All has been replayed.
    End = 2,
    /// A stretch ends.
    Leave = 3,
}

/// The replay that is shown begins.
pub fn begin() {
    let layout = machine().layout();
    POSITION.images.store(layout.images.base as u64, Ordering::Relaxed);
    POSITION.images_bytes.store(layout.images.bytes as u64, Ordering::Relaxed);
    POSITION.stacks.store(layout.stacks.base as u64, Ordering::Relaxed);
    POSITION.stacks_bytes.store(layout.stacks.bytes as u64, Ordering::Relaxed);
    POSITION.stretch.store(0, Ordering::Relaxed);
    stop(Stop::Begin);
}

/// A thread is about to run, after this event; it ran before in stretch `before`, or 0. Returns the stretch's number.
pub fn enter(event: &Event, before: u64) -> u64 {
    let stretch = POSITION.stretch.fetch_add(1, Ordering::Relaxed) + 1;
    POSITION.event.store(event.number, Ordering::Relaxed);
    POSITION.process.store(event.process, Ordering::Relaxed);
    POSITION.before.store(before, Ordering::Relaxed);
    if stretch >= POSITION.stop_at.load(Ordering::Relaxed) {
        stop(Stop::Stretch);
    }
    stretch
}

/// The thread that runs has called, or ended its process.
pub fn leave() {
    if POSITION.stretch.load(Ordering::Relaxed) == POSITION.leave_at.load(Ordering::Relaxed) {
        stop(Stop::Leave);
    }
}

/// All has been replayed, or cannot be replayed further.
pub fn end() {
    stop(Stop::End);
}

/// Whether a debugger has shown what programs write here.
pub fn is_shown() -> bool {
    POSITION.stretch.load(Ordering::Relaxed) < POSITION.show_from.load(Ordering::Relaxed)
}

/// Whether a debugger goes through this replay, so that time passes while programs stand still.
pub fn is_debugged() -> bool {
    POSITION.show_from.load(Ordering::Relaxed) != 0
}

fn stop(why: Stop) {
    singularity_replay_stops(why as u64, &POSITION);
}

/// Does nothing. A debugger with a breakpoint here gets the reason, and the words that it may read and write.
// SAFETY: nothing else of the program has this name.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn singularity_replay_stops(why: u64, position: &Position) {
    black_box((why, core::ptr::from_ref(position)));
}
