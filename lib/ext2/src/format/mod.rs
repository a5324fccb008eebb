//! The disk format. Each structure is a triple: field offsets, a view that checks the length, and the parsed fields,
//! checked against each other.
//!
//! All numbers are little-endian. Not here: following pointers between structures.

pub mod attributes;
pub mod directory;
pub mod error;
pub mod features;
pub(crate) mod fresh;
pub(crate) mod geometry;
pub mod group;
pub(crate) mod hash;
pub mod inode;
pub mod journal;
pub mod superblock;

/// Inode number of the root directory.
pub const ROOT_INODE: u32 = 2;

/// Reads the 16-bit number at `offset`. Views call this for offsets that they have checked.
pub(crate) fn read_u16(bytes: &[u8], offset: usize) -> u16 {
    u16::from_le_bytes([bytes[offset], bytes[offset + 1]])
}

/// Reads the 32-bit number at `offset`. Views call this for offsets that they have checked.
pub(crate) fn read_u32(bytes: &[u8], offset: usize) -> u32 {
    u32::from_le_bytes([bytes[offset], bytes[offset + 1], bytes[offset + 2], bytes[offset + 3]])
}

pub(crate) fn write_u16(bytes: &mut [u8], offset: usize, value: u16) {
    bytes[offset..offset + 2].copy_from_slice(&value.to_le_bytes());
}

pub(crate) fn write_u32(bytes: &mut [u8], offset: usize, value: u32) {
    bytes[offset..offset + 4].copy_from_slice(&value.to_le_bytes());
}
