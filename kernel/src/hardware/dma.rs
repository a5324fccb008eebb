//! DMA: blocks that a device accesses by itself. They are pinned until the driver reports that the device is done with
//! them, and quarantined with the device if the driver ends before that.

use abi::{Status, TraceKind};
use core::sync::atomic::Ordering;

use super::{OpenHardware, Origin};
use crate::exheap::{self, BlockRef};
use crate::machine::machine;
use crate::process::stream;

/// Maximum blocks pinned for one device: they are scanned with the device locked.
const PINS: usize = 4096;

/// Pins a block of the owner and returns its device address.
pub fn begin(open: OpenHardware, block: BlockRef, handle: u64) -> Result<u64, Status> {
    let mut inner = open.lock()?;
    if !matches!(inner.origin, Origin::Published { .. }) {
        return Err(Status::NotPermitted);
    }
    if inner.pinned.len() >= PINS {
        return Err(Status::Exhausted);
    }
    exheap::pin(open.owner, block, handle)?;
    let address = machine().device_address(block.address.load(Ordering::Relaxed), block.size());
    match address {
        Some(address) => {
            inner.pinned.push(block);
            if stream::is_on() {
                let id = open.owner.id.load(Ordering::Relaxed);
                stream::add(id, TraceKind::RequestBegun, handle, abi::DMA, block.size() as u64);
            }
            Ok(address)
        }
        None => {
            exheap::unpin(open.owner, block);
            Err(Status::NotFound)
        }
    }
}

/// Ends the pinning begun by [`begin`].
pub fn end(open: OpenHardware, block: BlockRef) -> Result<(), Status> {
    let mut inner = open.lock()?;
    let position = inner.pinned.iter().position(|pinned| core::ptr::eq(*pinned, block)).ok_or(Status::BadHandle)?;
    inner.pinned.swap_remove(position);
    exheap::unpin(open.owner, block);
    if stream::is_on() {
        let id = open.owner.id.load(Ordering::Relaxed);
        stream::add(id, TraceKind::RequestDone, block.handle(), 0, 0);
    }
    Ok(())
}
