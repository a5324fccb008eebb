//! Messages of 9P2000.L, the protocol by which a machine serves a host folder.
//!
//! Key types: [`Request`] and [`Reply`], which encode and decode themselves; [`Attributes`], [`Changes`] and [`Entry`],
//! the records in them; [`errno`]. Messages are untrusted: decoding arbitrary bytes gives a message or nothing.
//! Neighbours: `folder-server` is the client, `hal-hosted` and QEMU are servers. References: Linux
//! (`Documentation/filesystems/9p.rst`, `include/net/9p/9p.h`) and diod's `protocol.md`. Deliberately not here: file
//! systems, and the messages of other dialects.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod message;
mod record;
mod wire;

pub use message::{Reply, Request};
pub use record::{Attributes, Changes, Entry, Qid, entries};
pub use wire::{Data, Text};

/// Protocol version string.
pub const VERSION: &[u8] = b"9P2000.L";
/// Tag of Version messages (NOTAG).
pub const NO_TAG: u16 = u16::MAX;
/// No fid, in Attach (NOFID).
pub const NO_FID: u32 = u32::MAX;
/// Maximum names in a Walk (MAXWELEM).
pub const MAX_NAMES: usize = 16;
/// Size of a message header: length, type and tag.
pub const HEADER_BYTES: usize = 7;
/// Size of ReadDone and EntriesRead without data, and an upper bound for Write.
pub const DATA_HEADER_BYTES: usize = HEADER_BYTES + 16;
/// Size of an [`Entry`] without its name.
pub const ENTRY_BYTES: usize = 24;

/// Flags of Open and Create, as on Linux.
pub mod open_flags {
    /// O_RDONLY.
    pub const READ: u32 = 0;
    /// O_WRONLY.
    pub const WRITE: u32 = 1;
    /// O_RDWR.
    pub const READ_WRITE: u32 = 2;
    /// O_ACCMODE.
    pub const ACCESS: u32 = 3;
    /// O_EXCL.
    pub const EXCLUSIVE: u32 = 0o200;
    /// O_APPEND.
    pub const APPEND: u32 = 0o2000;
}

/// Flag of Unlink: remove a folder (AT_REMOVEDIR).
pub const UNLINK_DIRECTORY: u32 = 0x200;

/// Error numbers of Linux.
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

/// The length field of a message, from its first bytes.
pub fn message_bytes(start: &[u8]) -> Option<usize> {
    let length = start.first_chunk().map(|bytes| u32::from_le_bytes(*bytes))?;
    usize::try_from(length).ok().filter(|&length| length >= HEADER_BYTES)
}
