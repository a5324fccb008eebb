//! Volume parameters that are constant while it is mounted.

use super::CacheLimits;
use super::pages::MAX_BLOCKS;
use crate::error::Error;
use crate::format::error::{Problem, Structure};
use crate::format::group;
use crate::format::superblock::Superblock;

/// Minimum number of pages, whatever the limit.
const MIN_PAGES: usize = 8;

/// Parameters of a volume that are constant while it is mounted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Geometry {
    /// Block size in bytes.
    pub(crate) block_bytes: usize,
    /// Number of blocks.
    pub(crate) blocks: u32,
    /// The block that holds the superblock.
    pub(crate) first_data_block: u32,
    /// Blocks of each group but the last.
    pub(crate) blocks_per_group: u32,
    /// Number of groups.
    pub(crate) groups: u32,
    /// Number of inodes.
    pub(crate) inodes: u32,
    /// Inodes of each group.
    pub(crate) inodes_per_group: u32,
    /// Size of an inode in bytes.
    pub(crate) inode_bytes: u32,
    /// Blocks of each group's inode table.
    pub(crate) inode_table_blocks: u32,
    /// Blocks of the table of descriptors.
    pub(crate) descriptor_blocks: u32,
    /// First non-reserved inode.
    pub(crate) first_inode: u32,
    /// Largest file size in bytes that indirect blocks can map.
    pub(crate) max_file_bytes: u64,
    /// Page size in bytes.
    pub(crate) page_bytes: usize,
    /// Blocks per page.
    pub(crate) page_blocks: usize,
    /// Capacity of the cache in pages.
    pub(crate) pages: usize,
}

impl Geometry {
    pub(crate) fn new(superblock: &Superblock, limits: &CacheLimits) -> Result<Geometry, Error> {
        let block_bytes = superblock.block_bytes as usize;
        let bytes = u64::from(superblock.groups()) * group::BYTES as u64;
        let value = bytes.div_ceil(block_bytes as u64);
        let most = u64::from(superblock.blocks - superblock.first_data_block) - 1;
        if value > most {
            let problem = Problem::OutOfRange { field: "the number of descriptor blocks", value, least: 1, most };
            return Err(Error::corrupt(Structure::Superblock, superblock.first_data_block.into(), problem));
        }
        let table = u64::from(superblock.inodes_per_group) * u64::from(superblock.inode_bytes);
        let max_bytes = block_bytes * MAX_BLOCKS;
        let page_bytes = limits.page_bytes.clamp(block_bytes.max(4096), max_bytes).next_power_of_two();
        Ok(Geometry {
            block_bytes,
            blocks: superblock.blocks,
            first_data_block: superblock.first_data_block,
            blocks_per_group: superblock.blocks_per_group,
            groups: superblock.groups(),
            inodes: superblock.inodes,
            inodes_per_group: superblock.inodes_per_group,
            inode_bytes: superblock.inode_bytes,
            // A group has at most 32,768 inodes of at most 4096 bytes.
            inode_table_blocks: table.div_ceil(block_bytes as u64) as u32,
            descriptor_blocks: value as u32,
            first_inode: superblock.first_inode,
            max_file_bytes: superblock.largest_file(),
            page_bytes,
            page_blocks: page_bytes / block_bytes,
            pages: (limits.data_bytes / page_bytes).max(MIN_PAGES),
        })
    }

    /// Size of the volume in bytes.
    pub(crate) fn volume_bytes(&self) -> u64 {
        self.offset(self.blocks)
    }

    /// Sectors of 512 bytes in a block, the unit of an inode's block count.
    pub(crate) fn block_sectors(&self) -> u32 {
        (self.block_bytes / 512) as u32
    }

    /// Block numbers in an indirect block.
    pub(crate) fn numbers_per_block(&self) -> u32 {
        (self.block_bytes / 4) as u32
    }

    /// Returns the page of a block, and the block's index there.
    pub(crate) fn page_of(&self, block: u32) -> (u64, usize) {
        let blocks = self.page_blocks as u32;
        (u64::from(block / blocks), (block % blocks) as usize)
    }

    /// Returns the first block of a page, and the number of blocks: the volume's last page may be shorter.
    pub(crate) fn page_range(&self, index: u64) -> (u32, usize) {
        let first = index * self.page_blocks as u64;
        let count = u64::from(self.blocks).saturating_sub(first).min(self.page_blocks as u64);
        // Requested pages lie in the volume.
        (first as u32, count as usize)
    }

    /// Returns the disk offset of a block in bytes.
    pub(crate) fn offset(&self, block: u32) -> u64 {
        u64::from(block) * self.block_bytes as u64
    }

    /// Returns whether these blocks lie in the volume, after the superblock.
    pub(crate) fn contains(&self, first: u32, count: u32) -> bool {
        let end = u64::from(first) + u64::from(count);
        first > self.first_data_block && end <= u64::from(self.blocks)
    }

    /// The group of a block of the volume.
    pub(crate) fn group_of(&self, block: u32) -> u32 {
        (block - self.first_data_block.min(block)) / self.blocks_per_group
    }

    /// Returns the first block of a group.
    pub(crate) fn group_first(&self, group: u32) -> u32 {
        self.first_data_block + group * self.blocks_per_group
    }

    /// Returns the number of blocks of a group.
    pub(crate) fn group_blocks(&self, group: u32) -> u32 {
        (self.blocks - self.group_first(group)).min(self.blocks_per_group)
    }

    /// Returns the group of an inode, whose number is not 0.
    pub(crate) fn group_of_inode(&self, number: u32) -> u32 {
        number.saturating_sub(1) / self.inodes_per_group
    }

    /// The allocation goal of an inode without neighbouring blocks: the first block of its group.
    pub(crate) fn inode_goal(&self, number: u32) -> u32 {
        self.group_first(self.group_of_inode(number).min(self.groups - 1))
    }

    /// Inodes of a group.
    pub(crate) fn group_inodes(&self, group: u32) -> u32 {
        self.inodes.saturating_sub(group * self.inodes_per_group).min(self.inodes_per_group)
    }

    /// Returns the block of a group's descriptor, and the offset there.
    pub(crate) fn descriptor_place(&self, group: u32) -> (u32, usize) {
        let per_block = (self.block_bytes / group::BYTES) as u32;
        (self.first_data_block + 1 + group / per_block, (group % per_block) as usize * group::BYTES)
    }
}
