//! The GUID partition table (UEFI specification, section 5.3).
//!
//! ```text
//! sector 1, and the disk's last: the header
//!    0 "EFI PART"          24 its own sector (u64)        72 first sector of the entries (u64)
//!   12 length (u32)        32 the other header's (u64)    80 number of entries (u32)
//!   16 checksum (u32)      40 first usable sector (u64)   84 length of an entry (u32)
//!                          48 last usable sector (u64)    88 checksum of the entries (u32)
//! an entry
//!    0 kind (16 bytes, zero: unused)    32 first sector (u64)    48 attributes (u64)
//!   16 its own GUID                     40 last sector (u64)     56 name, UTF-16, 72 bytes
//! ```

use alloc::string::String;
use alloc::vec::Vec;

use crc32fast::Hasher;

use crate::place::Range;
use crate::{Copy, Disk, Fault, HeaderTrouble, MOST_PARTITIONS, Partition, PartitionKind, Source, Table, TableKind};

const SIGNATURE: &[u8; 8] = b"EFI PART";
const LEAST_HEADER_BYTES: usize = 92;
const CHECKSUM_AT: usize = 16;
const LEAST_ENTRY_BYTES: u32 = 128;
/// All entries together are no longer than this; a usual table has 16 KiB.
const MOST_ENTRIES_BYTES: u64 = 1 << 20;
const NAME: core::ops::Range<usize> = 56..128;
/// Attribute bit 60 of basic data partitions: to be read only.
const READ_ONLY: u64 = 1 << 60;

struct Header {
    usable: Range,
    /// Where this copy of the entries lies.
    entries: Range,
    count: u32,
    entry_bytes: u32,
    entries_checksum: u32,
    /// Where the other copy's header is.
    other: u64,
}

/// Reads the table, from the copy at the end where the first is damaged.
pub async fn read<S: Source>(disk: &Disk<'_, S>) -> Table {
    let mut faults = Vec::new();
    let mut backup_at = disk.sectors - 1;
    match read_copy(disk, 1, Copy::First, &mut backup_at).await {
        Ok(table) => return table,
        Err(trouble) => faults.push(Fault::Damaged { copy: Copy::First, trouble }),
    }
    match read_copy(disk, backup_at, Copy::Backup, &mut 0).await {
        Ok(mut table) => {
            faults.append(&mut table.faults);
            table.faults = faults;
            table
        }
        Err(trouble) => {
            faults.push(Fault::Damaged { copy: Copy::Backup, trouble });
            Table { faults, ..Table::new(TableKind::Gpt(Copy::First)) }
        }
    }
}

/// Reads one copy, whose header is in this sector. `other` becomes the sector of the other copy's header, as far as
/// a sound header says.
async fn read_copy<S: Source>(
    disk: &Disk<'_, S>,
    sector: u64,
    copy: Copy,
    other: &mut u64,
) -> Result<Table, HeaderTrouble> {
    let bytes = disk.read(sector, 1).await.map_err(|_| HeaderTrouble::Unreadable)?;
    let header = Header::parse(&bytes, disk, sector)?;
    *other = header.other;
    let count = header.entries.end - header.entries.first;
    let bytes = disk.read(header.entries.first, count).await.map_err(|_| HeaderTrouble::Unreadable)?;
    // The product was found to fit into the sectors that were read.
    let entries = &bytes[..header.count as usize * header.entry_bytes as usize];
    if crc32fast::hash(entries) != header.entries_checksum {
        return Err(HeaderTrouble::EntriesChecksum);
    }
    let mut table = Table::new(TableKind::Gpt(copy));
    for (number, entry) in (1..).zip(entries.chunks_exact(header.entry_bytes as usize)) {
        if entry[..16] == [0; 16] {
            continue;
        }
        if table.partitions.len() >= MOST_PARTITIONS {
            table.faults.push(Fault::TooMany);
            break;
        }
        match parse_entry(entry, number, &header, disk.sector_bytes, sector) {
            Ok(partition) => table.partitions.push(partition),
            Err(fault) => table.faults.push(fault),
        }
    }
    Ok(table)
}

impl Header {
    fn parse<S: Source>(sector: &[u8], disk: &Disk<'_, S>, at: u64) -> Result<Header, HeaderTrouble> {
        if sector[..8] != *SIGNATURE {
            return Err(HeaderTrouble::NoSignature);
        }
        let length = u32_at(sector, 12) as usize;
        if length < LEAST_HEADER_BYTES || length > sector.len() {
            return Err(HeaderTrouble::Absurd);
        }
        let mut checksum = Hasher::new();
        for piece in [&sector[..CHECKSUM_AT], &[0; 4], &sector[CHECKSUM_AT + 4..length]] {
            checksum.update(piece);
        }
        if checksum.finalize() != u32_at(sector, CHECKSUM_AT) {
            return Err(HeaderTrouble::HeaderChecksum);
        }
        if u64_at(sector, 24) != at {
            return Err(HeaderTrouble::Elsewhere);
        }
        Header::checked(sector, disk).ok_or(HeaderTrouble::Absurd)
    }

    /// The numbers of a header whose checksum is right, if they make sense on this disk.
    fn checked<S: Source>(sector: &[u8], disk: &Disk<'_, S>) -> Option<Header> {
        let whole = Range { first: 2, end: disk.sectors };
        let (count, entry_bytes) = (u32_at(sector, 80), u32_at(sector, 84));
        if entry_bytes < LEAST_ENTRY_BYTES || !entry_bytes.is_power_of_two() {
            return None;
        }
        let bytes = u64::from(count) * u64::from(entry_bytes);
        if !(1..=MOST_ENTRIES_BYTES).contains(&bytes) {
            return None;
        }
        let entries = Range::of(u64_at(sector, 72), bytes.div_ceil(disk.sector_bytes))?;
        let usable = Range { first: u64_at(sector, 40), end: u64_at(sector, 48).checked_add(1)? };
        let is_sound = whole.contains(entries) && whole.contains(usable) && usable.first <= usable.end;
        is_sound.then_some(Header {
            usable,
            entries,
            count,
            entry_bytes,
            entries_checksum: u32_at(sector, 88),
            other: u64_at(sector, 32),
        })
    }

    /// Where the other header is; it may be anywhere, as a disk may have grown.
    fn other_sector(&self) -> Range {
        Range { first: self.other, end: self.other.saturating_add(1) }
    }
}

/// A partition that lies where the header `header`, read from the sector `header_at`, lets it.
fn parse_entry(
    entry: &[u8],
    number: u32,
    header: &Header,
    sector_bytes: u64,
    header_at: u64,
) -> Result<Partition, Fault> {
    let (first, last) = (u64_at(entry, 32), u64_at(entry, 40));
    if last < first {
        return Err(Fault::Backwards { number });
    }
    let range = last.checked_add(1).map(|end| Range { first, end });
    let range = range.filter(|&range| header.usable.contains(range)).ok_or(Fault::OutOfRange { number })?;
    let tables = [header.entries, Range { first: header_at, end: header_at + 1 }, header.other_sector()];
    if tables.iter().any(|&table| range.overlaps(table)) {
        return Err(Fault::OverTable { number });
    }
    let kind: [u8; 16] = core::array::from_fn(|index| entry[index]);
    Ok(Partition {
        number,
        first_byte: range.first * sector_bytes,
        bytes: (range.end - range.first) * sector_bytes,
        kind: PartitionKind::Gpt(kind),
        name: name(&entry[NAME]),
        read_only: u64_at(entry, 48) & READ_ONLY != 0,
    })
}

fn name(bytes: &[u8]) -> String {
    let units = bytes.as_chunks::<2>().0.iter().map(|&unit| u16::from_le_bytes(unit));
    let characters = char::decode_utf16(units.take_while(|&unit| unit != 0));
    characters.map(|character| character.unwrap_or(char::REPLACEMENT_CHARACTER)).collect()
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(core::array::from_fn(|index| bytes[at + index]))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(core::array::from_fn(|index| bytes[at + index]))
}
