//! The GUID partition table (UEFI specification, section 5.3).
//!
//! The header is in sector 1, its backup in the last sector of the disk.

use alloc::string::String;
use alloc::vec::Vec;

use crc32fast::Hasher;

use crate::place::Range;
use crate::{Copy, Disk, Fault, HeaderError, MAX_PARTITIONS, Partition, PartitionKind, Source, Table, TableKind};

const SIGNATURE: [u8; 8] = *b"EFI PART";
/// Maximum size of all entries; it is usually 16 KiB.
const MAX_ENTRIES_BYTES: u64 = 1 << 20;

/// The header in its sector.
#[derive(layout::Record)]
#[record(bytes = 92, order = "little")]
struct HeaderRecord {
    /// [`SIGNATURE`].
    signature: [u8; 8],
    /// Size of the header, at least that of this record.
    #[at(12)]
    bytes: u32,
    /// Of the header, computed with zero in this field.
    checksum: u32,
    /// Sector of this header.
    #[at(24)]
    own_sector: u64,
    /// Sector of the other header.
    other_sector: u64,
    /// First usable sector.
    first_usable: u64,
    /// Last usable sector.
    last_usable: u64,
    /// First sector of the entries.
    #[at(72)]
    entries_sector: u64,
    /// Number of entries.
    entries: u32,
    /// Size of an entry: a power of two, at least that of [`EntryRecord`].
    entry_bytes: u32,
    /// CRC-32 of all entries.
    entries_checksum: u32,
}

/// An entry in the table.
#[derive(layout::Record)]
#[record(bytes = 128, order = "little")]
struct EntryRecord {
    /// Type GUID; zero: unused.
    kind: [u8; 16],
    /// First sector.
    #[at(32)]
    first: u64,
    /// Last sector.
    last: u64,
    /// Attributes.
    attributes: Attributes,
    /// Name in UTF-16, terminated by zero.
    name: [u16; 36],
}

/// The parsed attributes of an entry.
#[layout::bits(u64)]
struct Attributes {
    /// Read-only, for basic data partitions.
    #[bit(60)]
    read_only: bool,
}

struct Header {
    usable: Range,
    /// Sector of this copy's entries.
    entries: Range,
    count: u32,
    entry_bytes: u32,
    entries_checksum: u32,
    /// Sector of the other copy's header.
    other: u64,
}

/// Reads the table, from the backup if the primary copy is damaged.
pub async fn read<S: Source>(disk: &Disk<'_, S>) -> Table {
    let mut faults = Vec::new();
    let mut backup_at = disk.sectors - 1;
    match read_copy(disk, 1, Copy::First, &mut backup_at).await {
        Ok(table) => return table,
        Err(error) => faults.push(Fault::Damaged { copy: Copy::First, error }),
    }
    match read_copy(disk, backup_at, Copy::Backup, &mut 0).await {
        Ok(mut table) => {
            faults.append(&mut table.faults);
            table.faults = faults;
            table
        }
        Err(error) => {
            faults.push(Fault::Damaged { copy: Copy::Backup, error });
            Table { faults, ..Table::new(TableKind::Gpt(Copy::First)) }
        }
    }
}

/// Reads the copy whose header is in this sector. Sets `other` to the sector of the other header according to a valid
/// header.
async fn read_copy<S: Source>(
    disk: &Disk<'_, S>,
    sector: u64,
    copy: Copy,
    other: &mut u64,
) -> Result<Table, HeaderError> {
    let bytes = disk.read(sector, 1).await.map_err(|_| HeaderError::Unreadable)?;
    let header = Header::parse(&bytes, disk, sector)?;
    *other = header.other;
    let count = header.entries.end - header.entries.first;
    let bytes = disk.read(header.entries.first, count).await.map_err(|_| HeaderError::Unreadable)?;
    // The product fits the sectors that were read.
    let entries = &bytes[..header.count as usize * header.entry_bytes as usize];
    if crc32fast::hash(entries) != header.entries_checksum {
        return Err(HeaderError::EntriesChecksum);
    }
    let mut table = Table::new(TableKind::Gpt(copy));
    for (number, entry) in (1..).zip(entries.chunks_exact(header.entry_bytes as usize)) {
        // Entries are at least as long as the record.
        let Some(entry) = EntryRecord::parse(entry).filter(|entry| entry.kind != [0; 16]) else { continue };
        if table.partitions.len() >= MAX_PARTITIONS {
            table.faults.push(Fault::TooMany);
            break;
        }
        match parse_entry(&entry, number, &header, disk.sector_bytes, sector) {
            Ok(partition) => table.partitions.push(partition),
            Err(fault) => table.faults.push(fault),
        }
    }
    Ok(table)
}

impl Header {
    fn parse<S: Source>(sector: &[u8], disk: &Disk<'_, S>, at: u64) -> Result<Header, HeaderError> {
        let record = HeaderRecord::parse(sector).filter(|record| record.signature == SIGNATURE);
        let record = record.ok_or(HeaderError::NoSignature)?;
        let whole = sector.get(..record.bytes as usize).filter(|whole| whole.len() >= HeaderRecord::BYTES);
        let whole = whole.ok_or(HeaderError::Absurd)?;
        let mut without = [0; HeaderRecord::BYTES];
        without.copy_from_slice(&whole[..HeaderRecord::BYTES]);
        HeaderRecord { checksum: 0, ..record }.write(&mut without);
        let mut checksum = Hasher::new();
        checksum.update(&without);
        checksum.update(&whole[HeaderRecord::BYTES..]);
        if checksum.finalize() != record.checksum {
            return Err(HeaderError::HeaderChecksum);
        }
        if record.own_sector != at {
            return Err(HeaderError::Elsewhere);
        }
        Header::checked(&record, disk).ok_or(HeaderError::Absurd)
    }

    /// The numbers of a header with a valid checksum, if they are possible on this disk.
    fn checked<S: Source>(record: &HeaderRecord, disk: &Disk<'_, S>) -> Option<Header> {
        let whole = Range { first: 2, end: disk.sectors };
        if record.entry_bytes < EntryRecord::BYTES as u32 || !record.entry_bytes.is_power_of_two() {
            return None;
        }
        let bytes = u64::from(record.entries) * u64::from(record.entry_bytes);
        if !(1..=MAX_ENTRIES_BYTES).contains(&bytes) {
            return None;
        }
        let entries = Range::of(record.entries_sector, bytes.div_ceil(disk.sector_bytes))?;
        let usable = Range { first: record.first_usable, end: record.last_usable.checked_add(1)? };
        let is_sound = whole.contains(entries) && whole.contains(usable) && usable.first <= usable.end;
        is_sound.then_some(Header {
            usable,
            entries,
            count: record.entries,
            entry_bytes: record.entry_bytes,
            entries_checksum: record.entries_checksum,
            other: record.other_sector,
        })
    }

    /// Sector of the other header; anywhere, as the disk may have grown.
    fn other_sector(&self) -> Range {
        Range { first: self.other, end: self.other.saturating_add(1) }
    }
}

/// Parses a partition within the limits of `header`, which was read from sector `header_at`.
fn parse_entry(
    entry: &EntryRecord,
    number: u32,
    header: &Header,
    sector_bytes: u64,
    header_at: u64,
) -> Result<Partition, Fault> {
    let EntryRecord { kind, first, last, .. } = *entry;
    if last < first {
        return Err(Fault::Backwards { number });
    }
    let range = last.checked_add(1).map(|end| Range { first, end });
    let range = range.filter(|&range| header.usable.contains(range)).ok_or(Fault::OutOfRange { number })?;
    let tables = [header.entries, Range { first: header_at, end: header_at + 1 }, header.other_sector()];
    if tables.iter().any(|&table| range.overlaps(table)) {
        return Err(Fault::OverTable { number });
    }
    Ok(Partition {
        number,
        first_byte: range.first * sector_bytes,
        bytes: (range.end - range.first) * sector_bytes,
        kind: PartitionKind::Gpt(kind),
        name: name(&entry.name),
        read_only: entry.attributes.read_only(),
    })
}

fn name(units: &[u16]) -> String {
    let characters = char::decode_utf16(units.iter().copied().take_while(|&unit| unit != 0));
    characters.map(|character| character.unwrap_or(char::REPLACEMENT_CHARACTER)).collect()
}
