//! Handles: how the kernel names its objects to SIPs. A kind, the number of a slot in the kind's slab, and the slot's
//! generation. Deliberately not here: whether a handle that a SIP passes is good (`claims`).

use abi::Status;

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

/// Encodes a handle.
#[inline(always)]
pub const fn encode(kind: Kind, index: u32, generation: u32) -> u64 {
    (kind as u64) << 56 | ((generation & 0x00ff_ffff) as u64) << 32 | index as u64
}

/// Decodes a handle of this kind into index and generation.
#[inline(always)]
pub fn decode(handle: u64, kind: Kind) -> Result<(u32, u32), Status> {
    if handle >> 56 != kind as u64 {
        return Err(Status::BadHandle);
    }
    Ok((handle as u32, (handle >> 32) as u32 & 0x00ff_ffff))
}

/// Returns the kind of object that a handle claims to name.
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
