//! Reads the partition tables of disks: MBR with extended partitions, and GPT.
//!
//! Key types: [`Source`] (what the surroundings supply), [`Table`], [`Partition`], [`Fault`] (what of a table is not
//! used, and why). Tables come from anywhere, so nothing in them is believed: an entry that contradicts the disk,
//! the table or another entry is named and left out, and no content makes reading fail, or take for ever.
//! Deliberately not here: channels, writing tables, and what is in a partition.
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

/// Partitions of one table that are looked at, at most.
pub const MAX_PARTITIONS: usize = 1024;

/// A part of a disk could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unreadable;

/// A disk that tables are read from.
pub trait Source {
    /// Bytes of the disk.
    fn size_bytes(&self) -> u64;

    /// Bytes of its sectors: tables count in these.
    fn sector_bytes(&self) -> u32;

    /// Reads `bytes` bytes from byte `offset` on. Both are multiples of the sector's, and lie within the disk.
    fn read(&self, offset: u64, bytes: usize) -> impl Future<Output = Result<Vec<u8>, Unreadable>>;
}

/// What kind of table a disk has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableKind {
    /// None: the disk is one volume, or empty.
    None,
    /// The table of the master boot record.
    Mbr,
    /// The GUID partition table, from its first copy or from the one at the end of the disk.
    Gpt(Copy),
}

/// A partition that can be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Partition {
    /// Its number, from 1 on, as other systems count: the place in the table; logical partitions of an MBR from 5 on.
    pub number: u32,
    /// Where it begins, in bytes.
    pub first_byte: u64,
    /// Its length in bytes, never 0.
    pub bytes: u64,
    /// What is in it.
    pub kind: PartitionKind,
    /// Its name, of a GPT.
    pub name: String,
    /// Whether the table asks that nothing be written to it.
    pub read_only: bool,
}

/// What was found on a disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    /// What kind of table it is.
    pub kind: TableKind,
    /// The partitions that can be used, by number. No two overlap, and all lie within the disk.
    pub partitions: Vec<Partition>,
    /// What cannot be used, and why.
    pub faults: Vec<Fault>,
}

impl Table {
    fn new(kind: TableKind) -> Table {
        Table { kind, partitions: Vec::new(), faults: Vec::new() }
    }
}

/// Reads the table of a disk. A disk without one is a [`TableKind::None`].
///
/// # Errors
/// The disk's first sector cannot be read.
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
    /// `None` where the numbers are none of a disk that could have a table.
    fn new(source: &S) -> Option<Disk<'_, S>> {
        let sector_bytes = source.sector_bytes();
        if !sector_bytes.is_power_of_two() || !(512..=65_536).contains(&sector_bytes) {
            return None;
        }
        let sector_bytes = u64::from(sector_bytes);
        let sectors = source.size_bytes() / sector_bytes;
        (sectors > 0).then_some(Disk { source, sectors, sector_bytes })
    }

    /// Reads sectors, all of which must be on the disk.
    async fn read(&self, first: u64, count: u64) -> Result<Vec<u8>, Unreadable> {
        let end = first.checked_add(count).filter(|&end| end <= self.sectors);
        let bytes = count.checked_mul(self.sector_bytes).and_then(|bytes| usize::try_from(bytes).ok());
        let (Some(_), Some(bytes)) = (end, bytes) else { return Err(Unreadable) };
        let read = self.source.read(first * self.sector_bytes, bytes).await?;
        if read.len() == bytes { Ok(read) } else { Err(Unreadable) }
    }
}
