//! Messages of 9P2000.L, the protocol by which a machine offers a folder of its host.
//!
//! Key types: [`Request`] and [`Reply`], which read and write themselves; [`Attributes`], [`Changes`] and [`Entry`], the
//! records in them; [`errno`], why a request failed. A message is what the other side says: whatever its bytes are, reading
//! it gives a message or nothing. Neighbours: `folder-server` asks, `hal-hosted` answers, and so does QEMU. The
//! reference is Linux (`Documentation/filesystems/9p.rst`, `include/net/9p/9p.h`) and diod's `protocol.md`. Deliberately
//! not here: what a file system does with a message, and the messages of other dialects.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod message;
mod record;
mod wire;

pub use message::{Reply, Request};
pub use record::{Attributes, Changes, Entry, Qid, entries};
pub use wire::{Data, Text};

/// The protocol's name, in Version.
pub const VERSION: &[u8] = b"9P2000.L";
/// The tag of Version.
pub const NO_TAG: u16 = u16::MAX;
/// The fid that stands for none, in Attach.
pub const NO_FID: u32 = u32::MAX;
/// Most names in one Walk.
pub const MAX_NAMES: usize = 16;
/// Bytes of every message's length, kind and tag.
pub const HEADER_BYTES: usize = 7;
/// Bytes of ReadDone and of EntriesRead before the data, and an upper bound for Write.
pub const DATA_HEADER_BYTES: usize = HEADER_BYTES + 16;
/// Bytes of an [`Entry`] without its name.
pub const ENTRY_BYTES: usize = 24;

/// Flags of Open and Create, as Linux numbers them.
pub mod open_flags {
    /// Only to read.
    pub const READ: u32 = 0;
    /// Only to write.
    pub const WRITE: u32 = 1;
    /// Both.
    pub const READ_WRITE: u32 = 2;
    /// The bits that tell these three apart.
    pub const ACCESS: u32 = 3;
    /// The name must be free.
    pub const EXCLUSIVE: u32 = 0o200;
    /// Each write goes to the end.
    pub const APPEND: u32 = 0o2000;
}

/// A flag of Unlink: what has the name is a folder.
pub const UNLINK_DIRECTORY: u32 = 0x200;

/// Numbers of errors, as Linux has them.
pub mod errno {
    #![allow(missing_docs, reason = "their names are those of errno(3)")]
    pub const EPERM: u32 = 1;
    pub const ENOENT: u32 = 2;
    pub const EIO: u32 = 5;
    pub const ENXIO: u32 = 6;
    pub const EBADF: u32 = 9;
    pub const ENOMEM: u32 = 12;
    pub const EACCES: u32 = 13;
    pub const EEXIST: u32 = 17;
    pub const EXDEV: u32 = 18;
    pub const ENOTDIR: u32 = 20;
    pub const EISDIR: u32 = 21;
    pub const EINVAL: u32 = 22;
    pub const ENFILE: u32 = 23;
    pub const EMFILE: u32 = 24;
    pub const ETXTBSY: u32 = 26;
    pub const EFBIG: u32 = 27;
    pub const ENOSPC: u32 = 28;
    pub const EROFS: u32 = 30;
    pub const EMLINK: u32 = 31;
    pub const ENAMETOOLONG: u32 = 36;
    pub const ENOTEMPTY: u32 = 39;
    pub const ELOOP: u32 = 40;
    pub const EOPNOTSUPP: u32 = 95;
    pub const ESTALE: u32 = 116;
    pub const EDQUOT: u32 = 122;
}

/// The length that a message says it has, of its first bytes.
pub fn message_bytes(start: &[u8]) -> Option<usize> {
    let length = start.first_chunk().map(|bytes| u32::from_le_bytes(*bytes))?;
    usize::try_from(length).ok().filter(|&length| length >= HEADER_BYTES)
}
