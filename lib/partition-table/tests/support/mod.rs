//! Disks in memory, and handmade tables.
#![allow(dead_code, reason = "each test uses a part of it")]

use std::cell::Cell;
use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use partition_table::{Source, Table, Unreadable};

/// A disk in memory that fails a test that reads without end.
pub struct Memory {
    pub bytes: Vec<u8>,
    pub sector_bytes: u32,
    /// Unreadable sectors.
    pub bad: Vec<u64>,
    pub reads: Cell<u32>,
}

impl Memory {
    pub fn new(sectors: u64, sector_bytes: u32) -> Memory {
        let bytes = vec![0; (sectors * u64::from(sector_bytes)) as usize];
        Memory { bytes, sector_bytes, bad: Vec::new(), reads: Cell::new(0) }
    }

    pub fn sectors(&self) -> u64 {
        self.bytes.len() as u64 / u64::from(self.sector_bytes)
    }

    pub fn put(&mut self, sector: u64, within: usize, bytes: &[u8]) {
        let at = sector as usize * self.sector_bytes as usize + within;
        self.bytes[at..at + bytes.len()].copy_from_slice(bytes);
    }

    /// Sets an entry of the table in a sector: (type, first sector, sectors) at index 0 to 3.
    pub fn entry(&mut self, sector: u64, place: usize, kind: u8, first: u32, sectors: u32) {
        let at = 446 + 16 * place;
        self.put(sector, at + 4, &[kind]);
        self.put(sector, at + 8, &first.to_le_bytes());
        self.put(sector, at + 12, &sectors.to_le_bytes());
        self.put(sector, 510, &[0x55, 0xAA]);
    }

    pub fn table(&self) -> Table {
        complete(partition_table::read(self)).expect("the first sector can be read")
    }
}

impl Source for Memory {
    fn size_bytes(&self) -> u64 {
        self.bytes.len() as u64
    }

    fn sector_bytes(&self) -> u32 {
        self.sector_bytes
    }

    async fn read(&self, offset: u64, bytes: usize) -> Result<Vec<u8>, Unreadable> {
        self.reads.set(self.reads.get() + 1);
        assert!(self.reads.get() < 2_000, "no table needs that many reads");
        let sector = u64::from(self.sector_bytes);
        assert!(offset.is_multiple_of(sector) && (bytes as u64).is_multiple_of(sector) && bytes <= 2 << 20);
        let (first, end) = (offset / sector, (offset + bytes as u64) / sector);
        if self.bad.iter().any(|bad| (first..end).contains(bad)) {
            return Err(Unreadable);
        }
        Ok(self.bytes[offset as usize..offset as usize + bytes].to_vec())
    }
}

/// Runs a future that never waits.
pub fn complete<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("a disk in memory makes nobody wait"),
    }
}

/// A GPT to be written to a disk.
pub struct Gpt {
    pub entries: Vec<[u8; 128]>,
    pub count: u32,
    pub entry_bytes: u32,
    pub first_usable: u64,
    pub last_usable: u64,
}

impl Gpt {
    /// A GPT with these partitions (first, last sector), for a disk of this shape.
    pub fn of(disk: &Memory, partitions: &[(u64, u64)]) -> Gpt {
        let sectors = 16_384_u64.div_ceil(u64::from(disk.sector_bytes));
        let entry = |&(first, last): &(u64, u64)| {
            let mut entry = [0; 128];
            entry[..16].fill(0xA5);
            entry[32..40].copy_from_slice(&first.to_le_bytes());
            entry[40..48].copy_from_slice(&last.to_le_bytes());
            for (at, unit) in "volume é".encode_utf16().enumerate() {
                entry[56 + 2 * at..58 + 2 * at].copy_from_slice(&unit.to_le_bytes());
            }
            entry
        };
        Gpt {
            entries: partitions.iter().map(entry).collect(),
            count: 128,
            entry_bytes: 128,
            first_usable: 2 + sectors,
            last_usable: disk.sectors() - 2 - sectors,
        }
    }

    /// Writes both copies and the protective MBR.
    pub fn write(&self, disk: &mut Memory) {
        let last = disk.sectors() - 1;
        disk.entry(0, 0, 0xEE, 1, u32::MAX);
        self.write_copy(disk, 1, 2, last);
        self.write_copy(disk, last, self.last_usable + 1, 1);
    }

    fn write_copy(&self, disk: &mut Memory, at: u64, entries_at: u64, other: u64) {
        let mut entries = vec![0; (self.count * self.entry_bytes) as usize];
        for (place, entry) in entries.chunks_exact_mut(self.entry_bytes as usize).zip(&self.entries) {
            place[..128].copy_from_slice(entry);
        }
        let mut header = [0; 92];
        header[..8].copy_from_slice(b"EFI PART");
        header[8..12].copy_from_slice(&0x10000_u32.to_le_bytes());
        header[12..16].copy_from_slice(&92_u32.to_le_bytes());
        for (place, number) in
            [(24, at), (32, other), (40, self.first_usable), (48, self.last_usable), (72, entries_at)]
        {
            header[place..place + 8].copy_from_slice(&number.to_le_bytes());
        }
        for (place, number) in [(80, self.count), (84, self.entry_bytes), (88, crc32(&entries))] {
            header[place..place + 4].copy_from_slice(&number.to_le_bytes());
        }
        let checksum = crc32(&header);
        header[16..20].copy_from_slice(&checksum.to_le_bytes());
        disk.put(entries_at, 0, &entries);
        disk.put(at, 0, &header);
    }
}

/// Bit by bit, to be independent of the code under test.
pub fn crc32(bytes: &[u8]) -> u32 {
    let mut value = u32::MAX;
    for &byte in bytes {
        value ^= u32::from(byte);
        for _ in 0..8 {
            value = if value & 1 == 1 { value >> 1 ^ 0xEDB8_8320 } else { value >> 1 };
        }
    }
    !value
}

/// Number, first byte and length of each partition.
pub fn places(table: &Table) -> Vec<(u32, u64, u64)> {
    table.partitions.iter().map(|partition| (partition.number, partition.first_byte, partition.bytes)).collect()
}
