//! Parser of partition tables: MBR with extended partitions, and GPT.
//!
//! Key types: [`Source`] (the disk), [`Table`], [`Partition`], [`Fault`] (a part of the table that is ignored, and the
//! reason). Tables are untrusted: an entry that contradicts the disk, the table or another entry is reported and
//! ignored, and no content makes parsing fail or run without bound. Deliberately not here: channels, writing tables,
//! and the content of partitions.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod fault;
mod gpt;
mod kind;
mod mbr;
mod place;

use alloc::string::String;
use alloc::vec::Vec;
use core::future::Future;

pub use fault::{Copy, Fault, HeaderError};
pub use kind::PartitionKind;

/// Maximum partitions of a table.
pub const MAX_PARTITIONS: usize = 1024;

/// The disk could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unreadable;

/// The disk that a table is read from.
pub trait Source {
    /// Size of the disk in bytes.
    fn size_bytes(&self) -> u64;

    /// Sector size in bytes, the unit of tables.
    fn sector_bytes(&self) -> u32;

    /// Reads `bytes` bytes at `offset`; both are multiples of the sector size, and within the disk.
    fn read(&self, offset: u64, bytes: usize) -> impl Future<Output = Result<Vec<u8>, Unreadable>>;
}

/// Type of partition table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableKind {
    /// None: the disk holds one volume, or nothing.
    None,
    /// MBR.
    Mbr,
    /// GPT, from its primary or backup copy.
    Gpt(Copy),
}

/// A usable partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Partition {
    /// Number from 1 on, as on Linux: the index in the table; logical partitions of an MBR from 5 on.
    pub number: u32,
    /// Offset in bytes.
    pub first_byte: u64,
    /// Length in bytes, never 0.
    pub bytes: u64,
    /// Partition type.
    pub kind: PartitionKind,
    /// Name (GPT only).
    pub name: String,
    /// Whether it is marked read-only.
    pub read_only: bool,
}

/// The partition table of a disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    /// Type of table.
    pub kind: TableKind,
    /// Usable partitions, by number. No two overlap, and all are within the disk.
    pub partitions: Vec<Partition>,
    /// Ignored parts, and why.
    pub faults: Vec<Fault>,
}

impl Table {
    fn new(kind: TableKind) -> Table {
        Table { kind, partitions: Vec::new(), faults: Vec::new() }
    }
}

/// Reads the partition table of a disk; without one it is a [`TableKind::None`].
///
/// # Errors
/// The first sector cannot be read.
pub async fn read<S: Source>(source: &S) -> Result<Table, Unreadable> {
    let disk = match Disk::new(source) {
        Some(disk) => disk,
        None => return Ok(Table::new(TableKind::None)),
    };
    let first = disk.read(0, 1).await?;
    let Some(record) = mbr::Record::parse(&first) else { return Ok(Table::new(TableKind::None)) };
    let mut table = if record.is_protective() { gpt::read(&disk).await } else { mbr::read(&disk, &record).await };
    place::refuse_overlaps(&mut table);
    Ok(table)
}

/// A disk in sectors.
struct Disk<'a, S> {
    source: &'a S,
    sectors: u64,
    sector_bytes: u64,
}

impl<S: Source> Disk<'_, S> {
    /// `None` for impossible sizes.
    fn new(source: &S) -> Option<Disk<'_, S>> {
        let sector_bytes = source.sector_bytes();
        if !sector_bytes.is_power_of_two() || !(512..=65_536).contains(&sector_bytes) {
            return None;
        }
        let sector_bytes = u64::from(sector_bytes);
        let sectors = source.size_bytes() / sector_bytes;
        (sectors > 0).then_some(Disk { source, sectors, sector_bytes })
    }

    /// Reads sectors within the disk.
    async fn read(&self, first: u64, count: u64) -> Result<Vec<u8>, Unreadable> {
        let end = first.checked_add(count).filter(|&end| end <= self.sectors);
        let bytes = count.checked_mul(self.sector_bytes).and_then(|bytes| usize::try_from(bytes).ok());
        let (Some(_), Some(bytes)) = (end, bytes) else { return Err(Unreadable) };
        let read = self.source.read(first * self.sector_bytes, bytes).await?;
        if read.len() == bytes { Ok(read) } else { Err(Unreadable) }
    }
}
