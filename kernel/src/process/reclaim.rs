//! What happens when the machine's memory runs out: the tree of programs that holds most is ended.
//!
//! Quotas bound a SIP, not the machine: a manifest may ask for more than there is, and each of many SIPs may
//! stay within its own. So when memory is low nothing new is made for a program, and the one to blame is
//! ended with all that it started. docs/decisions/0009-when-memory-runs-out.md says why so.
//!
//! Who is to blame: the *tree* that holds most. The root is in none and is never ended. Each child of the
//! root (a service) is a tree by itself; each child of a service (a program that the shell started, say) is
//! the top of one, and all that it or a descendant of it ever created belongs to that, also what was released
//! or lost its parent.

use alloc::format;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use abi::limits::PAGE_BYTES;
use abi::{EpitaphKind, ProcessState, Status};

use super::end::{Condemned, condemn};
use super::{Epitaph, PROCESSES, Process, ProcessRef};
use crate::cpu::{self, PENDING_RECLAIM};
use crate::machine::machine;
use crate::slab::Slot;
use crate::thread::THREADS;
use crate::{channel, debug_output, memory, sched};

/// A tree that holds less than this is not ended: it would not help.
const LEAST_BYTES: usize = 1 << 20;
/// One part of so many of the memory is much to ask for at once.
const LARGE_PART: usize = 16;

/// Something could not be made although memory is not low: the machine has no more of that.
static USED_UP: AtomicBool = AtomicBool::new(false);
/// When what is kept for speed was given back last, and how long it is left alone after that.
static TRIMMED_NS: AtomicU64 = AtomicU64::new(0);
const TRIM_EVERY_NS: u64 = 50_000_000;
/// Whether a processor is looking for what to end: two that did would each end something.
static SEARCHING: AtomicBool = AtomicBool::new(false);

impl Slot<Process> {
    /// Where a new SIP stands: how far from the root, and in which tree.
    pub(super) fn place_below(&self, parent: Option<ProcessRef>) {
        let id = self.id.load(Ordering::Relaxed);
        let (depth, tree) = match parent {
            None => (0, 0),
            Some(parent) => match parent.depth.load(Ordering::Relaxed) {
                above @ 0..=1 => (above + 1, id),
                above => (above.saturating_add(1), parent.tree.load(Ordering::Relaxed)),
            },
        };
        self.depth.store(depth, Ordering::Relaxed);
        self.tree.store(tree, Ordering::Relaxed);
    }

    /// Whether something new may be made for it. When memory is low only services get more; they are few,
    /// chosen by who made the system, and the rest of the system waits for them.
    #[inline(always)]
    pub fn may_grow(&self) -> Result<(), Status> {
        if memory::is_low() { self.grow_when_low() } else { Ok(()) }
    }

    #[cold]
    fn grow_when_low(&self) -> Result<(), Status> {
        ask();
        if self.depth.load(Ordering::Relaxed) <= 1 { Ok(()) } else { Err(Status::Exhausted) }
    }

    /// What it holds, in bytes, but for its threads' stacks.
    pub(super) fn held_bytes(&self) -> usize {
        let pages = self.pages.lock().count;
        pages * PAGE_BYTES + self.block_bytes.load(Ordering::Relaxed) + self.kept_for()
    }
}

/// Has the calling processor look for memory to reclaim before it leaves the kernel.
fn ask() {
    cpu::this().pending.fetch_or(PENDING_RECLAIM, Ordering::Relaxed);
}

/// Something that is not memory was used up: the same is done about it.
pub fn used_up() -> Status {
    USED_UP.store(true, Ordering::Relaxed);
    ask();
    Status::Exhausted
}

/// There is no run of this many bytes. Who asked for a large part of all memory asked for too much; else the
/// free memory is in pieces that are too small, and more has to become free.
pub fn no_room(bytes: usize) -> Status {
    if bytes <= machine().layout().memory.bytes / LARGE_PART { used_up() } else { Status::Exhausted }
}

/// What a tree holds.
#[derive(Clone, Copy)]
struct Tree {
    id: u64,
    bytes: usize,
    members: usize,
    is_ending: bool,
}

/// Ends the tree that holds most, if memory is low and none is being ended already. On a processor, with no
/// lock held.
pub fn reclaim() {
    if SEARCHING.swap(true, Ordering::Acquire) {
        return;
    }
    let now = machine().monotonic_ns();
    if now.saturating_sub(TRIMMED_NS.load(Ordering::Relaxed)) >= TRIM_EVERY_NS {
        TRIMMED_NS.store(now, Ordering::Relaxed);
        memory::trim();
        channel::trim();
    }
    if USED_UP.swap(false, Ordering::Relaxed) || memory::is_low() {
        end_largest();
    }
    SEARCHING.store(false, Ordering::Release);
}

fn end_largest() {
    let trees = trees();
    // What is being ended gives its memory back soon; whatever it has still managed to start ends too.
    let ending = trees.iter().find(|tree| tree.is_ending);
    let largest = || trees.iter().max_by_key(|tree| tree.bytes).filter(|tree| tree.bytes >= LEAST_BYTES);
    let Some(chosen) = ending.or_else(largest) else { return };
    end_tree(*chosen);
}

fn is_alive(process: &Slot<Process>) -> bool {
    process.state() != ProcessState::Ended && process.depth.load(Ordering::Relaxed) > 0
}

fn trees() -> Vec<Tree> {
    let mut trees: Vec<Tree> = sched::pausing(PROCESSES.iter())
        .filter(|process| is_alive(process))
        .map(|process| Tree {
            id: process.tree.load(Ordering::Relaxed),
            bytes: process.held_bytes(),
            members: 1,
            is_ending: process.reclaimed.load(Ordering::Relaxed),
        })
        .collect();
    trees.sort_unstable_by_key(|tree| tree.id);
    trees.dedup_by(|next, tree| {
        let same = next.id == tree.id;
        if same {
            tree.bytes += next.bytes;
            tree.members += next.members;
            tree.is_ending |= next.is_ending;
        }
        same
    });
    add_stacks(&mut trees);
    trees
}

/// Adds what stacks hold, to trees in order of their numbers.
fn add_stacks(trees: &mut [Tree]) {
    for thread in sched::pausing(THREADS.iter()) {
        let Some(process) = thread.owner().filter(|process| is_alive(process)) else { continue };
        let id = process.tree.load(Ordering::Relaxed);
        if let Ok(place) = trees.binary_search_by_key(&id, |tree| tree.id) {
            trees[place].bytes += thread.stack_bytes();
        }
    }
}

fn end_tree(tree: Tree) {
    let members = sched::pausing(PROCESSES.iter()).filter(|process| is_alive(process));
    let members = members.filter(|process| process.tree.load(Ordering::Relaxed) == tree.id && !process.is_dying());
    // The top first: its epitaph says what happened, and the others end with it.
    let mut members: Vec<(u64, ProcessRef)> =
        members.map(|process| (process.id.load(Ordering::Relaxed), process)).collect();
    members.sort_unstable_by_key(|&(id, _)| id);
    let mut condemned = Vec::with_capacity(members.len());
    for (number, &(id, process)) in members.iter().enumerate() {
        process.reclaimed.store(true, Ordering::Relaxed);
        let text = if number == 0 && !tree.is_ending {
            let text = describe(tree);
            debug_output::line(format_args!("{} (process {id}) {text}", process.name()));
            text
        } else {
            "ended because memory ran out, with the program that it was started by".into()
        };
        // All of them first, at once: none is to start another while the caller waits for its next turn.
        condemned.extend(condemn(process, id, Epitaph::new(EpitaphKind::MemoryRanOut, text)));
    }
    condemned.into_iter().for_each(Condemned::end);
}

fn describe(tree: Tree) -> alloc::string::String {
    let kibibytes = tree.bytes / 1024;
    let held = if kibibytes < 10 * 1024 { format!("{kibibytes} KiB") } else { format!("{} MiB", kibibytes / 1024) };
    match tree.members - 1 {
        0 => format!("ended because memory ran out: it held {held}, the most of all"),
        1 => format!("ended because memory ran out: it and a program that it started held {held}, the most of all"),
        others => {
            format!(
                "ended because memory ran out: it and the {others} programs that it started held {held}, the most of all"
            )
        }
    }
}
