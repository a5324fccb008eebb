//! Stacks, paged memory and principals.

use abi::Status;
use abi::limits::{STACK_RESERVE_BYTES, TEXT_BYTES};

use super::caller;
use super::channels::peer_principal;
use crate::{arch, channel, claims, cpu, memory};

pub fn stack_bounds() -> Result<u64, Status> {
    let caller = caller()?;
    let end = caller.thread.sip_block_address();
    let low = memory::stack_start(end) + STACK_RESERVE_BYTES;
    caller.buffer.write_words(&[low as u64, end as u64]);
    Ok((end - low) as u64)
}

#[inline(always)]
pub fn stack_left() -> Result<u64, Status> {
    // The entry has made sure of the reserve.
    Ok(arch::stack_pointer().wrapping_sub(arch::stack_limit()) as u64)
}

pub fn stack_left_in_domain() -> Result<u64, Status> {
    Ok(cpu::current().sip_stack_left().saturating_sub(STACK_RESERVE_BYTES) as u64)
}

pub fn memory_allocate(pages: u64) -> Result<u64, Status> {
    let pages = usize::try_from(pages).map_err(|_| Status::BadArgument)?;
    caller()?.process.allocate_pages(pages).map(|address| address as u64)
}

pub fn memory_grow(address: u64, pages: u64) -> Result<u64, Status> {
    let pages = usize::try_from(pages).map_err(|_| Status::BadArgument)?;
    caller()?.process.grow_pages(address as usize, pages).map(|added| added as u64)
}

pub fn memory_reserve(pages: u64) -> Result<u64, Status> {
    let pages = usize::try_from(pages).map_err(|_| Status::BadArgument)?;
    caller()?.process.reserve_window(pages).map(|address| address as u64)
}

pub fn memory_free(address: u64) -> Result<u64, Status> {
    caller()?.process.free_pages(address as usize).map(|pages| pages as u64)
}

pub fn memory_usage() -> Result<u64, Status> {
    let caller = caller()?;
    let (used, allowed) = caller.process.page_usage();
    caller.buffer.set(0, allowed as u64);
    Ok(used as u64)
}

pub fn principal_self() -> Result<u64, Status> {
    let caller = caller()?;
    let principal = caller.process.principal().ok_or(Status::NotFound)?;
    let bytes = principal.text().as_bytes();
    if bytes.len() > TEXT_BYTES {
        return Err(Status::TooLarge);
    }
    Ok(caller.buffer.put_bytes(0, bytes) as u64)
}

pub fn principal_delegate(endpoint: u64) -> Result<u64, Status> {
    channel::delegate(caller()?.process, claims::endpoint(endpoint)?).map(|()| 0)
}

pub fn principal_of_peer(endpoint: u64) -> Result<u64, Status> {
    peer_principal(caller()?, claims::endpoint(endpoint)?)
}
