//! Allocates blocks, and writes the resulting metadata.

use alloc::vec;
use alloc::vec::Vec;
use core::ops::Range;

use super::{Built, ImageError, ImageOptions, ImageSink};
use crate::format::features::{INCOMPATIBLE_FILE_TYPE, READ_ONLY_LARGE_FILE, READ_ONLY_SPARSE_SUPER};
use crate::format::fresh::Identity;
use crate::format::geometry::{Backups, Geometry, PlanError, Wish};
use crate::format::{group, superblock};
use crate::make::metadata::{GroupUse, Metadata};
use crate::make::{BYTES_PER_INODE, INODE_BYTES, default_inodes};

/// Plans a volume with room for this many inodes.
pub(super) fn plan<E>(options: &ImageOptions, used_inodes: u32) -> Result<Geometry, ImageError<E>> {
    let inodes = options.inodes.unwrap_or(default_inodes(options.volume_bytes, BYTES_PER_INODE));
    let wish = Wish {
        volume_bytes: options.volume_bytes,
        block_bytes: options.block_bytes,
        inodes: inodes.max(used_inodes),
        inode_bytes: INODE_BYTES,
        backups: Backups::Sparse,
    };
    Geometry::plan(&wish).map_err(|error| match error {
        PlanError::Small if options.volume_bytes >= Geometry::min_bytes(options.block_bytes, INODE_BYTES) => {
            ImageError::Full
        }
        _ => ImageError::VolumeSize(options.volume_bytes),
    })
}

/// Allocates blocks in ascending order and writes them.
pub(super) struct Writer<'a, S> {
    pub(super) layout: &'a Geometry,
    sink: &'a mut S,
    group: u32,
    /// Contents of each group so far.
    used: Vec<GroupUse>,
}

impl<'a, S: ImageSink> Writer<'a, S> {
    pub(super) fn new(layout: &'a Geometry, sink: &'a mut S) -> Writer<'a, S> {
        Writer { layout, sink, group: 0, used: vec![GroupUse::default(); layout.groups as usize] }
    }

    pub(super) fn allocate(&mut self) -> Result<u32, ImageError<S::Error>> {
        while self.group < self.layout.groups {
            let data_blocks = self.layout.group_blocks(self.group) - self.layout.overhead(self.group);
            let used = &mut self.used[self.group as usize].data_blocks;
            if *used < data_blocks {
                *used += 1;
                return Ok(self.layout.group_first(self.group) + self.layout.overhead(self.group) + *used - 1);
            }
            self.group += 1;
        }
        Err(ImageError::Full)
    }

    pub(super) fn write_block(&mut self, block: u32, bytes: &[u8]) -> Result<(), ImageError<S::Error>> {
        self.write_at(u64::from(block) * u64::from(self.layout.block_bytes), bytes)
    }

    /// Makes the sink copy bytes of a foreign file to this block.
    pub(super) fn copy(&mut self, key: usize, from: Range<u64>, block: u32) -> Result<(), ImageError<S::Error>> {
        let offset = u64::from(block) * u64::from(self.layout.block_bytes);
        self.sink.copy(key, from, offset).map_err(ImageError::Sink)
    }

    pub(super) fn write_inode(&mut self, number: u32, bytes: &[u8]) -> Result<(), ImageError<S::Error>> {
        let layout = self.layout;
        let (group, index) = ((number - 1) / layout.inodes_per_group, (number - 1) % layout.inodes_per_group);
        let table = layout.group_first(group) + layout.copies(group) + 2;
        let offset = u64::from(table) * u64::from(layout.block_bytes) + u64::from(index * INODE_BYTES);
        self.write_at(offset, bytes)
    }

    pub(super) fn count_folder(&mut self, number: u32) {
        let group = (number - 1) / self.layout.inodes_per_group;
        self.used[group as usize].folders += 1;
    }

    /// Writes bitmaps, descriptors and superblocks.
    pub(super) fn finish(mut self, options: &ImageOptions, used_inodes: u32) -> Result<Built, ImageError<S::Error>> {
        let layout = self.layout;
        let identity = identity(options);
        let metadata = Metadata { geometry: layout, identity: &identity, used_inodes };
        let mut table = vec![0; (layout.descriptor_blocks * layout.block_bytes) as usize];
        // Less than the number of all blocks, which has 32 bits.
        let mut free_blocks = 0;
        for (group, row) in (0..layout.groups).zip(table.chunks_exact_mut(group::BYTES)) {
            let used = self.used[group as usize];
            free_blocks += metadata.free_blocks(group, used);
            let first_bitmap = layout.first_bitmap(group);
            self.fill_block(first_bitmap, |bytes| metadata.block_bitmap(bytes, group, used))?;
            self.fill_block(first_bitmap + 1, |bytes| metadata.inode_bitmap(bytes, group))?;
            metadata.descriptor(row, group, used);
        }
        for group in (0..layout.groups).filter(|&group| layout.has_superblock(group)) {
            let mut bytes = [0; superblock::BYTES];
            metadata.superblock(&mut bytes, group, free_blocks);
            let first = u64::from(layout.group_first(group)) * u64::from(layout.block_bytes);
            let offset = if group == 0 { superblock::OFFSET } else { first };
            self.write_at(offset, &bytes)?;
            self.write_block(layout.group_first(group) + 1, &table)?;
        }
        let volume_bytes = u64::from(layout.blocks) * u64::from(layout.block_bytes);
        Ok(Built { volume_bytes, free_blocks: free_blocks.into(), used_inodes })
    }

    /// Writes a block. `fill` is called with a zeroed block.
    fn fill_block(&mut self, block: u32, fill: impl FnOnce(&mut [u8])) -> Result<(), ImageError<S::Error>> {
        let mut bytes = vec![0u8; self.layout.block_bytes as usize];
        fill(&mut bytes);
        self.write_block(block, &bytes)
    }

    fn write_at(&mut self, offset: u64, bytes: &[u8]) -> Result<(), ImageError<S::Error>> {
        self.sink.write_at(offset, bytes).map_err(ImageError::Sink)
    }
}

fn identity(options: &ImageOptions) -> Identity {
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
