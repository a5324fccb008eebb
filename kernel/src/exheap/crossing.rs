//! The way of a block from one space to another, when it is received.
//!
//! A large block that has its extent to itself is remapped: its address stays. Any other is copied to new storage in the
//! receiver's space, and its old storage is freed: its handle stays, its address does not. So a borrower in another
//! domain that dies gives back what it has written until then, whatever the size of the block.
//!
//! The sender may be in a domain, with code that writes to the block until it has left its space. The receiver sees one
//! state of it, which does not change any more.

use alloc::vec::Vec;
use core::sync::atomic::Ordering;

use super::{BLOCKS, BlockRef, EXTENTS, Extent, free_extent};
use crate::memory;
use crate::process::ProcessRef;
use crate::slab::Slot;
use crate::space::{self, SpaceRef};

/// There is no memory for a block in the space that receives it.
struct NoRoom;

/// Moves a block, with all attached ones, to the space of a SIP that receives it, or notes that the SIP
/// [has no room](crate::process::Process::has_no_room) for some of them. It is in no list, and the caller holds no lock.
#[inline(always)]
pub fn cross(process: ProcessRef, block: BlockRef) {
    if !space::is_same(block.space.get(), process.space.get()) {
        cross_or_note(process, block);
    }
}

#[cold]
fn cross_or_note(process: ProcessRef, block: BlockRef) {
    if cross_all(block, process.space.get()).is_err() {
        process.has_no_room.store(true, Ordering::Relaxed);
    }
}

fn cross_all(block: BlockRef, to: Option<SpaceRef>) -> Result<(), NoRoom> {
    let mut work = Vec::new();
    let mut next = Some(block);
    while let Some(block) = next {
        cross_one(block, to)?;
        let mut child = BLOCKS.slot(block.first_child.load(Ordering::Relaxed));
        while let Some(attached) = child {
            work.try_reserve(1).map_err(|_| NoRoom)?;
            work.push(attached);
            child = BLOCKS.slot(attached.next.load(Ordering::Relaxed));
        }
        next = work.pop();
    }
    Ok(())
}

fn cross_one(block: BlockRef, to: Option<SpaceRef>) -> Result<(), NoRoom> {
    let extent = block.extent.get().ok_or(NoRoom)?;
    if space::is_same(extent.space.get(), to) {
        return Ok(());
    }
    if is_alone(block, extent) { remap(block, extent, to) } else { copy(block, extent, to) }
}

/// Whether a block has whole pages to itself.
fn is_alone(block: BlockRef, extent: &Slot<Extent>) -> bool {
    let bytes = extent.bytes.load(Ordering::Relaxed);
    extent.chunk.get().is_none()
        && extent.references.load(Ordering::Acquire) == 1
        && block.address.load(Ordering::Relaxed) == extent.address.load(Ordering::Relaxed)
        && room_of(block) == bytes
}

/// Bytes of an extent that a block of its size takes.
fn room_of(block: BlockRef) -> usize {
    block.size().max(1).next_multiple_of(abi::limits::BLOCK_ALIGN)
}

fn remap(block: BlockRef, extent: &Slot<Extent>, to: Option<SpaceRef>) -> Result<(), NoRoom> {
    let (address, bytes) = (extent.address.load(Ordering::Relaxed), extent.bytes.load(Ordering::Relaxed));
    let result = memory::remap_exchange(address, bytes, extent.space.take(), to);
    let now = to.filter(|_| result.is_ok());
    extent.space.set(now);
    block.space.set(now);
    result.map_err(|_| NoRoom)
}

fn copy(block: BlockRef, old: &'static Slot<Extent>, to: Option<SpaceRef>) -> Result<(), NoRoom> {
    let bytes = room_of(block);
    let extent = EXTENTS.allocate().map_err(|_| NoRoom)?;
    let Some(room) = memory::allocate_exchange(bytes, to) else {
        EXTENTS.release(extent);
        return Err(NoRoom);
    };
    memory::copy_exchange(block.address.load(Ordering::Relaxed), room.address, block.size());
    extent.address.store(room.address, Ordering::Relaxed);
    extent.bytes.store(bytes, Ordering::Relaxed);
    extent.chunk.set(room.chunk);
    extent.space.set(room.space);
    extent.references.store(1, Ordering::Relaxed);
    block.extent.set(Some(extent));
    block.space.set(to);
    block.address.store(room.address, Ordering::Relaxed);
    if old.references.fetch_sub(1, Ordering::AcqRel) == 1 {
        free_extent(old);
    }
    Ok(())
}

#[cfg(test)]
mod tests;
