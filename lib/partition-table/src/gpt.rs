//! The GUID partition table (UEFI specification, section 5.3).
//!
//! The header is in sector 1, its copy in the disk's last.

use alloc::string::String;
use alloc::vec::Vec;

use crc32fast::Hasher;

use crate::place::Range;
use crate::{Copy, Disk, Fault, HeaderError, MAX_PARTITIONS, Partition, PartitionKind, Source, Table, TableKind};

const SIGNATURE: [u8; 8] = *b"EFI PART";
/// All entries together are no longer than this; a usual table has 16 KiB.
const MAX_ENTRIES_BYTES: u64 = 1 << 20;

/// The header as it lies in its sector.
#[derive(layout::Record)]
#[record(bytes = 92, order = "little")]
struct HeaderRecord {
    /// [`SIGNATURE`].
    signature: [u8; 8],
    /// Bytes of the header; these at least.
    #[at(12)]
    bytes: u32,
    /// Of the header, with zero in its own place.
    checksum: u32,
    /// The sector that this is in.
    #[at(24)]
    own_sector: u64,
    /// That of the other header.
    other_sector: u64,
    /// The first sector that partitions may have.
    first_usable: u64,
    /// The last.
    last_usable: u64,
    /// The first sector of the entries.
    #[at(72)]
    entries_sector: u64,
    /// How many entries there are.
    entries: u32,
    /// Bytes of an entry, a power of two; those of [`EntryRecord`] at least.
    entry_bytes: u32,
    /// Of all entries.
    entries_checksum: u32,
}

/// An entry as it lies in the table.
#[derive(layout::Record)]
#[record(bytes = 128, order = "little")]
struct EntryRecord {
    /// What the partition is for; zero: there is none.
    kind: [u8; 16],
    /// The partition's first sector.
    #[at(32)]
    first: u64,
    /// Its last.
    last: u64,
    /// Its attributes.
    attributes: Attributes,
    /// Its name, UTF-16; ends with zero.
    name: [u16; 36],
}

/// What an entry says of its partition.
#[layout::bits(u64)]
struct Attributes {
    /// Of basic data partitions: to be read only.
    #[bit(60)]
    read_only: bool,
}

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

/// Reads one copy, whose header is in this sector. `other` becomes the sector of the other copy's header, as far as
/// a sound header says.
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
    // The product was found to fit into the sectors that were read.
    let entries = &bytes[..header.count as usize * header.entry_bytes as usize];
    if crc32fast::hash(entries) != header.entries_checksum {
        return Err(HeaderError::EntriesChecksum);
    }
    let mut table = Table::new(TableKind::Gpt(copy));
    for (number, entry) in (1..).zip(entries.chunks_exact(header.entry_bytes as usize)) {
        // No entry is shorter than the record.
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

    /// The numbers of a header whose checksum is right, if they make sense on this disk.
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

    /// Where the other header is; it may be anywhere, as a disk may have grown.
    fn other_sector(&self) -> Range {
        Range { first: self.other, end: self.other.saturating_add(1) }
    }
}

/// A partition that lies where the header `header`, read from the sector `header_at`, lets it.
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
