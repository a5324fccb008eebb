//! Where everything goes: the groups' geometry, the allocation of blocks, and the metadata that
//! follows from it.

use alloc::vec;
use alloc::vec::Vec;

use super::{Built, FormatError, ImageSink, Options};
use crate::features::{INCOMPATIBLE_FILE_TYPE, READ_ONLY_LARGE_FILE, READ_ONLY_SPARSE_SUPER};
use crate::wire::{group, superblock, write_u16, write_u32};

/// Bytes of the inodes made here; the second half of each holds nothing.
pub(super) const INODE_BYTES: u32 = 256;
/// The first inode that is not reserved: `lost+found`.
pub(super) const FIRST_INODE: u32 = 11;
/// Bytes of the known fields in an inode's second half.
pub(super) const EXTRA_BYTES: u16 = 32;
/// A last group with fewer data blocks than this is left out, as mke2fs does.
const LEAST_DATA_BLOCKS: u32 = 50;

/// The geometry of a volume.
pub(super) struct Layout {
    pub(super) block_bytes: u32,
    first_data_block: u32,
    blocks: u32,
    groups: u32,
    inodes_per_group: u32,
    inode_table_blocks: u32,
    descriptor_blocks: u32,
}

impl Layout {
    pub(super) fn new<E>(options: &Options, used_inodes: u32) -> Result<Layout, FormatError<E>> {
        let block_bytes = options.block_bytes;
        let size_error = || FormatError::VolumeSize(options.volume_bytes);
        let blocks = u32::try_from(options.volume_bytes / u64::from(block_bytes)).map_err(|_| size_error())?;
        let usual_inodes = (options.volume_bytes / 8192).min(u32::MAX.into()) as u32;
        let inodes = options.inodes.unwrap_or(usual_inodes).max(used_inodes).max(16);
        let mut layout = Layout {
            block_bytes,
            first_data_block: u32::from(block_bytes == 1024),
            blocks,
            groups: 0,
            inodes_per_group: 0,
            inode_table_blocks: 0,
            descriptor_blocks: 0,
        };
        loop {
            let blocks = layout.blocks.checked_sub(layout.first_data_block).filter(|&blocks| blocks > 0);
            layout.groups = blocks.ok_or_else(size_error)?.div_ceil(layout.blocks_per_group());
            layout.set_inodes(inodes).ok_or_else(size_error)?;
            let last = layout.groups - 1;
            if layout.group_blocks(last) >= layout.overhead(last).saturating_add(LEAST_DATA_BLOCKS) {
                return Ok(layout);
            }
            if last == 0 {
                return Err(if layout.group_blocks(0) > layout.overhead(0) { FormatError::Full } else { size_error() });
            }
            layout.blocks -= layout.group_blocks(last);
        }
    }

    /// Spreads inodes over the groups; `None` if they are too many for the groups' bitmaps.
    fn set_inodes(&mut self, inodes: u32) -> Option<()> {
        let step = (self.block_bytes / INODE_BYTES).max(8);
        self.inodes_per_group = inodes.div_ceil(self.groups).checked_next_multiple_of(step)?;
        self.inode_table_blocks = self.inodes_per_group.checked_mul(INODE_BYTES)?.div_ceil(self.block_bytes);
        self.descriptor_blocks = self.groups.div_ceil(self.block_bytes / group::BYTES as u32);
        let total = self.inodes_per_group.checked_mul(self.groups);
        (self.inodes_per_group <= self.block_bytes * 8 && total.is_some()).then_some(())
    }

    /// As many as a bitmap of one block has bits.
    fn blocks_per_group(&self) -> u32 {
        self.block_bytes * 8
    }

    fn group_first(&self, group: u32) -> u32 {
        self.first_data_block + group * self.blocks_per_group()
    }

    fn group_blocks(&self, group: u32) -> u32 {
        (self.blocks - self.group_first(group)).min(self.blocks_per_group())
    }

    /// Whether a group holds the superblock: 0, 1 and the powers of 3, 5 and 7 do.
    fn has_superblock(group: u32) -> bool {
        let is_power_of = |base: u32| {
            let mut rest = group;
            while rest > 1 && rest.is_multiple_of(base) {
                rest /= base;
            }
            rest == 1
        };
        group == 0 || [3, 5, 7].into_iter().any(is_power_of)
    }

    /// Blocks from a group's beginning to its block bitmap.
    fn copies(&self, group: u32) -> u32 {
        if Self::has_superblock(group) { 1 + self.descriptor_blocks } else { 0 }
    }

    /// Blocks from a group's beginning to its first data block.
    fn overhead(&self, group: u32) -> u32 {
        self.copies(group) + 2 + self.inode_table_blocks
    }
}

/// Allocates blocks from front to back and writes them.
pub(super) struct Writer<'a, S> {
    pub(super) layout: &'a Layout,
    sink: &'a mut S,
    group: u32,
    /// Data blocks that each group has given, and folders among its inodes.
    used: Vec<(u32, u16)>,
}

impl<'a, S: ImageSink> Writer<'a, S> {
    pub(super) fn new(layout: &'a Layout, sink: &'a mut S) -> Writer<'a, S> {
        Writer { layout, sink, group: 0, used: vec![(0, 0); layout.groups as usize] }
    }

    pub(super) fn allocate(&mut self) -> Result<u32, FormatError<S::Error>> {
        while self.group < self.layout.groups {
            let data_blocks = self.layout.group_blocks(self.group) - self.layout.overhead(self.group);
            let used = &mut self.used[self.group as usize].0;
            if *used < data_blocks {
                *used += 1;
                return Ok(self.layout.group_first(self.group) + self.layout.overhead(self.group) + *used - 1);
            }
            self.group += 1;
        }
        Err(FormatError::Full)
    }

    pub(super) fn write_block(&mut self, block: u32, bytes: &[u8]) -> Result<(), FormatError<S::Error>> {
        self.write_at(u64::from(block) * u64::from(self.layout.block_bytes), bytes)
    }

    pub(super) fn write_inode(&mut self, number: u32, bytes: &[u8]) -> Result<(), FormatError<S::Error>> {
        let layout = self.layout;
        let (group, index) = ((number - 1) / layout.inodes_per_group, (number - 1) % layout.inodes_per_group);
        let table = layout.group_first(group) + layout.copies(group) + 2;
        let offset = u64::from(table) * u64::from(layout.block_bytes) + u64::from(index * INODE_BYTES);
        self.write_at(offset, bytes)
    }

    pub(super) fn count_folder(&mut self, number: u32) {
        let group = (number - 1) / self.layout.inodes_per_group;
        self.used[group as usize].1 += 1;
    }

    /// Writes bitmaps, descriptors and superblocks.
    pub(super) fn finish(mut self, options: &Options, used_inodes: u32) -> Result<Built, FormatError<S::Error>> {
        let layout = self.layout;
        let mut table = vec![0; (layout.descriptor_blocks * layout.block_bytes) as usize];
        let mut free_blocks = 0;
        for group in 0..layout.groups {
            let used_here = used_inodes.saturating_sub(group * layout.inodes_per_group).min(layout.inodes_per_group);
            let (data_blocks, folders) = self.used[group as usize];
            let used_blocks = layout.overhead(group) + data_blocks;
            let group_free = layout.group_blocks(group) - used_blocks;
            free_blocks += u64::from(group_free);
            let first_bitmap = layout.group_first(group) + layout.copies(group);
            self.write_bitmap(first_bitmap, used_blocks, layout.group_blocks(group))?;
            self.write_bitmap(first_bitmap + 1, used_here, layout.inodes_per_group)?;
            let row = &mut table[group as usize * group::BYTES..][..group::BYTES];
            write_u32(row, group::field::BLOCK_BITMAP, first_bitmap);
            write_u32(row, group::field::INODE_BITMAP, first_bitmap + 1);
            write_u32(row, group::field::INODE_TABLE, first_bitmap + 2);
            // Counts of things in a group fit: a group has at most 32,768 of them.
            write_u16(row, group::field::FREE_BLOCKS, group_free as u16);
            write_u16(row, group::field::FREE_INODES, (layout.inodes_per_group - used_here) as u16);
            write_u16(row, group::field::FOLDERS, folders);
        }
        for group in (0..layout.groups).filter(|&group| Layout::has_superblock(group)) {
            let bytes = self.superblock(options, group, free_blocks, used_inodes);
            let first = u64::from(layout.group_first(group)) * u64::from(layout.block_bytes);
            let offset = if group == 0 { superblock::OFFSET } else { first };
            self.write_at(offset, &bytes)?;
            self.write_block(layout.group_first(group) + 1, &table)?;
        }
        let volume_bytes = u64::from(layout.blocks) * u64::from(layout.block_bytes);
        Ok(Built { volume_bytes, free_blocks, used_inodes })
    }

    /// Writes a bitmap with the first `used` bits set, and those from `bits` on, which stand for nothing.
    fn write_bitmap(&mut self, block: u32, used: u32, bits: u32) -> Result<(), FormatError<S::Error>> {
        let mut bytes = vec![0u8; self.layout.block_bytes as usize];
        for bit in (0..used).chain(bits..self.layout.block_bytes * 8) {
            bytes[bit as usize / 8] |= 1 << (bit % 8);
        }
        self.write_block(block, &bytes)
    }

    fn superblock(&self, options: &Options, group: u32, free_blocks: u64, used_inodes: u32) -> Vec<u8> {
        use superblock::field::*;
        let layout = self.layout;
        let inodes = layout.inodes_per_group * layout.groups;
        let mut bytes = vec![0; superblock::BYTES];
        // Fewer than all blocks, whose number has 32 bits.
        write_u32(&mut bytes, FREE_BLOCKS, free_blocks as u32);
        write_u32(&mut bytes, INODES_COUNT, inodes);
        write_u32(&mut bytes, BLOCKS_COUNT, layout.blocks);
        write_u32(&mut bytes, RESERVED_BLOCKS, 0);
        write_u32(&mut bytes, FREE_INODES, inodes - used_inodes);
        write_u32(&mut bytes, FIRST_DATA_BLOCK, layout.first_data_block);
        let log_block_size = (layout.block_bytes / 1024).ilog2();
        write_u32(&mut bytes, LOG_BLOCK_SIZE, log_block_size);
        write_u32(&mut bytes, LOG_FRAGMENT_SIZE, log_block_size);
        write_u32(&mut bytes, BLOCKS_PER_GROUP, layout.blocks_per_group());
        write_u32(&mut bytes, FRAGMENTS_PER_GROUP, layout.blocks_per_group());
        write_u32(&mut bytes, INODES_PER_GROUP, layout.inodes_per_group);
        write_u32(&mut bytes, WRITE_TIME, options.made);
        write_u32(&mut bytes, LAST_CHECK, options.made);
        write_u32(&mut bytes, MADE_TIME, options.made);
        write_u16(&mut bytes, MAXIMUM_MOUNTS, u16::MAX);
        write_u16(&mut bytes, superblock::field::MAGIC, superblock::MAGIC);
        write_u16(&mut bytes, STATE, 1);
        write_u16(&mut bytes, ERROR_POLICY, 1);
        write_u32(&mut bytes, REVISION, 1);
        write_u32(&mut bytes, superblock::field::FIRST_INODE, super::layout::FIRST_INODE);
        write_u16(&mut bytes, INODE_SIZE, INODE_BYTES as u16);
        // The field has 16 bits; Linux too writes the lower ones.
        write_u16(&mut bytes, GROUP_NUMBER, group as u16);
        write_u32(&mut bytes, COMPATIBLE, 0);
        write_u32(&mut bytes, INCOMPATIBLE, INCOMPATIBLE_FILE_TYPE);
        write_u32(&mut bytes, READ_ONLY_COMPATIBLE, READ_ONLY_SPARSE_SUPER | READ_ONLY_LARGE_FILE);
        bytes[UUID..UUID + 16].copy_from_slice(&options.uuid);
        bytes[LABEL..LABEL + 16].copy_from_slice(&options.label);
        write_u16(&mut bytes, LEAST_EXTRA_BYTES, EXTRA_BYTES);
        write_u16(&mut bytes, WANTED_EXTRA_BYTES, EXTRA_BYTES);
        bytes
    }

    fn write_at(&mut self, offset: u64, bytes: &[u8]) -> Result<(), FormatError<S::Error>> {
        self.sink.write_at(offset, bytes).map_err(FormatError::Sink)
    }
}
