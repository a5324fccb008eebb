//! Partition types with names.

use core::fmt;

/// Partition type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PartitionKind {
    /// MBR type byte.
    Mbr(u8),
    /// GPT type GUID, in on-disk byte order.
    Gpt([u8; 16]),
}

/// Well-known GUIDs as written, with names.
const GUIDS: [(u128, &str); 8] = [
    (0xC12A7328_F81F_11D2_BA4B_00A0C93EC93B, "EFI system"),
    (0x21686148_6449_6E6F_744E_656564454649, "BIOS boot"),
    (0x0FC63DAF_8483_4772_8E79_3D69D8477DE4, "Linux"),
    (0x4F68BCE3_E8CD_4DB1_96E7_FBCAF984B709, "Linux root"),
    (0x0657FD6D_A4AB_43C4_84E5_0933C84B4F4F, "Linux swap"),
    (0xE6D6D379_F507_44C2_A23C_238F2A3DF928, "Linux LVM"),
    (0xEBD0A0A2_B9E5_4433_87C0_68B6B72699C7, "basic data"),
    (0xE3C9E316_0B5C_4DB8_817D_F92DF00215AE, "Microsoft reserved"),
];

impl fmt::Display for PartitionKind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PartitionKind::Mbr(byte) => match mbr_word(*byte) {
                Some(word) => formatter.write_str(word),
                None => write!(formatter, "kind {byte:#04x}"),
            },
            PartitionKind::Gpt(bytes) => {
                let guid = written(*bytes);
                match GUIDS.iter().find(|(known, _)| *known == guid) {
                    Some((_, word)) => formatter.write_str(word),
                    None => write!(
                        formatter,
                        "{:08X}-{:04X}-{:04X}-{:04X}-{:012X}",
                        guid >> 96,
                        guid >> 80 & 0xFFFF,
                        guid >> 64 & 0xFFFF,
                        guid >> 48 & 0xFFFF,
                        guid & 0xFFFF_FFFF_FFFF
                    ),
                }
            }
        }
    }
}

/// Converts a GUID to its written byte order: its first three numbers are little-endian on disk.
fn written(bytes: [u8; 16]) -> u128 {
    const ORDER: [usize; 16] = [3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15];
    u128::from_be_bytes(ORDER.map(|index| bytes[index]))
}

fn mbr_word(byte: u8) -> Option<&'static str> {
    Some(match byte {
        0x01 | 0x04 | 0x06 | 0x0E => "FAT",
        0x0B | 0x0C => "FAT32",
        0x07 => "NTFS or exFAT",
        0x82 => "Linux swap",
        0x83 => "Linux",
        0x8E => "Linux LVM",
        0xEF => "EFI system",
        0xFD => "Linux RAID",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use alloc::format;

    use super::*;

    #[test]
    fn guids_are_known_by_their_bytes_on_the_disk() {
        let linux = [0xAF, 0x3D, 0xC6, 0x0F, 0x83, 0x84, 0x72, 0x47, 0x8E, 0x79, 0x3D, 0x69, 0xD8, 0x47, 0x7D, 0xE4];
        assert_eq!(format!("{}", PartitionKind::Gpt(linux)), "Linux");
        let mut unknown = linux;
        unknown[0] = 0xAE;
        assert_eq!(format!("{}", PartitionKind::Gpt(unknown)), "0FC63DAE-8483-4772-8E79-3D69D8477DE4");
        assert_eq!(format!("{}", PartitionKind::Mbr(0x0C)), "FAT32");
        assert_eq!(format!("{}", PartitionKind::Mbr(0x5)), "kind 0x05");
    }
}
