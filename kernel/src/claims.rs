//! The one door for handles: what a SIP passes as a handle is a claim, checked here.
//!
//! A handle carries its kind, a slab number and a generation. It is good if the slot is in use with
//! that generation *and* the object belongs to the SIP that claims it, so a forged handle reaches
//! nothing, and a stale one at most another object of the same SIP.

use abi::Status;

use crate::channel::{CHANNELS, EndpointRef, SideIndex};
use crate::device::{self, OpenDevice};
use crate::exheap::{BLOCKS, BlockRef};
use crate::hardware::{self, OpenHardware};
use crate::process::{ChildRef, PROCESSES, ProcessRef};
use crate::sync::{SYNCS, SyncRef};
use crate::thread::{THREADS, ThreadRef};

/// Kinds of objects that handles name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// An end of a channel; its number is twice the channel's, plus the side.
    Endpoint = 1,
    /// An exchange-heap block.
    Block = 2,
    /// A thread.
    Thread = 3,
    /// A child.
    Process = 4,
    /// A mutex, event, wait set or debug sink.
    Sync = 5,
    /// An open device.
    Device = 6,
}

/// A handle for an object.
#[inline(always)]
pub const fn handle(kind: Kind, index: u32, generation: u32) -> u64 {
    (kind as u64) << 56 | ((generation & 0x00ff_ffff) as u64) << 32 | index as u64
}

/// The kind that a handle claims.
pub fn kind_of(handle: u64) -> Option<Kind> {
    Some(match (handle >> 56) as u8 {
        1 => Kind::Endpoint,
        2 => Kind::Block,
        3 => Kind::Thread,
        4 => Kind::Process,
        5 => Kind::Sync,
        6 => Kind::Device,
        _ => return None,
    })
}

#[inline(always)]
fn parts(handle: u64, kind: Kind) -> Result<(u32, u32), Status> {
    if handle >> 56 != kind as u64 {
        return Err(Status::BadHandle);
    }
    Ok((handle as u32, (handle >> 32) as u32 & 0x00ff_ffff))
}

/// The endpoint; whether it belongs to the caller is checked with the channel locked.
#[inline(always)]
pub fn endpoint(handle: u64) -> Result<EndpointRef, Status> {
    let (index, generation) = parts(handle, Kind::Endpoint)?;
    let channel = CHANNELS.get(index >> 1, generation).ok_or(Status::BadHandle)?;
    let side = if index & 1 == 0 { SideIndex::Importer } else { SideIndex::Exporter };
    Ok(EndpointRef { channel, side, generation })
}

/// The block; whether it belongs to the caller is checked with the owner's list locked.
#[inline(always)]
pub fn block(handle: u64) -> Result<BlockRef, Status> {
    let (index, generation) = parts(handle, Kind::Block)?;
    BLOCKS.get(index, generation).ok_or(Status::BadHandle)
}

/// A thread of the caller's.
pub fn thread(handle: u64, caller: ProcessRef) -> Result<ThreadRef, Status> {
    let (index, generation) = parts(handle, Kind::Thread)?;
    let thread = THREADS.get(index, generation).ok_or(Status::BadHandle)?;
    let own = thread.owner().is_some_and(|owner| core::ptr::eq(owner, caller));
    if own && !thread.end.lock().released { Ok(thread) } else { Err(Status::BadHandle) }
}

/// The child; whether it belongs to the caller is checked with its life locked.
pub fn child(handle: u64) -> Result<ChildRef, Status> {
    let (index, generation) = parts(handle, Kind::Process)?;
    let process = PROCESSES.get(index, generation).ok_or(Status::BadHandle)?;
    Ok(ChildRef::new(process, generation))
}

/// A mutex, event or wait set of the caller's.
#[inline(always)]
pub fn sync(handle: u64, caller: ProcessRef) -> Result<SyncRef, Status> {
    let (index, generation) = parts(handle, Kind::Sync)?;
    let slot = SYNCS.get(index, generation).ok_or(Status::BadHandle)?;
    let own = slot.process.get().is_some_and(|owner| core::ptr::eq(owner, caller));
    if own { Ok(SyncRef { slot, generation }) } else { Err(Status::BadHandle) }
}

/// Hardware that the caller has open.
#[inline(always)]
pub fn hardware(handle: u64, caller: ProcessRef) -> Result<OpenHardware, Status> {
    let (index, generation) = parts(handle, Kind::Device)?;
    hardware::opened(index, generation, caller).ok_or(Status::BadHandle)
}

/// Whether a handle claims hardware rather than a console or disk of the machine's.
pub fn is_hardware(handle: u64) -> bool {
    handle >> 56 == Kind::Device as u64 && hardware::is_hardware(handle as u32)
}

/// A console or disk that the caller has open.
pub fn device(handle: u64, caller: ProcessRef) -> Result<OpenDevice, Status> {
    let (index, generation) = parts(handle, Kind::Device)?;
    device::opened(index, generation, caller).ok_or(Status::BadHandle)
}
