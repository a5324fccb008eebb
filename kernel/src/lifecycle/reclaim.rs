//! Out of memory: ends the tree of programs that holds most.
//!
//! Quotas bound a SIP, not the machine: a manifest may allow more than there is, and many SIPs may exhaust it while
//! each stays within its own. So when memory is low nothing new is made for a program, and the largest is ended with
//! all that it started, like Linux's OOM killer. docs/decisions/0009-when-memory-runs-out.md has the reasons.
//!
//! The victim is the *tree* that holds most. The root belongs to none and is never ended. Each child of the root (a
//! service) is a tree by itself; each child of a service (a program that the shell started, for example) is the root
//! of one, with all that it or a descendant ever created, including released and orphaned SIPs.

use alloc::format;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use abi::{EpitaphKind, ProcessState};

use super::end::{Condemned, condemn};
use crate::exheap::BLOCKS;
use crate::machine::machine;
use crate::process::{Epitaph, PROCESSES, Process, ProcessRef};
use crate::shortage::{self, Scarce};
use crate::slab::Slot;
use crate::thread::THREADS;
use crate::{channel, debug_output, memory, preempt};

/// Minimum bytes of a victim: ending a smaller tree would not help.
const MIN_BYTES: usize = 1 << 20;
/// A victim holds at least 1/`MIN_PART` of the exhausted resource.
const MIN_PART: usize = 16;
/// Time of the last trim of caches, and the minimum interval between two.
static TRIMMED_NS: AtomicU64 = AtomicU64::new(0);
const TRIM_EVERY_NS: u64 = 50_000_000;
/// Whether a processor is searching for a victim: two would each end one.
static SEARCHING: AtomicBool = AtomicBool::new(false);

impl Slot<Process> {
    /// Sets depth and tree of a new SIP.
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

    /// Amount that it holds of an exhausted resource, excluding the memory of stacks and blocks.
    fn holds(&self, what: Scarce) -> usize {
        match what {
            Scarce::Memory => self.held_bytes(),
            Scarce::Processes => 1 + self.charged_children.load(Ordering::Relaxed) as usize,
            Scarce::Threads => self.threads.lock().count() as usize,
            Scarce::Syncs => self.syncs.lock().count() as usize,
            Scarce::Channels => self.paid_channels() as usize,
            Scarce::Blocks => 0,
        }
    }
}

/// Usage of a tree.
#[derive(Clone, Copy)]
struct Tree {
    id: u64,
    /// Amount held of the exhausted resource: bytes, or a count.
    amount: usize,
    members: usize,
    is_ending: bool,
}

/// Ends the tree that holds most, if memory is low and none is ending already. Must run on a processor with no lock
/// held.
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
    let reported = shortage::take();
    if let Some(what) = if memory::is_low() { Some(Scarce::Memory) } else { reported } {
        end_largest(what);
    }
    SEARCHING.store(false, Ordering::Release);
}

fn end_largest(what: Scarce) {
    let trees = trees(what);
    // A tree that is ending frees its memory soon; whatever it has still managed to start ends too.
    let ending = trees.iter().find(|tree| tree.is_ending);
    let least = match what {
        Scarce::Memory => MIN_BYTES,
        _ => trees.iter().map(|tree| tree.amount).sum::<usize>().div_ceil(MIN_PART),
    };
    let largest = || trees.iter().max_by_key(|tree| tree.amount).filter(|tree| tree.amount >= least);
    let Some(chosen) = ending.or_else(largest) else { return };
    end_tree(*chosen, what);
}

fn is_alive(process: &Slot<Process>) -> bool {
    process.state() != ProcessState::Ended && process.depth.load(Ordering::Relaxed) > 0
}

/// Returns all trees, with the amount each holds of the exhausted resource.
fn trees(what: Scarce) -> Vec<Tree> {
    let mut trees: Vec<Tree> = preempt::pausing(PROCESSES.iter())
        .filter(|process| is_alive(process))
        .map(|process| Tree {
            id: process.tree.load(Ordering::Relaxed),
            amount: process.holds(what),
            members: 1,
            is_ending: process.reclaimed.load(Ordering::Relaxed),
        })
        .collect();
    trees.sort_unstable_by_key(|tree| tree.id);
    trees.dedup_by(|next, tree| {
        let same = next.id == tree.id;
        if same {
            tree.amount += next.amount;
            tree.members += next.members;
            tree.is_ending |= next.is_ending;
        }
        same
    });
    match what {
        Scarce::Memory => add_stacks(&mut trees),
        Scarce::Blocks => add_blocks(&mut trees),
        _ => {}
    }
    trees
}

/// Adds the blocks charged to their members to trees sorted by number.
fn add_blocks(trees: &mut [Tree]) {
    let charged = preempt::pausing(BLOCKS.iter()).filter_map(|block| block.payer_and_records());
    for (payer, records) in charged {
        let id = payer.tree.load(Ordering::Relaxed);
        if let Ok(place) = trees.binary_search_by_key(&id, |tree| tree.id) {
            trees[place].amount += records;
        }
    }
}

/// Adds the memory of stacks to trees sorted by number.
fn add_stacks(trees: &mut [Tree]) {
    for thread in preempt::pausing(THREADS.iter()) {
        let Some(process) = thread.owner().filter(|process| is_alive(process)) else { continue };
        let id = process.tree.load(Ordering::Relaxed);
        if let Ok(place) = trees.binary_search_by_key(&id, |tree| tree.id) {
            trees[place].amount += thread.stack_bytes();
        }
    }
}

fn end_tree(tree: Tree, what: Scarce) {
    let members = preempt::pausing(PROCESSES.iter()).filter(|process| is_alive(process));
    let members = members.filter(|process| process.tree.load(Ordering::Relaxed) == tree.id && !process.is_dying());
    // The root first: its epitaph states the reason, and the others end with it.
    let mut members: Vec<(u64, ProcessRef)> =
        members.map(|process| (process.id.load(Ordering::Relaxed), process)).collect();
    members.sort_unstable_by_key(|&(id, _)| id);
    let mut condemned = Vec::with_capacity(members.len());
    for (number, &(id, process)) in members.iter().enumerate() {
        process.reclaimed.store(true, Ordering::Relaxed);
        let text = if number == 0 && !tree.is_ending {
            let text = describe(tree, what);
            debug_output::line(format_args!("{} (process {id}) {text}", process.name()));
            text
        } else {
            "ended because memory ran out, with the program that it was started by".into()
        };
        // All are condemned first: none must start another while the caller is preempted.
        condemned.extend(condemn(process, id, Epitaph::new(EpitaphKind::MemoryRanOut, text)));
    }
    condemned.into_iter().for_each(Condemned::end);
}

fn describe(tree: Tree, what: Scarce) -> alloc::string::String {
    let who = match tree.members - 1 {
        0 => "it".into(),
        1 => "it and a program that it started".into(),
        others => format!("it and the {others} programs that it started"),
    };
    let kibibytes = tree.amount / 1024;
    match what {
        Scarce::Memory if kibibytes < 10 * 1024 => {
            format!("ended because memory ran out: {who} held {kibibytes} KiB, the most of all")
        }
        Scarce::Memory => {
            format!("ended because memory ran out: {who} held {} MiB, the most of all", kibibytes / 1024)
        }
        _ => format!("ended because memory ran out for {what}: {who} held {}, the most of all", tree.amount),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exheap;
    use crate::lifecycle::create;
    use crate::sync::{Make, create as create_sync};
    use crate::test_machine::{alone, with_quota};
    use manifest_model::{Category, Code, Manifest};

    /// A program that is the root of a tree.
    fn top(memory_kib: u32) -> ProcessRef {
        let service = with_quota(|quota| quota.children = 1);
        service.depth.store(1, Ordering::Relaxed);
        let mut manifest = Manifest::plain("top", "test", Category::Test, Code::Script { text: "".into() });
        manifest.quota.memory_kib = memory_kib;
        manifest.quota.handles = 10_000;
        match create(crate::test_machine::loaded(manifest), Some(service)) {
            Ok(child) => child.process(),
            Err(_) => panic!("no child can be made"),
        }
    }

    fn most(what: Scarce) -> u64 {
        trees(what).iter().max_by_key(|tree| tree.amount).map_or(0, |tree| tree.id)
    }

    #[test]
    fn who_holds_most_of_what_is_used_up_is_found_whatever_memory_others_hold() {
        let _alone = alone();
        let (innocent, hoarder) = (top(64 << 10), top(1 << 10));
        assert!(innocent.allocate_pages(15_000).is_ok());
        for _ in 0..2_000 {
            assert!(create_sync(hoarder, Make::Mutex).is_ok());
        }
        // Added to one block, so that its list is not empty.
        let one = exheap::allocate(hoarder, 1, 0).expect("a block");
        for _ in 0..1_500 {
            let next = exheap::allocate(hoarder, 1, 0).expect("a block");
            assert!(exheap::attach(hoarder, (one, one.handle()), (next, next.handle())).is_ok());
        }
        let [innocent_id, hoarder_id] = [innocent, hoarder].map(|process| process.tree.load(Ordering::Relaxed));
        assert_eq!(most(Scarce::Memory), innocent_id);
        assert_eq!(most(Scarce::Syncs), hoarder_id);
        assert_eq!(most(Scarce::Blocks), hoarder_id);
        for process in [innocent, hoarder] {
            super::super::end(process, Epitaph::exited(0));
        }
    }
}
