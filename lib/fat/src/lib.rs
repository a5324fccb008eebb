//! FAT12, FAT16 and FAT32 with long names: a volume for many clients, made and checked.
//!
//! What is known of the format while a volume is mounted comes from the crate `hadris-fat`; here is what it needs
//! and what a service needs of it: [`BlockSource`] says what a disk is, a cache writes back, [`Volume`], [`Folder`] and
//! [`OpenFile`] are what clients have, and requests come one after the other. Deliberately not here: channels.
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
