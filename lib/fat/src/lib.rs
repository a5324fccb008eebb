//! FAT12, FAT16 and FAT32 with long names: volumes for concurrent clients, formatting and checking.
//!
//! The on-disk format of a mounted volume is the crate `hadris-fat`'s. This crate adds the block device it needs
//! ([`BlockSource`] behind a write-back cache), the interface of a service ([`Volume`], [`Folder`], [`OpenFile`]), and
//! serialization of operations. Deliberately not here: channels.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod bytes;
mod cache;
mod check;
mod device;
mod error;
mod file;
mod format;
mod latch;
mod mounted;
mod recognise;
mod volume;

pub use block_source::{BlockSource, DiskError};
pub use cache::{CacheCounters, CacheLimits};
pub use check::{CheckMode, CheckReport, check};
pub use error::Error;
pub use file::{CreateMode, OpenFile, Partial};
pub use format::{FormatOptions, Formatted, format};
pub use hadris_fs::{Clock, DateTime};
pub use volume::{
    Access, AttributeChanges, Entry, Folder, Kind, Listing, MountOptions, Node, Volume, VolumeStatistics,
};
