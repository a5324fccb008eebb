//! The metadata of a new volume, group by group: bitmaps, descriptors, superblocks.

use crate::format::fresh::{self, GroupCounts, Identity};
use crate::format::geometry::Geometry;

/// Contents of a group besides its own metadata.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct GroupUse {
    /// Data blocks in use, from the first on.
    pub(super) data_blocks: u32,
    /// Directories among its inodes.
    pub(super) folders: u32,
}

/// Description of a new volume for its metadata.
pub(super) struct Metadata<'a> {
    pub(super) geometry: &'a Geometry,
    pub(super) identity: &'a Identity,
    /// Inodes in use, from the first on, the reserved ones included.
    pub(super) used_inodes: u32,
}

impl Metadata<'_> {
    /// Free blocks of a group.
    pub(super) fn free_blocks(&self, group: u32, used: GroupUse) -> u32 {
        self.geometry.group_blocks(group) - self.geometry.overhead(group) - used.data_blocks
    }

    /// Fills in a group's block bitmap. `bytes` are zeros, as in the functions below.
    pub(super) fn block_bitmap(&self, bytes: &mut [u8], group: u32, used: GroupUse) {
        let used_blocks = self.geometry.overhead(group) + used.data_blocks;
        fresh::bitmap(bytes, used_blocks, self.geometry.group_blocks(group));
    }

    /// Fills in a group's inode bitmap.
    pub(super) fn inode_bitmap(&self, bytes: &mut [u8], group: u32) {
        fresh::bitmap(bytes, self.used_inodes_in(group), self.geometry.inodes_per_group);
    }

    /// Fills in a group's descriptor.
    pub(super) fn descriptor(&self, row: &mut [u8], group: u32, used: GroupUse) {
        let counts = GroupCounts {
            free_blocks: self.free_blocks(group, used),
            free_inodes: self.geometry.inodes_per_group - self.used_inodes_in(group),
            folders: used.folders,
        };
        fresh::descriptor(row, self.geometry, group, counts);
    }

    /// Fills in the superblock's copy in this group. `free_blocks` are those of the volume.
    pub(super) fn superblock(&self, bytes: &mut [u8], group: u32, free_blocks: u32) {
        fresh::superblock(bytes, self.geometry, self.identity, group, free_blocks, self.used_inodes);
    }

    fn used_inodes_in(&self, group: u32) -> u32 {
        let per_group = self.geometry.inodes_per_group;
        self.used_inodes.saturating_sub(group * per_group).min(per_group)
    }
}
