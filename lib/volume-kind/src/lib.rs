//! Detection of disk content by signatures.
//!
//! [`may_hold`] saves starting a file system service for a disk of another kind. A `false` is certain; a `true` is not:
//! damage and unsupported variants are for the file system to report. [`probes`] finds signatures of file systems,
//! partition tables and other uses, for a caller that must not mistake a disk in use for an empty or damaged one.
//! Deliberately not here: reading disks, and the content of volumes.
#![no_std]
#![forbid(unsafe_code)]

mod signatures;

pub use signatures::{FAT, GPT, MBR, Probe, SECTOR_BYTES, probes};

/// Number of leading bytes that are examined.
pub const BYTES: usize = 2048;

/// Offset and value of the magic number in ext2's superblock.
const EXT2_MAGIC_AT: usize = 1024 + 56;
const EXT2_MAGIC: [u8; 2] = 0xef53_u16.to_le_bytes();

/// Offset and value of the boot sector signature.
const BOOT_SIGNATURE_AT: usize = 510;
const BOOT_SIGNATURE: [u8; 2] = [0x55, 0xaa];
/// Offsets of the file system type in boot sectors: FAT12 and FAT16, FAT32.
const FAT_NAMES_AT: [usize; 2] = [54, 82];
/// Offsets of bytes per sector (two bytes) and sectors per cluster in a FAT boot sector.
const FAT_SECTOR_BYTES_AT: usize = 11;
const FAT_CLUSTER_SECTORS_AT: usize = 13;

/// Whether a disk that begins with `start` may hold a volume of this kind (`ext2`, `fat`). Bytes after `start` count as
/// missing, so it should have [`BYTES`] bytes if the disk has. True for unknown kinds.
pub fn may_hold(kind: &str, start: &[u8]) -> bool {
    match kind {
        "ext2" => has(start, EXT2_MAGIC_AT, &EXT2_MAGIC),
        "fat" => may_be_fat(start),
        _ => true,
    }
}

/// Named FAT, or with plausible FAT parameters.
fn may_be_fat(start: &[u8]) -> bool {
    let is_named = FAT_NAMES_AT.iter().any(|at| has(start, *at, b"FAT"));
    let sector_bytes = number(start, FAT_SECTOR_BYTES_AT);
    let has_cluster = start.get(FAT_CLUSTER_SECTORS_AT).is_some_and(|sectors| sectors.is_power_of_two());
    let has_sector = sector_bytes.is_some_and(|bytes| matches!(bytes, 512 | 1024 | 2048 | 4096));
    is_named || has(start, BOOT_SIGNATURE_AT, &BOOT_SIGNATURE) && has_sector && has_cluster
}

fn has(start: &[u8], at: usize, what: &[u8]) -> bool {
    start.get(at..).is_some_and(|rest| rest.starts_with(what))
}

fn number(start: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(*start.get(at..)?.first_chunk()?))
}

#[cfg(test)]
mod tests {
    extern crate alloc;

    use alloc::vec::Vec;
    use proptest::prelude::*;

    use super::*;

    fn disk(parts: &[(usize, &[u8])]) -> Vec<u8> {
        let mut start = alloc::vec![0; BYTES];
        for (at, bytes) in parts {
            start[*at..at + bytes.len()].copy_from_slice(bytes);
        }
        start
    }

    /// A boot sector with 512-byte sectors and clusters of eight, without a name.
    fn boot_sector() -> Vec<u8> {
        disk(&[(11, &[0, 2]), (13, &[8]), (510, &[0x55, 0xaa])])
    }

    #[test]
    fn an_empty_disk_holds_nothing_that_is_known() {
        let start = disk(&[]);
        assert!(!may_hold("ext2", &start) && !may_hold("fat", &start) && may_hold("another", &start));
    }

    #[test]
    fn ext2_is_known_by_its_magic_number() {
        let start = disk(&[(1080, &[0x53, 0xef])]);
        assert!(may_hold("ext2", &start) && !may_hold("fat", &start));
        assert!(!may_hold("ext2", &disk(&[(1080, &[0xef, 0x53])])));
    }

    #[test]
    fn fat_is_known_by_its_numbers_or_its_name() {
        assert!(may_hold("fat", &boot_sector()) && !may_hold("ext2", &boot_sector()));
        assert!(may_hold("fat", &disk(&[(54, b"FAT16   ")])) && may_hold("fat", &disk(&[(82, b"FAT32   ")])));
    }

    #[test]
    fn a_table_of_partitions_alone_is_no_volume() {
        assert!(!may_hold("fat", &disk(&[(446, &[0x80, 1, 1, 0, 0x83]), (510, &[0x55, 0xaa])])));
    }

    #[test]
    fn each_number_of_a_boot_sector_counts() {
        for (at, value) in [(12, 3), (13, 0), (13, 3), (510, 0)] {
            let mut start = boot_sector();
            start[at] = value;
            assert!(!may_hold("fat", &start), "byte {at} is {value}");
        }
    }

    #[test]
    fn a_disk_that_ends_before_them_does_not_have_them() {
        let both = disk(&[(11, &[0, 2]), (13, &[8]), (510, &[0x55, 0xaa]), (1080, &[0x53, 0xef])]);
        assert!(may_hold("ext2", &both) && may_hold("fat", &both));
        assert!(!may_hold("ext2", &both[..1081]) && !may_hold("fat", &both[..511]));
    }

    proptest! {
        #[test]
        fn no_content_is_too_much(start in prop::collection::vec(any::<u8>(), 0..BYTES + 9)) {
            let _ = (may_hold("ext2", &start), may_hold("fat", &start));
        }
    }
}
