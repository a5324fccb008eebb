//! The ext2 file system: reading, changing and building volumes, as pure code.
//!
//! A [`Volume`] works on a [`BlockSource`], the only thing supplied by the caller: a disk driver's channel in a running
//! system, a file or a vector in a test. Every operation is `async` and takes `&self`, so that one thread serves many
//! requests concurrently during their disk I/O; a source that is always ready is driven with [`complete`].
//!
//! [`format`] holds the disk format, each structure as field offsets, a checked view and its meaning; [`make`] creates
//! volumes, [`check`] checks and repairs them. Every number from the disk is untrusted: it is checked before use, and
//! an invalid one is an [`Error`] that names the structure, the block and the remedy.
//!
//! Not here: channels, names of mount points, permission checks (an endpoint is the permission).

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod admission;
mod allocator;
mod block_map;
mod cache;
pub mod check;
mod directory;
mod error;
mod eviction;
mod extended_attributes;
mod file_data;
mod file_system;
pub mod format;
mod inode;
mod journal;
pub mod make;
mod namespace;
mod open_file;
mod orphans;
mod path;
mod source;
mod store;
mod volume;

pub use cache::CacheCounts;
pub use directory::{DirectoryEntry, Listing};
pub use error::{DiskError, Error, ReadOnlyReason};
pub use file_data::Partial;
pub use format::ROOT_INODE;
pub use format::attributes::ExtendedAttribute;
pub use format::error::{Corruption, FormatError, JournalProblem, Problem, Structure};
pub use format::features::{COMPATIBLE, FeatureName, FeatureNames, INCOMPATIBLE, READ_ONLY_COMPATIBLE};
pub use format::inode::{Inode, Kind};
pub use namespace::{NewKind, NewNode};
pub use open_file::OpenFile;
pub use path::{LINK_LIMIT, LastLink, PATH_LIMIT};
pub use source::{BlockSource, MemoryDisk, complete};
pub use store::{Access, CacheLimits, MountOptions};
pub use volume::{AttributeChanges, CacheStatistics, Volume, VolumeStatistics};
