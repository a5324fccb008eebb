//! Spaces: hardware protection domains as the kernel keeps them, for the SIPs that share one.
//!
//! The kernel's own space, in which software alone contains a SIP, is `None` everywhere. Any other has a domain of the
//! machine, into which the kernel maps what its SIPs own: images, pages, stacks, blocks. All memory is mapped in the
//! kernel as well, at the same address.
//!
//! Ownership: a space is *held* by each SIP in it, and for a moment by whoever changes its mappings. When nobody holds
//! it any more its domain is destroyed, for good. It is *referred to* by its domain, and by the threads, extents and
//! chunks whose memory was mapped in it, which may outlive its SIPs: a block in a message does. The slot is free when
//! nothing refers to it.
//!
//! Memory is unmapped from the space that it is leaving before the kernel clears or copies it, because code in a domain
//! may write to what is mapped at any time. Neighbours: `memory` above. Deliberately not here: which SIP gets which
//! space (`domain`).

use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};

use abi::limits::PAGE_BYTES;
use hal_api::{DomainAccess, DomainContext, DomainExit, DomainId, DomainRing, Machine, MapError};

use crate::lock::SpinLock;
use crate::machine::machine;
use crate::shortage::{Scarce, no_slot};
use crate::slab::{List, Slab, Slot};

/// All spaces but the kernel's own.
pub static SPACES: Slab<Space> = Slab::new();

/// Maximum spare stacks of a space.
pub const SPARE_STACKS: usize = 16;

/// Size classes of small blocks.
pub const CLASSES: usize = 6;

/// Chunks of small blocks with free rooms, of one class and space.
pub enum Roomy {}

/// A hardware protection domain and what is mapped in it.
#[derive(Default)]
pub struct Space {
    domain: AtomicU32,
    /// SIPs in it.
    members: AtomicU32,
    /// SIPs in it, and changes of its mappings.
    holders: AtomicU32,
    references: AtomicU32,
    /// Whether it is for one SIP alone.
    is_private: AtomicBool,
    /// Whether no code will run in its domain any more, so that nothing has to be unmapped from it.
    is_closed: AtomicBool,
    /// First addresses of the images mapped in it.
    images: SpinLock<Vec<usize>>,
    /// Stack slots of threads that have ended, with what is mapped of them, for the next threads.
    pub(crate) spare_stacks: SpinLock<Vec<usize>>,
    /// Chunks with free rooms, by class.
    pub(crate) partial: SpinLock<[List<Roomy>; CLASSES]>,
}

/// A reference to a space.
pub type SpaceRef = &'static Slot<Space>;

/// Address of the ABI table of every domain.
static TABLE: AtomicUsize = AtomicUsize::new(0);

/// Sets the page that every domain can read: its ABI table. Called at boot, before any space is created.
pub fn start(table: usize) {
    TABLE.store(table, Ordering::Relaxed);
}

/// Address of the ABI table of every domain.
pub fn table_address() -> usize {
    TABLE.load(Ordering::Relaxed)
}

/// Whether two spaces are the same.
#[inline(always)]
pub fn is_same(one: Option<SpaceRef>, other: Option<SpaceRef>) -> bool {
    one.map_or(0, |space| core::ptr::from_ref(space).addr())
        == other.map_or(0, |space| core::ptr::from_ref(space).addr())
}

/// Creates a space for a SIP, which joins it: for this one alone, or for others too.
pub fn create(ring: DomainRing, is_private: bool) -> Result<SpaceRef, abi::Status> {
    let space = SPACES.allocate().map_err(|full| no_slot(full, Scarce::Processes))?;
    let Some(domain) = machine().domain_create(ring) else {
        SPACES.release(space);
        return Err(abi::Status::Exhausted);
    };
    space.domain.store(domain.0, Ordering::Relaxed);
    space.references.store(1, Ordering::Relaxed);
    space.members.store(1, Ordering::Relaxed);
    space.is_private.store(is_private, Ordering::Relaxed);
    space.is_closed.store(false, Ordering::Relaxed);
    space.images.lock().clear();
    space.holders.store(1, Ordering::Release);
    if space.map(table_address(), PAGE_BYTES, DomainAccess::Read).is_err() {
        space.leave();
        return Err(abi::Status::Exhausted);
    }
    Ok(space)
}

/// Keeps the domain of a space from being destroyed.
struct Hold(SpaceRef);

impl Drop for Hold {
    fn drop(&mut self) {
        self.0.drop_hold();
    }
}

impl Slot<Space> {
    /// A SIP joins it; false if its domain is gone.
    pub fn join(&'static self) -> bool {
        let Some(hold) = self.hold() else { return false };
        self.members.fetch_add(1, Ordering::AcqRel);
        core::mem::forget(hold);
        true
    }

    /// First part of [`leave`](Self::leave): from now on the SIP is no member.
    pub fn begin_leaving(&self) {
        self.members.fetch_sub(1, Ordering::AcqRel);
    }

    /// The rest: the domain is destroyed with the last SIP.
    pub fn finish_leaving(&'static self) {
        self.drop_hold();
    }

    /// The last thread of a SIP in it has ended. If it is this SIP's alone, its domain is closed.
    pub fn close_if_private(&self) {
        if self.is_private.load(Ordering::Relaxed) {
            machine().domain_close(self.domain());
            self.is_closed.store(true, Ordering::Release);
        }
    }

    /// A SIP leaves it. No thread of the SIP enters the domain again.
    pub fn leave(&'static self) {
        self.begin_leaving();
        self.finish_leaving();
    }

    /// Number of SIPs in it.
    pub fn members(&self) -> u32 {
        self.members.load(Ordering::Acquire)
    }

    fn hold(&'static self) -> Option<Hold> {
        let more = |holders: u32| (holders > 0).then(|| holders + 1);
        self.holders.fetch_update(Ordering::AcqRel, Ordering::Acquire, more).ok().map(|_| Hold(self))
    }

    fn drop_hold(&'static self) {
        if self.holders.fetch_sub(1, Ordering::AcqRel) == 1 {
            machine().domain_destroy(self.domain());
            self.forget();
        }
    }

    /// Something that refers to it begins to exist.
    pub fn refer(&'static self) -> SpaceRef {
        self.references.fetch_add(1, Ordering::AcqRel);
        self
    }

    /// Something that referred to it is gone.
    pub fn forget(&'static self) {
        if self.references.fetch_sub(1, Ordering::AcqRel) == 1 {
            SPACES.release(self);
        }
    }

    /// Its domain, which may be gone.
    pub fn domain(&self) -> DomainId {
        DomainId(self.domain.load(Ordering::Relaxed))
    }

    /// Maps whole pages.
    pub fn map(&'static self, address: usize, bytes: usize, access: DomainAccess) -> Result<(), MapError> {
        let _hold = self.hold().ok_or(MapError)?;
        machine().domain_map(self.domain(), address, bytes.next_multiple_of(PAGE_BYTES), access)
    }

    /// Maps pages of memory at the addresses of an image's data.
    pub fn map_private(&'static self, address: usize, memory: usize, bytes: usize) -> Result<(), MapError> {
        let _hold = self.hold().ok_or(MapError)?;
        machine().domain_map_private(self.domain(), address, memory, bytes.next_multiple_of(PAGE_BYTES))
    }

    /// Unmaps pages: no code in the domain reaches them any more. The caller holds no lock.
    pub fn unmap(&'static self, address: usize, bytes: usize) {
        if self.is_closed.load(Ordering::Acquire) {
            return;
        }
        if let Some(_hold) = self.hold() {
            machine().domain_unmap(self.domain(), address, bytes.next_multiple_of(PAGE_BYTES));
        }
    }

    /// Maps an image, unless it is mapped: segments of address, bytes and whether they are code.
    pub fn map_image(&'static self, segments: &[(usize, usize, bool)]) -> Result<(), MapError> {
        let Some(&(first, ..)) = segments.first() else { return Ok(()) };
        let mut images = self.images.lock();
        if images.contains(&first) {
            return Ok(());
        }
        images.try_reserve(1).map_err(|_| MapError)?;
        for (number, &(address, bytes, executable)) in segments.iter().enumerate() {
            let access = if executable { DomainAccess::Execute } else { DomainAccess::Read };
            if let Err(error) = self.map(address, bytes, access) {
                segments[..number].iter().for_each(|&(address, bytes, _)| self.unmap(address, bytes));
                return Err(error);
            }
        }
        images.push(first);
        Ok(())
    }

    /// Maps the page of a stack at an address. The spare stacks are locked, which no thread gives its own up without, and
    /// the stack is of a thread in it.
    pub fn map_stack(&'static self, address: usize) -> Result<(), MapError> {
        let _hold = self.hold().ok_or(MapError)?;
        machine().domain_map_stack(self.domain(), address)
    }

    /// Runs the calling thread, which is of a SIP in it, in the domain until it leaves it.
    #[inline(always)]
    pub fn enter(&self, machine: &dyn Machine, context: &mut DomainContext) -> DomainExit {
        machine.domain_enter(self.domain(), context)
    }
}
