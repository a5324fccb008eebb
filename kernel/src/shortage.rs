//! Exhaustion of resources that all SIPs share. A failed allocation is reported here, and the calling processor
//! reclaims before it leaves the kernel (`lifecycle::reclaim`).

use core::fmt;
use core::sync::atomic::{AtomicU32, Ordering};

use abi::Status;

use crate::arch;
use crate::machine::machine;
use crate::preempt::PENDING_RECLAIM;
use crate::slab::Full;

/// A request for more than 1/`LARGE_PART` of memory is too large to reclaim for.
const LARGE_PART: usize = 16;

/// Shared resources that may be exhausted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Scarce {
    /// Memory, or a long enough run of it.
    Memory,
    /// Records of SIPs, including those of ended children.
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

/// Resources exhausted although memory is not low, one bit each: the machine has no more of them.
static USED_UP: AtomicU32 = AtomicU32::new(0);

/// Makes the calling processor reclaim memory before it leaves the kernel.
pub fn ask_for_reclaim() {
    arch::cpu_set_pending(PENDING_RECLAIM);
}

/// Reports an exhausted resource: the tree that holds most of it is ended.
pub fn used_up(what: Scarce) -> Status {
    USED_UP.fetch_or(what.bit(), Ordering::Relaxed);
    ask_for_reclaim();
    Status::Exhausted
}

/// Reports that a slab of `what` could not allocate a slot.
#[cold]
pub fn no_slot(full: Full, what: Scarce) -> Status {
    used_up(match full {
        Full::Limit => what,
        Full::Memory => Scarce::Memory,
    })
}

/// Reports that there is no run of this many bytes. A request for a large part of memory was too large; otherwise free
/// memory is fragmented, and more has to be freed.
pub fn no_room(bytes: usize) -> Status {
    if bytes <= machine().layout().memory.bytes / LARGE_PART { used_up(Scarce::Memory) } else { Status::Exhausted }
}

/// Takes the first resource reported since the last call.
pub fn take() -> Option<Scarce> {
    let used_up = USED_UP.swap(0, Ordering::Relaxed);
    Scarce::ALL.into_iter().find(|what| used_up & what.bit() != 0)
}
