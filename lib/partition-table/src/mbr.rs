//! The MBR, and the chain of tables (EBR) in an extended partition.
//!
//! An extended partition begins with a table whose first entry is a logical partition, relative to that table, and
//! whose second entry is the next table, relative to the start of the extended partition.

use alloc::collections::BTreeSet;
use alloc::string::String;

use crate::place::Range;
use crate::{Disk, Fault, MAX_PARTITIONS, Partition, PartitionKind, Source, Table, TableKind};

const SIGNATURE: [u8; 2] = [0x55, 0xAA];

/// A sector with a table.
#[derive(layout::Record)]
#[record(bytes = 512, order = "little")]
struct Sector {
    #[at(446)]
    entries: [EntryRecord; 4],
    /// [`SIGNATURE`].
    signature: [u8; 2],
}

/// An entry. CHS addresses are ignored.
#[derive(layout::Record)]
#[record(bytes = 16, order = "little")]
struct EntryRecord {
    /// 0x80: active; else 0.
    boot: u8,
    /// Partition type; 0: unused.
    #[at(4)]
    kind: u8,
    /// First sector.
    #[at(8)]
    first: u32,
    /// Number of sectors.
    sectors: u32,
}

const PROTECTIVE: u8 = 0xEE;
const EXTENDED: [u8; 3] = [0x05, 0x0F, 0x85];
/// Number of the first logical partition.
const FIRST_LOGICAL: u32 = 5;
/// Maximum tables of a chain; other systems support far fewer.
const MAX_TABLES: usize = 256;

/// A sector with a table.
pub struct Record {
    entries: [Entry; 4],
}

#[derive(Clone, Copy)]
struct Entry {
    kind: u8,
    first: u64,
    sectors: u64,
}

impl Entry {
    fn is_used(self) -> bool {
        self.kind != 0 && self.sectors != 0
    }

    fn is_extended(self) -> bool {
        self.is_used() && EXTENDED.contains(&self.kind)
    }

    /// Its sectors, relative to `base`.
    fn range(self, base: u64) -> Option<Range> {
        Range::of(base.checked_add(self.first)?, self.sectors)
    }
}

impl Record {
    /// Parses the table in a sector. Boot sectors of volumes have the same signature, but invalid boot indicators.
    pub fn parse(sector: &[u8]) -> Option<Record> {
        let Sector { entries, signature } = Sector::parse(sector)?;
        if signature != SIGNATURE || entries.iter().any(|entry| !matches!(entry.boot, 0 | 0x80)) {
            return None;
        }
        let entries = entries.map(|EntryRecord { kind, first, sectors, .. }| Entry {
            kind,
            first: first.into(),
            sectors: sectors.into(),
        });
        Some(Record { entries })
    }

    /// Whether it is the protective MBR of a GPT.
    pub fn is_protective(&self) -> bool {
        self.entries.iter().any(|entry| entry.kind == PROTECTIVE)
    }
}

/// Reads the rest of a table that begins with this record.
pub async fn read<S: Source>(disk: &Disk<'_, S>, record: &Record) -> Table {
    let mut table = Table::new(TableKind::Mbr);
    let whole = Range { first: 0, end: disk.sectors };
    for (number, entry) in (1..).zip(record.entries).filter(|(_, entry)| entry.is_used() && !entry.is_extended()) {
        add(disk, &mut table, number, entry, whole, 0);
    }
    let mut next_number = FIRST_LOGICAL;
    // The sectors with tables.
    let mut visited = BTreeSet::from([0]);
    for (number, entry) in (1..).zip(record.entries).filter(|(_, entry)| entry.is_extended()) {
        match entry.range(0) {
            Some(range) if whole.contains(range) && range.first > 0 => {
                read_chain(disk, &mut table, range, &mut next_number, &mut visited).await;
            }
            _ => table.faults.push(Fault::ExtendedOutOfRange { number }),
        }
    }
    refuse_over_tables(disk, &mut table, &visited);
    table
}

/// Removes all partitions that contain a sector with a table.
fn refuse_over_tables<S: Source>(disk: &Disk<'_, S>, table: &mut Table, sectors: &BTreeSet<u64>) {
    let Table { partitions, faults, .. } = table;
    partitions.retain(|partition| {
        let first = partition.first_byte / disk.sector_bytes;
        let is_free = sectors.range(first..first + partition.bytes / disk.sector_bytes).next().is_none();
        if !is_free {
            faults.push(Fault::OverTable { number: partition.number });
        }
        is_free
    });
}

/// Reads the logical partitions of an extended one, each table once.
async fn read_chain<S: Source>(
    disk: &Disk<'_, S>,
    table: &mut Table,
    extended: Range,
    next_number: &mut u32,
    visited: &mut BTreeSet<u64>,
) {
    let mut sector = extended.first;
    loop {
        if visited.len() > MAX_TABLES || table.partitions.len() >= MAX_PARTITIONS {
            table.faults.push(Fault::TooMany);
            return;
        }
        if !visited.insert(sector) {
            table.faults.push(Fault::Circle { sector });
            return;
        }
        let record = disk.read(sector, 1).await.ok().and_then(|bytes| Record::parse(&bytes));
        let Some(record) = record else {
            table.faults.push(Fault::ChainBroken { sector });
            return;
        };
        let [logical, link, ..] = record.entries;
        if logical.is_used() && !logical.is_extended() {
            add(disk, table, *next_number, logical, extended, sector);
            *next_number += 1;
        }
        // A chain that begins with an empty table has its link in the first entry.
        let Some(link) = [link, logical].into_iter().find(|entry| entry.is_extended()) else { return };
        sector = match link.range(extended.first) {
            Some(range) if range.first >= extended.first && range.first < extended.end => range.first,
            _ => {
                table.faults.push(Fault::ChainOutOfRange { sector: extended.first.saturating_add(link.first) });
                return;
            }
        };
    }
}

/// Adds a partition that is relative to sector `base`, if it is within `bounds`.
fn add<S: Source>(disk: &Disk<'_, S>, table: &mut Table, number: u32, entry: Entry, bounds: Range, base: u64) {
    let range = match entry.range(base) {
        Some(range) if bounds.contains(range) => range,
        _ => return table.faults.push(Fault::OutOfRange { number }),
    };
    table.partitions.push(Partition {
        number,
        first_byte: range.first * disk.sector_bytes,
        bytes: (range.end - range.first) * disk.sector_bytes,
        kind: PartitionKind::Mbr(entry.kind),
        name: String::new(),
        read_only: false,
    });
}
