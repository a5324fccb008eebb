//! The allocation of blocks, and the metadata that follows from it.

use alloc::vec;
use alloc::vec::Vec;
use core::ops::Range;

use super::{Built, FormatError, ImageSink, Options};
use crate::features::{INCOMPATIBLE_FILE_TYPE, READ_ONLY_LARGE_FILE, READ_ONLY_SPARSE_SUPER};
use crate::fresh::{self, GroupCounts, Identity};
use crate::geometry::{Backups, Geometry, PlanError, Wish};
use crate::wire::{group, superblock};

/// Bytes of the inodes made here; the second half of each holds nothing.
pub(super) const INODE_BYTES: u32 = 256;
/// A volume has one inode for this many bytes where nobody says otherwise.
const BYTES_PER_INODE: u64 = 8192;

/// Plans a volume with room for this many inodes.
pub(super) fn plan<E>(options: &Options, used_inodes: u32) -> Result<Geometry, FormatError<E>> {
    let usual_inodes = (options.volume_bytes / BYTES_PER_INODE).min(u32::MAX.into()) as u32;
    let wish = Wish {
        volume_bytes: options.volume_bytes,
        block_bytes: options.block_bytes,
        inodes: options.inodes.unwrap_or(usual_inodes).max(used_inodes),
        inode_bytes: INODE_BYTES,
        backups: Backups::Sparse,
    };
    Geometry::plan(&wish).map_err(|error| match error {
        PlanError::Small if options.volume_bytes >= Geometry::min_bytes(options.block_bytes, INODE_BYTES) => {
            FormatError::Full
        }
        _ => FormatError::VolumeSize(options.volume_bytes),
    })
}

/// Allocates blocks from front to back and writes them.
pub(super) struct Writer<'a, S> {
    pub(super) layout: &'a Geometry,
    sink: &'a mut S,
    group: u32,
    /// Data blocks that each group has given, and folders among its inodes.
    used: Vec<(u32, u16)>,
}

impl<'a, S: ImageSink> Writer<'a, S> {
    pub(super) fn new(layout: &'a Geometry, sink: &'a mut S) -> Writer<'a, S> {
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

    /// Has the sink copy bytes of a foreign file to where this block begins.
    pub(super) fn copy(&mut self, key: usize, from: Range<u64>, block: u32) -> Result<(), FormatError<S::Error>> {
        let offset = u64::from(block) * u64::from(self.layout.block_bytes);
        self.sink.copy(key, from, offset).map_err(FormatError::Sink)
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
        // Fewer than all blocks, whose number has 32 bits.
        let mut free_blocks = 0;
        for (group, row) in (0..layout.groups).zip(table.chunks_exact_mut(group::BYTES)) {
            let used_here = used_inodes.saturating_sub(group * layout.inodes_per_group).min(layout.inodes_per_group);
            let (data_blocks, folders) = self.used[group as usize];
            let used_blocks = layout.overhead(group) + data_blocks;
            let group_free = layout.group_blocks(group) - used_blocks;
            free_blocks += group_free;
            let first_bitmap = layout.first_bitmap(group);
            self.write_bitmap(first_bitmap, used_blocks, layout.group_blocks(group))?;
            self.write_bitmap(first_bitmap + 1, used_here, layout.inodes_per_group)?;
            let free_inodes = layout.inodes_per_group - used_here;
            let counts = GroupCounts { free_blocks: group_free, free_inodes, folders: folders.into() };
            fresh::descriptor(row, layout, group, counts);
        }
        let identity = identity(options);
        for group in (0..layout.groups).filter(|&group| layout.has_superblock(group)) {
            let mut bytes = [0; superblock::BYTES];
            fresh::superblock(&mut bytes, layout, &identity, group, free_blocks, used_inodes);
            let first = u64::from(layout.group_first(group)) * u64::from(layout.block_bytes);
            let offset = if group == 0 { superblock::OFFSET } else { first };
            self.write_at(offset, &bytes)?;
            self.write_block(layout.group_first(group) + 1, &table)?;
        }
        let volume_bytes = u64::from(layout.blocks) * u64::from(layout.block_bytes);
        Ok(Built { volume_bytes, free_blocks: free_blocks.into(), used_inodes })
    }

    fn write_bitmap(&mut self, block: u32, used: u32, bits: u32) -> Result<(), FormatError<S::Error>> {
        let mut bytes = vec![0u8; self.layout.block_bytes as usize];
        fresh::bitmap(&mut bytes, used, bits);
        self.write_block(block, &bytes)
    }

    fn write_at(&mut self, offset: u64, bytes: &[u8]) -> Result<(), FormatError<S::Error>> {
        self.sink.write_at(offset, bytes).map_err(FormatError::Sink)
    }
}

fn identity(options: &Options) -> Identity {
    Identity {
        label: options.label,
        uuid: options.uuid,
        hash_seed: [0; 16],
        made: options.made,
        reserved_blocks: 0,
        revision: 1,
        compatible: 0,
        incompatible: INCOMPATIBLE_FILE_TYPE,
        read_only_compatible: READ_ONLY_SPARSE_SUPER | READ_ONLY_LARGE_FILE,
    }
}
