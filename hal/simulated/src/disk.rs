//! Disks in memory that forget what was not flushed when the power fails.
//!
//! A write is visible to reads once it is complete. What survives a power cut is what a flush covered, and of every
//! later write any part: all of it, nothing, its beginning, or some of its sectors. A flush covers the writes that were
//! complete when it was submitted. Key type: [`Disk`]. Deliberately not here: when a request completes.

use crate::choices::mixed;

/// What a disk writes whole or not at all.
const SECTOR_BYTES: usize = 512;

#[derive(Debug)]
struct Write {
    offset: usize,
    bytes: Vec<u8>,
}

/// A disk.
#[derive(Debug)]
pub struct Disk {
    /// What reads see.
    content: Vec<u8>,
    /// What the last flush made durable, with all writes before it.
    durable: Vec<u8>,
    /// Complete writes that are not in `durable`, in order.
    unflushed: Vec<Write>,
    /// Number of writes that have left `unflushed`.
    flushed: u64,
    read_only: bool,
}

impl Disk {
    /// Makes a disk with this content.
    pub fn new(content: Vec<u8>, read_only: bool) -> Disk {
        let durable = if read_only { Vec::new() } else { content.clone() };
        Disk { content, durable, unflushed: Vec::new(), flushed: 0, read_only }
    }

    /// Returns its size in bytes.
    pub fn bytes(&self) -> u64 {
        self.content.len() as u64
    }

    /// Returns whether writes are refused.
    pub fn read_only(&self) -> bool {
        self.read_only
    }

    /// Returns whether a range lies on the disk.
    pub fn holds(&self, offset: u64, bytes: usize) -> bool {
        offset.checked_add(bytes as u64).is_some_and(|end| end <= self.bytes())
    }

    /// Reads a range that lies on the disk.
    pub fn read(&self, offset: u64, bytes: usize) -> &[u8] {
        &self.content[offset as usize..offset as usize + bytes]
    }

    /// Completes a write to a range that lies on the disk.
    pub fn write(&mut self, offset: u64, bytes: Vec<u8>) {
        let offset = offset as usize;
        self.content[offset..offset + bytes.len()].copy_from_slice(&bytes);
        self.unflushed.push(Write { offset, bytes });
    }

    /// Returns the number of complete writes, which a flush submitted at this moment covers.
    pub fn written(&self) -> u64 {
        self.flushed + self.unflushed.len() as u64
    }

    /// Completes a flush that covers this number of writes.
    pub fn flush(&mut self, written: u64) {
        let count = written.saturating_sub(self.flushed) as usize;
        for write in self.unflushed.drain(..count.min(self.unflushed.len())) {
            self.durable[write.offset..write.offset + write.bytes.len()].copy_from_slice(&write.bytes);
            self.flushed += 1;
        }
    }

    /// Returns what an orderly end leaves: everything written.
    pub fn whole(&self) -> &[u8] {
        &self.content
    }

    /// Fails the power while these writes are in flight; `chance` decides what survives.
    pub fn cut(mut self, in_flight: Vec<(u64, Vec<u8>)>, chance: u64) -> Vec<u8> {
        if self.read_only {
            return self.content;
        }
        self.unflushed.extend(in_flight.into_iter().map(|(offset, bytes)| Write { offset: offset as usize, bytes }));
        for (number, write) in self.unflushed.iter().enumerate() {
            let drawn = mixed(chance, 0, number as u64);
            let sectors = write.bytes.len().div_ceil(SECTOR_BYTES).max(1);
            for (sector, bytes) in write.bytes.chunks(SECTOR_BYTES).enumerate() {
                if survives(drawn, sector, sectors) {
                    let offset = write.offset + sector * SECTOR_BYTES;
                    self.durable[offset..offset + bytes.len()].copy_from_slice(bytes);
                }
            }
        }
        self.durable
    }
}

/// Whether a sector of a write survives.
fn survives(drawn: u64, sector: usize, sectors: usize) -> bool {
    match drawn % 4 {
        0 => true,
        1 => false,
        2 => (sector as u64) < (drawn >> 8) % sectors as u64,
        _ => mixed(drawn, 1, sector as u64).is_multiple_of(2),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE: usize = 8 * SECTOR_BYTES;

    #[test]
    fn a_flush_keeps_what_was_complete_before_it_and_nothing_else_for_sure() {
        let mut left = [0; 2];
        for chance in 0..200 {
            let mut disk = Disk::new(vec![0; SIZE], false);
            disk.write(0, vec![1; 1024]);
            let written = disk.written();
            disk.write(2048, vec![2; 1024]);
            disk.flush(written);
            assert_eq!(disk.read(2048, 4), [2; 4]);
            let after = disk.cut(vec![(3072, vec![3; 1024])], chance);
            assert_eq!(after[..1024], [1; 1024]);
            left[0] += usize::from(after[2048] == 2);
            left[1] += usize::from(after[3072] == 3);
        }
        assert!(left.iter().all(|&count| (50..150).contains(&count)), "{left:?}");
    }

    #[test]
    fn a_write_is_torn_between_sectors_only() {
        let mut torn = 0;
        for chance in 0..200 {
            let mut disk = Disk::new(vec![0; SIZE], false);
            disk.write(0, vec![1; SIZE]);
            let after = disk.cut(Vec::new(), chance);
            let whole: Vec<bool> = after.chunks(SECTOR_BYTES).map(|sector| sector[0] == 1).collect();
            assert!(after.chunks(SECTOR_BYTES).all(|sector| sector.iter().all(|&byte| byte == sector[0])));
            torn += usize::from(whole.contains(&true) && whole.contains(&false));
        }
        assert!((50..150).contains(&torn), "{torn}");
    }

    #[test]
    fn a_later_write_of_a_sector_may_survive_without_the_earlier_one_but_is_not_overtaken_by_it() {
        let outcomes: std::collections::BTreeSet<u8> = (0..200)
            .map(|chance| {
                let mut disk = Disk::new(vec![0; SIZE], false);
                disk.write(0, vec![1; 512]);
                disk.write(0, vec![2; 512]);
                disk.cut(Vec::new(), chance)[0]
            })
            .collect();
        assert_eq!(outcomes, [0, 1, 2].into());
    }
}
