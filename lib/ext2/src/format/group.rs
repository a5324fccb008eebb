//! Block group descriptors. Their table begins in the block after the superblock's.

use super::{read_u16, read_u32};

/// Size of a descriptor in bytes.
pub const BYTES: usize = 32;

/// Byte offsets of the fields.
pub mod field {
    pub(crate) const BLOCK_BITMAP: usize = 0;
    pub(crate) const INODE_BITMAP: usize = 4;
    pub(crate) const INODE_TABLE: usize = 8;
    pub(crate) const FREE_BLOCKS: usize = 12;
    pub(crate) const FREE_INODES: usize = 14;
    pub(crate) const FOLDERS: usize = 16;
}

/// Bytes of a descriptor, checked for length.
#[derive(Clone, Copy)]
pub struct View<'a>(&'a [u8]);

impl<'a> View<'a> {
    /// Returns the view of a descriptor at the start of `bytes`, or `None` if they are too few.
    pub fn new(bytes: &'a [u8]) -> Option<View<'a>> {
        bytes.get(..BYTES).map(View)
    }
}

/// Block numbers of a group's metadata, not yet checked against the volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupDescriptor {
    /// Block number of the block bitmap.
    pub block_bitmap: u32,
    /// Block number of the inode bitmap.
    pub inode_bitmap: u32,
    /// First block of the inode table.
    pub inode_table: u32,
    /// Free blocks of the group.
    pub free_blocks: u16,
    /// Free inodes of the group.
    pub free_inodes: u16,
    /// Directories of the group.
    pub folders: u16,
}

impl GroupDescriptor {
    /// Reads a descriptor.
    pub fn parse(view: &View<'_>) -> GroupDescriptor {
        GroupDescriptor {
            block_bitmap: read_u32(view.0, field::BLOCK_BITMAP),
            inode_bitmap: read_u32(view.0, field::INODE_BITMAP),
            inode_table: read_u32(view.0, field::INODE_TABLE),
            free_blocks: read_u16(view.0, field::FREE_BLOCKS),
            free_inodes: read_u16(view.0, field::FREE_INODES),
            folders: read_u16(view.0, field::FOLDERS),
        }
    }
}
