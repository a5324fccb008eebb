//! The exchange heap: blocks with out-of-band records, each with exactly one owner.
//!
//! A block belongs to a SIP (and is in its list), to a message in a channel's queue, to the block it is attached to, to
//! a device during an operation, or waits at an endpoint for its lender. A block under DMA is pinned at its owner, and
//! passes to the device when that SIP ends. Its fields are guarded by its owner: the lock of the SIP's block list, of
//! the channel or of the device; or the block is not shared.
//!
//! Loans: each time a block is lent in a message, the sending endpoint is pushed on the block's `loans`. Their meaning,
//! and the destination of a block that its borrower gives up, are up to the channel (`channel::dispose`).
//!
//! Accounting: a block is charged to one SIP's quota, with all attached blocks: its space in the arena and its records.
//! Each part of a split block is charged for the whole extent, because it keeps the extent allocated.
//!
//! Spaces: the memory of a block, with all attached ones, is mapped in one space, its owner's or, in a message, its
//! sender's. It moves to the receiver's when it is received ([`cross`]).
//!
//! Every function but [`free`] and [`cross`] is O(1). `free` frees any number of blocks, one small step at a time, and its caller may
//! be preempted between the steps.

mod crossing;
mod payment;

pub use crossing::cross;
pub use payment::{charge, pass};

use payment::{set_charge, uncharge};

use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};

use abi::Status;
use abi::limits::{BLOCK_ALIGN, LOAN_DEPTH};

use crate::handle::{self, Kind};
use crate::lock::AtomicRef;
use crate::memory::{Chunk, Room};
use crate::process::{Blocks, Process, ProcessRef};
use crate::shortage::{Scarce, no_room, no_slot};
use crate::slab::{Charged, Links, Listed, Slab, Slot};
use crate::space::Space;
use crate::{memory, preempt};

/// All blocks.
pub static BLOCKS: Slab<Block> = Slab::new();
static EXTENTS: Slab<Extent> = Slab::new();

const NO_BLOCK: u32 = u32::MAX;
/// Steps of freeing blocks between two preemption points.
const STEPS: usize = 32;
/// Kernel memory per block, excluding its extent.
pub const RECORD_BYTES: usize = size_of::<Slot<Block>>() + size_of::<Slot<Extent>>();

/// Memory behind one or, after a split, several blocks.
#[derive(Default)]
pub struct Extent {
    address: AtomicUsize,
    bytes: AtomicUsize,
    chunk: AtomicRef<Slot<Chunk>>,
    /// The space that it is mapped in.
    space: AtomicRef<Slot<Space>>,
    references: AtomicU32,
}

impl Extent {
    /// Charge of one block in it.
    fn charge(&self) -> usize {
        memory::room_bytes(self.bytes.load(Ordering::Relaxed)).unwrap_or(0) + RECORD_BYTES
    }
}

/// One block.
#[derive(Default)]
pub struct Block {
    /// The owning SIP; none while it is anywhere else.
    pub owner: AtomicRef<Slot<Process>>,
    /// Address of its first byte.
    pub address: AtomicUsize,
    /// Its size.
    pub bytes: AtomicUsize,
    /// Type of its elements.
    pub type_tag: AtomicU64,
    extent: AtomicRef<Slot<Extent>>,
    /// The space of its extent.
    space: AtomicRef<Slot<Space>>,
    /// The SIP charged for it, with its process id.
    pub(crate) charged_to: AtomicRef<Slot<Process>>,
    charged_id: AtomicU64,
    /// Bytes charged: its own and those of all blocks attached to it.
    charge: AtomicUsize,
    /// Number of blocks: itself and all attached ones.
    records: AtomicU32,
    /// Links in its owner's list.
    pub links: Links,
    /// First of the blocks attached to it, last attached first.
    first_child: AtomicU32,
    /// Number of attached blocks.
    children: AtomicU32,
    /// Next in the chain of attached blocks or of blocks waiting for their lender.
    pub next: AtomicU32,
    /// Whether it is under DMA: see [`pin`].
    pinned: AtomicBool,
    /// Whether its payer has since closed an endpoint over which it may have lent it.
    pub(crate) is_unsettled: AtomicBool,
    /// Whether its contents are of a process that no replay makes again, for recordings: see [`crate::record`].
    pub(crate) is_opaque: AtomicBool,
    /// What a device has written in its last operation, for recordings: see [`crate::device::filled`].
    pub(crate) filled: [AtomicUsize; 4],
    loan_count: AtomicU32,
    loans: [AtomicU64; LOAN_DEPTH],
}

/// A reference to a block.
pub type BlockRef = &'static Slot<Block>;

/// Resolves a handle to a block. Its ownership is checked with the owner's list locked.
#[inline(always)]
pub fn block(handle: u64) -> Result<BlockRef, Status> {
    let (index, generation) = handle::decode(handle, Kind::Block)?;
    BLOCKS.get(index, generation).ok_or(Status::BadHandle)
}

impl Listed for Blocks {
    fn links(index: u32) -> Option<&'static Links> {
        BLOCKS.slot(index).map(|slot| &slot.links)
    }
}

impl Charged for Blocks {
    const RECORD_BYTES: usize = RECORD_BYTES;
}

impl Slot<Block> {
    /// Its handle.
    #[inline(always)]
    pub fn handle(&'static self) -> u64 {
        handle::encode(Kind::Block, self.index(), self.generation())
    }

    /// Its size in bytes.
    #[inline(always)]
    pub fn size(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Whether its holder is a borrower.
    #[inline(always)]
    pub fn is_lent(&self) -> bool {
        self.loan_count.load(Ordering::Relaxed) != 0
    }

    /// Returns the endpoint that lent it last.
    pub fn lender(&self) -> Option<u64> {
        let count = self.loan_count.load(Ordering::Relaxed) as usize;
        Some(self.loans.get(count.checked_sub(1)?)?.load(Ordering::Relaxed))
    }

    /// Returns the endpoints that lent it, first lender first.
    pub fn lenders(&self) -> impl Iterator<Item = u64> {
        let count = self.loan_count.load(Ordering::Relaxed) as usize;
        self.loans.iter().take(count).map(|loan| loan.load(Ordering::Relaxed))
    }

    /// Lends it from an endpoint; false if the maximum number of loans is reached.
    pub fn push_loan(&self, endpoint: u64) -> bool {
        let count = self.loan_count.load(Ordering::Relaxed);
        let Some(loan) = self.loans.get(count as usize) else { return false };
        loan.store(endpoint, Ordering::Relaxed);
        self.loan_count.store(count + 1, Ordering::Relaxed);
        true
    }

    /// Ends the last loan.
    pub fn pop_loan(&self) -> Option<u64> {
        let lender = self.lender()?;
        self.loan_count.fetch_sub(1, Ordering::Relaxed);
        Some(lender)
    }
}

/// Allocates a zeroed block for a SIP.
pub fn allocate(process: ProcessRef, bytes: usize, type_tag: u64) -> Result<BlockRef, Status> {
    let block = allocate_unowned(process, bytes, type_tag)?;
    give_to(process, block);
    Ok(block)
}

/// The same with these contents, written before any thread of the SIP can name it.
pub fn allocate_with(process: ProcessRef, bytes: &[u8], type_tag: u64) -> Result<BlockRef, Status> {
    let block = allocate_unowned(process, bytes.len(), type_tag)?;
    memory::write_block(block.address.load(Ordering::Relaxed), block.size(), bytes);
    give_to(process, block);
    Ok(block)
}

/// Allocates a block that is charged to a SIP and not yet owned.
fn allocate_unowned(process: ProcessRef, bytes: usize, type_tag: u64) -> Result<BlockRef, Status> {
    let room = bytes.max(1).checked_next_multiple_of(BLOCK_ALIGN).ok_or(Status::BadArgument)?;
    let charge =
        memory::room_bytes(room).and_then(|bytes| bytes.checked_add(RECORD_BYTES)).ok_or(Status::BadArgument)?;
    process.charge_blocks(charge)?;
    let made = make(process, (bytes, room), charge, type_tag);
    if made.is_err() {
        process.refund_blocks(process.id.load(Ordering::Relaxed), charge);
    }
    made
}

fn make(process: ProcessRef, (bytes, room): (usize, usize), charge: usize, type_tag: u64) -> Result<BlockRef, Status> {
    let extent = EXTENTS.allocate().map_err(|full| no_slot(full, Scarce::Blocks))?;
    let block = BLOCKS.allocate().map_err(|full| {
        EXTENTS.release(extent);
        no_slot(full, Scarce::Blocks)
    })?;
    let Some(Room { address, chunk, space }) = memory::allocate_exchange(room, process.space.get()) else {
        EXTENTS.release(extent);
        BLOCKS.release(block);
        return Err(no_room(room));
    };
    extent.address.store(address, Ordering::Relaxed);
    extent.chunk.set(chunk);
    extent.space.set(space);
    extent.bytes.store(room, Ordering::Relaxed);
    extent.references.store(1, Ordering::Relaxed);
    describe(block, extent, address, bytes, type_tag);
    set_charge(block, process, charge);
    Ok(block)
}

fn describe(block: BlockRef, extent: &'static Slot<Extent>, address: usize, bytes: usize, type_tag: u64) {
    block.extent.set(Some(extent));
    block.space.set(extent.space.get());
    block.address.store(address, Ordering::Relaxed);
    block.bytes.store(bytes, Ordering::Relaxed);
    block.type_tag.store(type_tag, Ordering::Relaxed);
    block.first_child.store(NO_BLOCK, Ordering::Relaxed);
    block.children.store(0, Ordering::Relaxed);
    block.records.store(1, Ordering::Relaxed);
    block.next.store(NO_BLOCK, Ordering::Relaxed);
    block.loan_count.store(0, Ordering::Relaxed);
    block.pinned.store(false, Ordering::Relaxed);
    block.is_unsettled.store(false, Ordering::Relaxed);
}

/// Takes a block from its owner, if that is `process`.
#[inline(always)]
pub fn take_from(process: ProcessRef, block: BlockRef, handle: u64) -> Result<(), Status> {
    let mut blocks = process.blocks.lock();
    let own = block.owner.get().is_some_and(|owner| core::ptr::eq(owner, process));
    // The generation is checked again under the lock: another thread may have freed it meanwhile.
    if !own || block.handle() != handle {
        return Err(Status::BadHandle);
    }
    if block.pinned.load(Ordering::Relaxed) {
        return Err(Status::Busy);
    }
    blocks.remove(block.index());
    block.owner.set(None);
    Ok(())
}

/// Pins a block of a SIP for DMA. It cannot be taken from its owner.
pub fn pin(process: ProcessRef, block: BlockRef, handle: u64) -> Result<(), Status> {
    let _blocks = process.blocks.lock();
    let own = block.owner.get().is_some_and(|owner| core::ptr::eq(owner, process));
    if !own || block.handle() != handle {
        return Err(Status::BadHandle);
    }
    // A device gets the address of one block; attached ones would not be pinned.
    if block.size() == 0 || block.first_child.load(Ordering::Relaxed) != NO_BLOCK {
        return Err(Status::BadArgument);
    }
    if block.pinned.swap(true, Ordering::Relaxed) { Err(Status::Busy) } else { Ok(()) }
}

/// Ends a [`pin`].
pub fn unpin(process: ProcessRef, block: BlockRef) {
    let _blocks = process.blocks.lock();
    block.pinned.store(false, Ordering::Relaxed);
}

/// Takes a pinned block from a SIP that loses the device which reaches it. It is charged to no quota.
pub fn seize(process: ProcessRef, block: BlockRef) {
    let mut blocks = process.blocks.lock();
    blocks.remove(block.index());
    block.owner.set(None);
    block.pinned.store(false, Ordering::Relaxed);
    drop(blocks);
    uncharge(block);
}

/// Returns address, bytes, type tag and whether it is lent, of a block of a SIP.
pub fn describe_of(process: ProcessRef, block: BlockRef, handle: u64) -> Result<[u64; 4], Status> {
    let _blocks = process.blocks.lock();
    let own = block.owner.get().is_some_and(|owner| core::ptr::eq(owner, process));
    if !own || block.handle() != handle {
        return Err(Status::BadHandle);
    }
    let address = block.address.load(Ordering::Relaxed) as u64;
    Ok([address, block.size() as u64, block.type_tag.load(Ordering::Relaxed), u64::from(block.is_lent())])
}

/// Gives an unshared block to a SIP, which is charged for it unless it is a loan ([`payment`]).
#[inline(always)]
pub fn give_to(process: ProcessRef, block: BlockRef) {
    pass(process, block);
    hand_to(process, block);
}

/// The same, off the path of a sent message.
#[cold]
pub fn give_back(process: ProcessRef, block: BlockRef) {
    give_to(process, block);
}

/// Adds an unshared block to a SIP's list.
#[inline(always)]
pub fn hand_to(process: ProcessRef, block: BlockRef) {
    let mut blocks = process.blocks.lock();
    block.owner.set(Some(process));
    blocks.insert(block.index());
}

/// Frees a block that is not lent, with all attached blocks. It is in no list and no lock is held; the caller may be
/// preempted.
pub fn free(block: BlockRef) {
    let mut freeing = begin_free(block);
    while freeing.go_on(STEPS) {
        preempt::pause();
    }
}

/// Begins to free a block that is not lent, with all attached blocks. It is in no list.
pub fn begin_free(block: BlockRef) -> Freeing {
    uncharge(block);
    block.next.store(NO_BLOCK, Ordering::Relaxed);
    Freeing { at: block.index() }
}

/// Blocks being freed: a current one, whose only remaining link leads to its parent.
pub struct Freeing {
    at: u32,
}

impl Freeing {
    /// Takes this many steps; returns whether there is more to do. A step descends to an attached block, or frees a
    /// leaf and ascends.
    pub fn go_on(&mut self, steps: usize) -> bool {
        for _ in 0..steps {
            let Some(block) = BLOCKS.slot(self.at) else { return false };
            let first = block.first_child.load(Ordering::Relaxed);
            match BLOCKS.slot(first) {
                Some(child) => {
                    block.first_child.store(child.next.load(Ordering::Relaxed), Ordering::Relaxed);
                    child.next.store(self.at, Ordering::Relaxed);
                    self.at = first;
                }
                None => {
                    self.at = block.next.load(Ordering::Relaxed);
                    free_one(block);
                }
            }
        }
        self.at != NO_BLOCK
    }
}

fn free_one(block: BlockRef) {
    if let Some(extent) = block.extent.take()
        && extent.references.fetch_sub(1, Ordering::AcqRel) == 1
    {
        free_extent(extent);
    }
    BLOCKS.release(block);
}

/// Frees an extent that no block is in.
fn free_extent(extent: &'static Slot<Extent>) {
    let address = extent.address.load(Ordering::Relaxed);
    let room = Room { address, chunk: extent.chunk.take(), space: extent.space.take() };
    memory::free_exchange(&room, extent.bytes.load(Ordering::Relaxed));
    EXTENTS.release(extent);
}

/// Splits a block of the caller at a byte offset.
pub fn split(process: ProcessRef, block: BlockRef, handle: u64, offset: usize) -> Result<BlockRef, Status> {
    take_from(process, block, handle)?;
    let result = split_taken(process, block, offset);
    give_to(process, block);
    let rest = result?;
    give_to(process, rest);
    Ok(rest)
}

fn split_taken(process: ProcessRef, block: BlockRef, offset: usize) -> Result<BlockRef, Status> {
    let size = block.size();
    if block.is_lent() {
        return Err(Status::Lent);
    }
    if offset == 0 || offset >= size || !offset.is_multiple_of(BLOCK_ALIGN) {
        return Err(Status::BadArgument);
    }
    let extent = block.extent.get().ok_or(Status::BadHandle)?;
    let charge = extent.charge();
    process.charge_blocks(charge)?;
    let rest = BLOCKS.allocate().map_err(|full| {
        process.refund_blocks(process.id.load(Ordering::Relaxed), charge);
        no_slot(full, Scarce::Blocks)
    })?;
    extent.references.fetch_add(1, Ordering::AcqRel);
    let address = block.address.load(Ordering::Relaxed) + offset;
    describe(rest, extent, address, size - offset, block.type_tag.load(Ordering::Relaxed));
    block.bytes.store(offset, Ordering::Relaxed);
    set_charge(rest, process, charge);
    Ok(rest)
}

/// Attaches one block of the caller to another.
pub fn attach(process: ProcessRef, parent: (BlockRef, u64), child: (BlockRef, u64)) -> Result<u64, Status> {
    take_from(process, parent.0, parent.1)?;
    let taken = take_from(process, child.0, child.1);
    let result = taken.and_then(|()| {
        // A loan is returned as it was lent.
        if child.0.is_lent() || parent.0.is_lent() {
            give_to(process, child.0);
            return Err(Status::Lent);
        }
        // Both are charged to the caller; from now on the child as part of its parent.
        child.0.charged_to.set(None);
        parent.0.records.fetch_add(child.0.records.load(Ordering::Relaxed), Ordering::Relaxed);
        parent.0.charge.fetch_add(child.0.charge.load(Ordering::Relaxed), Ordering::Relaxed);
        child.0.next.store(parent.0.first_child.load(Ordering::Relaxed), Ordering::Relaxed);
        parent.0.first_child.store(child.0.index(), Ordering::Relaxed);
        Ok(u64::from(parent.0.children.fetch_add(1, Ordering::Relaxed)))
    });
    give_to(process, parent.0);
    result
}

/// Detaches the block that was attached last.
pub fn detach(process: ProcessRef, parent: BlockRef, handle: u64) -> Result<BlockRef, Status> {
    take_from(process, parent, handle)?;
    if parent.is_lent() {
        give_to(process, parent);
        return Err(Status::Lent);
    }
    let child = BLOCKS.slot(parent.first_child.load(Ordering::Relaxed));
    if let Some(child) = child {
        parent.first_child.store(child.next.load(Ordering::Relaxed), Ordering::Relaxed);
        child.next.store(NO_BLOCK, Ordering::Relaxed);
        parent.children.fetch_sub(1, Ordering::Relaxed);
        let charge = child.charge.load(Ordering::Relaxed);
        parent.charge.fetch_sub(charge, Ordering::Relaxed);
        parent.records.fetch_sub(child.records.load(Ordering::Relaxed), Ordering::Relaxed);
        set_charge(child, process, charge);
        give_to(process, child);
    }
    give_to(process, parent);
    child.ok_or(Status::NotFound)
}

#[cfg(test)]
mod tests;
