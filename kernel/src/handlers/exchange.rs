//! The exchange heap.

use core::sync::atomic::Ordering;

use abi::{Status, type_tag};

use super::{Caller, caller};
use crate::exheap::{self, BlockRef};
use crate::thread::MessageBuffer;
use crate::{channel, claims};

fn put_address(buffer: MessageBuffer, block: BlockRef) {
    buffer.set(0, block.address.load(Ordering::Relaxed) as u64);
    buffer.set(1, block.size() as u64);
}

/// Allocates a block with these contents for the caller, the result of several functions.
pub(super) fn new_block(caller: Caller, bytes: &[u8]) -> Result<u64, Status> {
    let block = exheap::allocate_with(caller.process, bytes, type_tag("byte"))?;
    put_address(caller.buffer, block);
    Ok(block.handle())
}

pub fn heap_allocate(bytes: u64, type_tag: u64) -> Result<u64, Status> {
    let caller = caller()?;
    let bytes = usize::try_from(bytes).map_err(|_| Status::BadArgument)?;
    let block = exheap::allocate(caller.process, bytes, type_tag)?;
    put_address(caller.buffer, block);
    Ok(block.handle())
}

pub fn heap_free(block: u64) -> Result<u64, Status> {
    let caller = caller()?;
    let taken = claims::block(block)?;
    exheap::take_from(caller.process, taken, block)?;
    channel::dispose(taken);
    Ok(0)
}

pub fn heap_split(block: u64, offset: u64) -> Result<u64, Status> {
    let caller = caller()?;
    let offset = usize::try_from(offset).map_err(|_| Status::BadArgument)?;
    caller.process.may_have_another_handle()?;
    let rest = exheap::split(caller.process, claims::block(block)?, block, offset)?;
    put_address(caller.buffer, rest);
    Ok(rest.handle())
}

pub fn heap_describe(block: u64) -> Result<u64, Status> {
    let caller = caller()?;
    caller.buffer.write_words(&exheap::describe_of(caller.process, claims::block(block)?, block)?);
    Ok(0)
}

pub fn heap_attach(parent: u64, child: u64) -> Result<u64, Status> {
    let caller = caller()?;
    if parent == child {
        return Err(Status::BadArgument);
    }
    exheap::attach(caller.process, (claims::block(parent)?, parent), (claims::block(child)?, child))
}

pub fn heap_detach(parent: u64) -> Result<u64, Status> {
    let caller = caller()?;
    let child = exheap::detach(caller.process, claims::block(parent)?, parent)?;
    put_address(caller.buffer, child);
    caller.buffer.set(2, child.type_tag.load(Ordering::Relaxed));
    Ok(child.handle())
}
