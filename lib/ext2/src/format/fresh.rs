//! Metadata of a new volume: superblocks, descriptors, bitmaps, inodes.
//!
//! Shared by the image builder and the formatter. Not here: its location (`geometry`).

use super::geometry::{FIRST_INODE, Geometry};
use super::{directory, group, inode, superblock, write_u16, write_u32};

/// Bytes of the known fields in the second half of an inode of 256 bytes.
pub(crate) const EXTRA_BYTES: u16 = 32;
/// The hash of a new volume's indexed folders: half_md4.
const HALF_MD4: u8 = 1;
/// Flag: names are hashed as unsigned bytes.
const FLAG_UNSIGNED_HASH: u32 = 2;

/// Label and features of a new volume.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Identity {
    pub(crate) label: [u8; 16],
    pub(crate) uuid: [u8; 16],
    /// Seed of the hashes of indexed directories.
    pub(crate) hash_seed: [u8; 16],
    /// Creation time in seconds since 1970.
    pub(crate) made: u32,
    pub(crate) reserved_blocks: u32,
    /// 0 or 1; revision 0 has no features.
    pub(crate) revision: u32,
    pub(crate) compatible: u32,
    pub(crate) incompatible: u32,
    pub(crate) read_only_compatible: u32,
}

/// Fills in the superblock's copy in this group. `bytes` are zeros.
pub(crate) fn superblock(
    bytes: &mut [u8],
    geometry: &Geometry,
    identity: &Identity,
    group: u32,
    free_blocks: u32,
    used_inodes: u32,
) {
    use superblock::field::*;
    write_u32(bytes, FREE_BLOCKS, free_blocks);
    write_u32(bytes, INODES_COUNT, geometry.inodes());
    write_u32(bytes, BLOCKS_COUNT, geometry.blocks);
    write_u32(bytes, RESERVED_BLOCKS, identity.reserved_blocks);
    write_u32(bytes, FREE_INODES, geometry.inodes() - used_inodes);
    write_u32(bytes, FIRST_DATA_BLOCK, geometry.first_data_block);
    let log_block_size = (geometry.block_bytes / 1024).ilog2();
    write_u32(bytes, LOG_BLOCK_SIZE, log_block_size);
    write_u32(bytes, LOG_FRAGMENT_SIZE, log_block_size);
    write_u32(bytes, BLOCKS_PER_GROUP, geometry.blocks_per_group);
    write_u32(bytes, FRAGMENTS_PER_GROUP, geometry.blocks_per_group);
    write_u32(bytes, INODES_PER_GROUP, geometry.inodes_per_group);
    write_u32(bytes, WRITE_TIME, identity.made);
    write_u32(bytes, LAST_CHECK, identity.made);
    write_u32(bytes, MADE_TIME, identity.made);
    write_u16(bytes, MAXIMUM_MOUNTS, u16::MAX);
    write_u16(bytes, superblock::field::MAGIC, superblock::MAGIC);
    write_u16(bytes, STATE, 1);
    write_u16(bytes, ERROR_POLICY, 1);
    write_u32(bytes, REVISION, identity.revision);
    bytes[UUID..UUID + 16].copy_from_slice(&identity.uuid);
    bytes[LABEL..LABEL + 16].copy_from_slice(&identity.label);
    if identity.revision == 0 {
        return;
    }
    write_u32(bytes, superblock::field::FIRST_INODE, super::geometry::FIRST_INODE);
    write_u16(bytes, INODE_SIZE, geometry.inode_bytes as u16);
    // The field has 16 bits; Linux also writes the lower ones only.
    write_u16(bytes, GROUP_NUMBER, group as u16);
    write_u32(bytes, COMPATIBLE, identity.compatible);
    write_u32(bytes, INCOMPATIBLE, identity.incompatible);
    write_u32(bytes, READ_ONLY_COMPATIBLE, identity.read_only_compatible);
    if identity.compatible & super::features::COMPATIBLE_DIR_INDEX != 0 {
        bytes[HASH_SEED..HASH_SEED + 16].copy_from_slice(&identity.hash_seed);
        bytes[HASH_VERSION] = HALF_MD4;
        write_u32(bytes, FLAGS, FLAG_UNSIGNED_HASH);
    }
    if geometry.inode_bytes > superblock::OLD_INODE_BYTES {
        write_u16(bytes, MIN_EXTRA_BYTES, EXTRA_BYTES);
        write_u16(bytes, WANTED_EXTRA_BYTES, EXTRA_BYTES);
    }
}

/// Counts in a group descriptor.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GroupCounts {
    pub(crate) free_blocks: u32,
    pub(crate) free_inodes: u32,
    pub(crate) folders: u32,
}

/// Fills in a group's descriptor. `row` is zeros.
pub(crate) fn descriptor(row: &mut [u8], geometry: &Geometry, group: u32, counts: GroupCounts) {
    let first_bitmap = geometry.first_bitmap(group);
    write_u32(row, group::field::BLOCK_BITMAP, first_bitmap);
    write_u32(row, group::field::INODE_BITMAP, first_bitmap + 1);
    write_u32(row, group::field::INODE_TABLE, first_bitmap + 2);
    // Counts fit: a group has at most 32,768 blocks or inodes.
    write_u16(row, group::field::FREE_BLOCKS, counts.free_blocks as u16);
    write_u16(row, group::field::FREE_INODES, counts.free_inodes as u16);
    write_u16(row, group::field::FOLDERS, counts.folders as u16);
}

/// Fills in a bitmap: the first `used` bits are set, and the padding from `bits` on. `bytes` are zeros.
pub(crate) fn bitmap(bytes: &mut [u8], used: u32, bits: u32) {
    let end = bytes.len() as u32 * 8;
    set_bits(bytes, 0, used);
    set_bits(bytes, bits, end);
}

fn set_bits(bytes: &mut [u8], from: u32, to: u32) {
    let mut bit = from;
    while bit < to {
        if bit.is_multiple_of(8) && to - bit >= 8 {
            bytes[bit as usize / 8] = 0xff;
            bit += 8;
        } else {
            bytes[bit as usize / 8] |= 1 << (bit % 8);
            bit += 1;
        }
    }
}

/// A new directory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NewFolder<'a> {
    /// Kind and permissions.
    pub(crate) mode: u16,
    pub(crate) links: u16,
    /// Seconds since 1970, for all of its times.
    pub(crate) time: u32,
    /// Its blocks, all direct.
    pub(crate) blocks: &'a [u32],
}

/// Fills in a folder's inode. `bytes` are zeros, as many as an inode of the volume has.
pub(crate) fn folder_inode(bytes: &mut [u8], new: &NewFolder<'_>, block_bytes: u32) {
    use inode::field::*;
    let size = new.blocks.len() as u32 * block_bytes;
    write_u16(bytes, MODE, new.mode);
    write_u32(bytes, SIZE_LOW, size);
    for time in [ACCESS_TIME, CHANGE_TIME, MODIFY_TIME] {
        write_u32(bytes, time, new.time);
    }
    write_u16(bytes, LINKS, new.links);
    write_u32(bytes, SECTORS, size / 512);
    for (slot, &block) in new.blocks.iter().enumerate() {
        write_u32(bytes, BLOCK_NUMBERS + slot * 4, block);
    }
    if bytes.len() > inode::BYTES {
        write_u16(bytes, inode::field::EXTRA_BYTES, self::EXTRA_BYTES);
    }
}

/// Fills in the first block of a directory with at most one subdirectory. `kind` is the kind of a directory in its
/// entries; `bytes` are zeros.
pub(crate) fn folder_block(bytes: &mut [u8], itself: u32, parent: u32, kind: u8, child: Option<(u32, &[u8])>) {
    let mut at = 0;
    let entries = [(itself, &b"."[..]), (parent, b"..")].into_iter().chain(child);
    let last = if child.is_some() { 2 } else { 1 };
    for (index, (inode, name)) in entries.enumerate() {
        let entry_bytes = if index == last { bytes.len() - at } else { entry_bytes(name.len()) };
        write_entry(&mut bytes[at..at + entry_bytes], inode, kind, name);
        at += entry_bytes;
    }
}

/// Fills in a directory block without used entries. `bytes` are zeros.
pub(crate) fn unused_block(bytes: &mut [u8]) {
    write_entry(bytes, 0, 0, b"");
}

/// Minimum size of an entry with a name of this many bytes.
pub(crate) fn entry_bytes(name_bytes: usize) -> usize {
    (directory::HEADER_BYTES + name_bytes).next_multiple_of(4)
}

/// Writes an entry that fills `bytes`. Bytes after its name are unchanged.
pub(crate) fn write_entry(bytes: &mut [u8], inode: u32, kind: u8, name: &[u8]) {
    use directory::field::*;
    // An entry has at most the 4096 bytes of a block, a name at most 255.
    let entry_bytes = bytes.len() as u16;
    write_u32(bytes, INODE, inode);
    write_u16(bytes, ENTRY_BYTES, entry_bytes);
    bytes[NAME_BYTES] = name.len() as u8;
    bytes[KIND] = kind;
    bytes[NAME..NAME + name.len()].copy_from_slice(name);
}

/// Number of inodes in use on a new volume, which contains only `lost+found`.
pub(crate) const EMPTY_USED_INODES: u32 = FIRST_INODE;
