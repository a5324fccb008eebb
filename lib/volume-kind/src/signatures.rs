//! Signatures of disk content.
//!
//! Key items: [`probes`], [`Probe`]. A probe is about one sector, which the caller reads. The ext2 magic number is not
//! among the signatures: [`may_hold`](crate::may_hold) checks it.

use crate::{has, may_be_fat};

/// Sector size of probes, in bytes.
pub const SECTOR_BYTES: usize = 512;

/// Name of FAT.
pub const FAT: &str = "a FAT file system";
/// Name of an MBR partition table.
pub const MBR: &str = "a partition table (MBR)";
/// Name of a GPT.
pub const GPT: &str = "a partition table (GPT)";

/// Location of a signature.
#[derive(Clone, Copy)]
enum Place {
    /// Offset from the start of the disk.
    At(u64),
    /// Offset in the last sector of the disk.
    LastSector(u64),
    /// RAID metadata of version 0.90: in the last whole 64 KiB but one.
    Raid090,
    /// RAID metadata of version 1.0: 8 to 12 KiB before the end.
    Raid10,
}

/// The test for a signature.
#[derive(Clone, Copy)]
enum Test {
    /// Equal to these bytes.
    Bytes(&'static [u8]),
    /// A FAT boot sector.
    Fat,
    /// An MBR.
    Mbr,
}

struct Signature {
    name: &'static str,
    place: Place,
    test: Test,
}

const fn bytes(name: &'static str, at: u64, bytes: &'static [u8]) -> Signature {
    Signature { name, place: Place::At(at), test: Test::Bytes(bytes) }
}

const LVM: &str = "an LVM physical volume";
const RAID: &str = "a member of a RAID array";
const SWAP: &str = "swap space";
const LUKS: &str = "an encrypted volume (LUKS)";
const RAID_MAGIC: &[u8] = &0xa92b_4efc_u32.to_le_bytes();

/// None of them crosses a sector boundary.
const SIGNATURES: &[Signature] = &[
    bytes("an XFS file system", 0, b"XFSB"),
    bytes("an NTFS file system", 3, b"NTFS    "),
    bytes("an exFAT file system", 3, b"EXFAT   "),
    bytes("an encrypted volume (BitLocker)", 3, b"-FVE-FS-"),
    bytes("an APFS container", 32, b"NXSB"),
    bytes("a squashfs file system", 0, b"hsqs"),
    bytes(LUKS, 0, b"LUKS\xba\xbe"),
    bytes(LUKS, 16 << 10, b"SKUL\xba\xbe"),
    bytes(LVM, 0, b"LABELONE"),
    bytes(LVM, 512, b"LABELONE"),
    bytes(LVM, 1024, b"LABELONE"),
    bytes(LVM, 1536, b"LABELONE"),
    bytes("an F2FS file system", 1024, &0xf2f5_2010_u32.to_le_bytes()),
    bytes("an EROFS file system", 1024, &0xe0f5_e1e2_u32.to_le_bytes()),
    bytes("an HFS+ file system", 1024, b"H+\0\x04"),
    bytes("an HFS+ file system", 1024, b"HX\0\x05"),
    bytes("a JFS file system", 32 << 10, b"JFS1"),
    bytes("an ISO 9660 file system", (32 << 10) + 1, b"CD001"),
    bytes("a btrfs file system", (64 << 10) + 64, b"_BHRfS_M"),
    bytes("a ReiserFS file system", (64 << 10) + 52, b"ReIsEr"),
    bytes("a ZFS pool", 128 << 10, &0x00ba_b10c_u64.to_le_bytes()),
    bytes("a bcache device", 4096 + 24, b"\xc6\x85\x73\xf6\x4e\x1a\x45\xca\x82\x65\xf5\x7f\x48\xba\x6d\x81"),
    bytes("a bcachefs file system", 4096 + 24, b"\xc6\x85\x73\xf6\x66\xce\x90\xa9\xd9\x6a\x60\xcf\x80\x3d\xf7\xef"),
    bytes(SWAP, (4 << 10) - 10, b"SWAPSPACE2"),
    bytes(SWAP, (4 << 10) - 10, b"SWAP-SPACE"),
    bytes(SWAP, (8 << 10) - 10, b"SWAPSPACE2"),
    bytes(SWAP, (16 << 10) - 10, b"SWAPSPACE2"),
    bytes(SWAP, (64 << 10) - 10, b"SWAPSPACE2"),
    bytes(RAID, 0, RAID_MAGIC),
    bytes(RAID, 4096, RAID_MAGIC),
    Signature { name: RAID, place: Place::Raid090, test: Test::Bytes(RAID_MAGIC) },
    Signature { name: RAID, place: Place::Raid10, test: Test::Bytes(RAID_MAGIC) },
    bytes(GPT, 512, b"EFI PART"),
    bytes(GPT, 4096, b"EFI PART"),
    Signature { name: GPT, place: Place::LastSector(0), test: Test::Bytes(b"EFI PART") },
    Signature { name: FAT, place: Place::At(0), test: Test::Fat },
    Signature { name: MBR, place: Place::At(0), test: Test::Mbr },
];

/// A sector to read, and the signature to test for.
#[derive(Clone, Copy)]
pub struct Probe {
    /// Offset of the sector, a multiple of [`SECTOR_BYTES`].
    pub offset: u64,
    name: &'static str,
    within: usize,
    test: Test,
}

impl Probe {
    /// Tests the sector; returns the name of the signature if it matches.
    pub fn finds(&self, sector: &[u8]) -> Option<&'static str> {
        let sector = sector.get(..SECTOR_BYTES)?;
        let found = match self.test {
            Test::Bytes(bytes) => has(sector, self.within, bytes),
            Test::Fat => may_be_fat(sector),
            Test::Mbr => is_mbr(sector),
        };
        found.then_some(self.name)
    }
}

/// The probes for a disk of this size, without those beyond its end.
pub fn probes(disk_bytes: u64) -> impl Iterator<Item = Probe> {
    let sector = SECTOR_BYTES as u64;
    let whole = disk_bytes / sector * sector;
    SIGNATURES.iter().filter_map(move |signature| {
        let at = match signature.place {
            Place::At(at) => at,
            Place::LastSector(within) => whole.checked_sub(sector)? + within,
            Place::Raid090 => (whole & !0xffff).checked_sub(64 << 10)?,
            Place::Raid10 => whole.checked_sub(8 << 10)? & !0xfff,
        };
        let (offset, within) = (at / sector * sector, (at % sector) as usize);
        let probe = Probe { offset, name: signature.name, within, test: signature.test };
        (offset + sector <= whole).then_some(probe)
    })
}

/// Whether the boot sector has four plausible partition entries, at least one of them in use.
fn is_mbr(sector: &[u8]) -> bool {
    let number =
        |at: usize| sector.get(at..at + 4).and_then(|bytes| bytes.first_chunk()).map(|b| u32::from_le_bytes(*b));
    let (mut partitions, mut possible) = (0, true);
    for entry in (0..4).map(|index| 446 + index * 16) {
        let (flag, kind) = (sector.get(entry).copied(), sector.get(entry + 4).copied());
        let (start, sectors) = (number(entry + 8), number(entry + 12));
        possible &= matches!(flag, Some(0 | 0x80));
        match kind {
            Some(0) | None => {}
            Some(_) if start == Some(0) || sectors == Some(0) => possible = false,
            Some(_) => partitions += 1,
        }
    }
    has(sector, 510, &[0x55, 0xaa]) && possible && partitions > 0
}

#[cfg(test)]
mod tests {
    extern crate alloc;

    use alloc::vec;
    use alloc::vec::Vec;

    use super::*;

    fn found(disk: &[u8]) -> Vec<&'static str> {
        probes(disk.len() as u64)
            .filter_map(|probe| probe.finds(&disk[probe.offset as usize..][..SECTOR_BYTES]))
            .collect()
    }

    fn place_of(signature: &Signature, disk_bytes: u64) -> usize {
        let at = match signature.place {
            Place::At(at) => at,
            Place::LastSector(within) => disk_bytes - 512 + within,
            Place::Raid090 => disk_bytes / 65_536 * 65_536 - 65_536,
            Place::Raid10 => (disk_bytes - 8192) / 4096 * 4096,
        };
        at as usize
    }

    #[test]
    fn each_signature_is_found_where_it_is_and_nothing_else() {
        for signature in SIGNATURES {
            let mut disk = vec![0; (1 << 20) + 512 * 7];
            let at = place_of(signature, disk.len() as u64);
            match signature.test {
                Test::Bytes(bytes) => {
                    assert!(at % 512 + bytes.len() <= 512, "{} crosses a sector", signature.name);
                    disk[at..at + bytes.len()].copy_from_slice(bytes);
                }
                Test::Fat => disk[at + 54..at + 59].copy_from_slice(b"FAT16"),
                Test::Mbr => {
                    disk[446..462].copy_from_slice(&[0x80, 1, 1, 0, 0x83, 0, 0, 0, 0, 8, 0, 0, 0, 1, 0, 0]);
                    disk[510..512].copy_from_slice(&[0x55, 0xaa]);
                }
            }
            assert_eq!(found(&disk), [signature.name]);
        }
        assert!(found(&vec![0; 1 << 20]).is_empty() && found(&[]).is_empty());
    }

    #[test]
    fn a_boot_loader_without_partitions_is_no_partition_table() {
        let mut disk = vec![0x90; 512];
        disk[446..510].fill(0);
        disk[510..].copy_from_slice(&[0x55, 0xaa]);
        disk[11..14].fill(0x90);
        assert!(found(&disk).is_empty());
        disk[446] = 7;
        disk[450] = 0x83;
        assert!(found(&disk).is_empty());
    }

    #[test]
    fn probes_stay_on_the_disk() {
        for bytes in [0, 511, 512, 4095, 4096, 65_535, 65_536, 1 << 17, (1 << 17) + 1000] {
            assert!(probes(bytes).all(|probe| probe.offset + 512 <= bytes && probe.offset.is_multiple_of(512)));
        }
    }
}
