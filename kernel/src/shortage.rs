//! Resources that all SIPs share and that have run out. A failed allocation is reported here, and the calling processor
//! reclaims some before it leaves the kernel (`lifecycle::reclaim`).

use core::fmt;
use core::sync::atomic::{AtomicU32, Ordering};

use abi::Status;

use crate::arch;
use crate::machine::machine;
use crate::preempt::PENDING_RECLAIM;
use crate::slab::Full;

/// A request for more than one part of so many of the memory is too much at once.
const LARGE_PART: usize = 16;

/// What all programs share and may be used up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Scarce {
    /// Memory, or a run of it that is long enough.
    Memory,
    /// Records of SIPs, those of children that have ended too.
    Processes,
    /// Threads and their stacks.
    Threads,
    /// Mutexes, events and wait sets.
    Syncs,
    /// Channels.
    Channels,
    /// Records of blocks.
    Blocks,
}

impl Scarce {
    const ALL: [Scarce; 6] =
        [Scarce::Memory, Scarce::Processes, Scarce::Threads, Scarce::Syncs, Scarce::Channels, Scarce::Blocks];

    const fn bit(self) -> u32 {
        1 << self as u32
    }
}

impl fmt::Display for Scarce {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Scarce::Memory => "memory",
            Scarce::Processes => "processes",
            Scarce::Threads => "threads",
            Scarce::Syncs => "mutexes, events and wait sets",
            Scarce::Channels => "channels",
            Scarce::Blocks => "blocks",
        })
    }
}

/// What could not be made although memory is not low, a bit for each: the machine has no more of that.
static USED_UP: AtomicU32 = AtomicU32::new(0);

/// Has the calling processor look for memory to reclaim before it leaves the kernel.
pub fn ask_for_reclaim() {
    arch::cpu_set_pending(PENDING_RECLAIM);
}

/// Reports that something was used up: the tree that holds most of it is ended.
pub fn used_up(what: Scarce) -> Status {
    USED_UP.fetch_or(what.bit(), Ordering::Relaxed);
    ask_for_reclaim();
    Status::Exhausted
}

/// Reports that a slab of `what` gave no slot.
#[cold]
pub fn no_slot(full: Full, what: Scarce) -> Status {
    used_up(match full {
        Full::Limit => what,
        Full::Memory => Scarce::Memory,
    })
}

/// Reports that there is no run of this many bytes. A request for a large part of all memory was too much; else the
/// free memory is fragmented, and more has to become free.
pub fn no_room(bytes: usize) -> Status {
    if bytes <= machine().layout().memory.bytes / LARGE_PART { used_up(Scarce::Memory) } else { Status::Exhausted }
}

/// Takes what was reported since the last time: the first of it.
pub fn take() -> Option<Scarce> {
    let used_up = USED_UP.swap(0, Ordering::Relaxed);
    Scarce::ALL.into_iter().find(|what| used_up & what.bit() != 0)
}
