//! Layout of a volume: block groups, copies of the superblock, bitmaps and inode tables.
//!
//! [`Geometry`] is planned for a new volume, or taken from the superblock of an existing one. Not here: the contents of
//! the parts (see `fresh` for a new volume), and metadata that an existing volume keeps in other places.

use super::group;

/// First non-reserved inode of a new volume: `lost+found`.
pub(crate) const FIRST_INODE: u32 = 11;
/// A last group with fewer data blocks than this is omitted, as in mke2fs.
const MIN_DATA_BLOCKS: u32 = 50;
/// Minimum inodes per group of a new volume: the first group holds the reserved ones.
const MIN_INODES: u32 = 16;

/// Groups with copies of the superblock and of the descriptors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Backups {
    /// Every group.
    Every,
    /// The groups 0, 1 and the powers of 3, 5 and 7.
    Sparse,
    /// Group 0 and these two; 0 if unused.
    Two([u32; 2]),
}

/// Parameters of a new volume.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wish {
    pub(crate) volume_bytes: u64,
    /// 1024, 2048 or 4096.
    pub(crate) block_bytes: u32,
    /// Minimum number of inodes.
    pub(crate) inodes: u32,
    pub(crate) inode_bytes: u32,
    pub(crate) backups: Backups,
}

/// Reasons why a volume is impossible.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PlanError {
    /// There is not room for the metadata and a few files.
    Small,
    /// There are more blocks than the format can count or describe.
    Large,
    /// More inodes than the groups can hold.
    Inodes,
}

/// The geometry of a volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Geometry {
    pub(crate) block_bytes: u32,
    pub(crate) first_data_block: u32,
    pub(crate) blocks: u32,
    pub(crate) groups: u32,
    pub(crate) blocks_per_group: u32,
    pub(crate) inodes_per_group: u32,
    pub(crate) inode_bytes: u32,
    /// Blocks of the table of descriptors.
    pub(crate) descriptor_blocks: u32,
    /// Blocks reserved after that table for its growth.
    pub(crate) spare_descriptor_blocks: u32,
    pub(crate) backups: Backups,
}

impl Geometry {
    /// Plans a new volume. A nearly empty last group is omitted.
    pub(crate) fn plan(wish: &Wish) -> Result<Geometry, PlanError> {
        let block_bytes = wish.block_bytes;
        let blocks = u32::try_from(wish.volume_bytes / u64::from(block_bytes)).map_err(|_| PlanError::Large)?;
        let mut plan = Geometry {
            block_bytes,
            first_data_block: u32::from(block_bytes == 1024),
            blocks,
            groups: 0,
            // As many as a bitmap block has bits.
            blocks_per_group: block_bytes * 8,
            inodes_per_group: 0,
            inode_bytes: wish.inode_bytes,
            descriptor_blocks: 0,
            spare_descriptor_blocks: 0,
            backups: wish.backups,
        };
        loop {
            let blocks = plan.blocks.checked_sub(plan.first_data_block).filter(|&blocks| blocks > 0);
            plan.groups = blocks.ok_or(PlanError::Small)?.div_ceil(plan.blocks_per_group);
            plan.set_inodes(wish.inodes).ok_or(PlanError::Inodes)?;
            let last = plan.groups - 1;
            if last > 0 && plan.overhead(0) + MIN_DATA_BLOCKS > plan.blocks_per_group {
                return Err(PlanError::Large);
            }
            if plan.group_blocks(last) >= plan.overhead(last).saturating_add(MIN_DATA_BLOCKS) {
                return Ok(plan);
            }
            if last == 0 {
                return Err(PlanError::Small);
            }
            plan.blocks -= plan.group_blocks(last);
        }
    }

    /// Minimum size in bytes of a new volume with blocks and inodes of this size.
    pub(crate) fn min_bytes(block_bytes: u32, inode_bytes: u32) -> u64 {
        let step = MIN_INODES.next_multiple_of((block_bytes / inode_bytes).max(8));
        let table = (step * inode_bytes).div_ceil(block_bytes);
        let blocks = u32::from(block_bytes == 1024) + 1 + 1 + 2 + table + MIN_DATA_BLOCKS;
        u64::from(blocks) * u64::from(block_bytes)
    }

    /// Distributes inodes over the groups; `None` if they exceed the groups' bitmaps. The first group has room for the
    /// reserved ones, and all groups have the same number.
    fn set_inodes(&mut self, inodes: u32) -> Option<()> {
        let step = (self.block_bytes / self.inode_bytes).max(8);
        self.inodes_per_group = inodes.div_ceil(self.groups).max(MIN_INODES).checked_next_multiple_of(step)?;
        self.descriptor_blocks = self.groups.div_ceil(self.block_bytes / group::BYTES as u32);
        let total = self.inodes_per_group.checked_mul(self.groups);
        (self.inodes_per_group <= self.block_bytes * 8 && total.is_some()).then_some(())
    }

    /// Number of inodes of the volume.
    pub(crate) fn inodes(&self) -> u32 {
        self.inodes_per_group * self.groups
    }

    pub(crate) fn inode_table_blocks(&self) -> u32 {
        // A group has at most 32,768 inodes of at most 4096 bytes.
        (self.inodes_per_group * self.inode_bytes).div_ceil(self.block_bytes)
    }

    /// First block of a group.
    pub(crate) fn group_first(&self, group: u32) -> u32 {
        self.first_data_block + group * self.blocks_per_group
    }

    /// Number of blocks of a group; the last one may be shorter.
    pub(crate) fn group_blocks(&self, group: u32) -> u32 {
        (self.blocks - self.group_first(group)).min(self.blocks_per_group)
    }

    /// Returns whether a group holds a copy of the superblock and of the descriptors.
    pub(crate) fn has_superblock(&self, group: u32) -> bool {
        let is_power_of = |base: u32| {
            let mut rest = group;
            while rest > 1 && rest.is_multiple_of(base) {
                rest /= base;
            }
            rest == 1
        };
        match self.backups {
            _ if group == 0 => true,
            Backups::Every => true,
            Backups::Sparse => [3, 5, 7].into_iter().any(is_power_of),
            Backups::Two(groups) => groups.contains(&group),
        }
    }

    /// Blocks at the start of a group taken by its copies of the superblock and the descriptors.
    pub(crate) fn copies(&self, group: u32) -> u32 {
        if self.has_superblock(group) { 1 + self.descriptor_blocks + self.spare_descriptor_blocks } else { 0 }
    }

    /// First block of a group's block bitmap on a new volume. The inode bitmap and the inode table follow.
    pub(crate) fn first_bitmap(&self, group: u32) -> u32 {
        self.group_first(group) + self.copies(group)
    }

    /// Blocks from a group's start to its first data block, on a new volume.
    pub(crate) fn overhead(&self, group: u32) -> u32 {
        self.copies(group) + 2 + self.inode_table_blocks()
    }
}
