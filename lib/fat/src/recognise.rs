//! Detection of FAT volumes.

use hadris_fat_raw::{BOOT_SECTOR_LEN, BootError, Geometry, parse_boot};

use crate::error::Error;

/// Offsets of the file system type in the boot sector: FAT12 and FAT16, FAT32.
const FORMAT_NAMES: [usize; 2] = [54, 82];

/// Reads a boot sector.
pub(crate) fn recognise(sector: &[u8; BOOT_SECTOR_LEN]) -> Result<Geometry, Error> {
    parse_boot(sector).map_err(|error| {
        // Other formats share parts of FAT's boot sector; those must not be reported as damage.
        let is_named = FORMAT_NAMES.iter().any(|at| sector[*at..].starts_with(b"FAT"));
        match error {
            BootError::NotFat(_) => Error::NotRecognised,
            BootError::Corrupt(what) if is_named => Error::Damaged(what),
            _ if is_named => Error::Damaged("the boot sector has no signature"),
            _ => Error::NotRecognised,
        }
    })
}
