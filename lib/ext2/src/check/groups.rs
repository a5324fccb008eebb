//! Group descriptors: locations of bitmaps and inode tables.

use super::bits::filled;
use super::state::Checker;
use super::{CheckError, Fault};
use crate::format::group::{self, GroupDescriptor, field};
use crate::format::{read_u16, read_u32, write_u16, write_u32};
use block_source::BlockSource;

/// Descriptor fields of volumes with checksums, which ext2 does not have: flags and unused inodes.
const FLAGS: usize = 18;
const UNUSED_INODES: usize = 28;

/// Location of a group's metadata: block bitmap, inode bitmap, inode table.
type Places = [u32; 3];

const PARTS: [(&str, usize); 3] =
    [("block bitmap", field::BLOCK_BITMAP), ("inode bitmap", field::INODE_BITMAP), ("inode table", field::INODE_TABLE)];

impl<S: BlockSource> Checker<'_, S> {
    /// Returns a group's descriptor, as validated by [`check_groups`](Checker::check_groups).
    pub(super) fn descriptor(&self, group: u32) -> GroupDescriptor {
        let [block_bitmap, inode_bitmap, inode_table] = places(&self.descriptors, group);
        let row = self.row(group);
        GroupDescriptor {
            block_bitmap,
            inode_bitmap,
            inode_table,
            free_blocks: read_u16(row, field::FREE_BLOCKS),
            free_inodes: read_u16(row, field::FREE_INODES),
            folders: read_u16(row, field::FOLDERS),
        }
    }

    fn row(&self, group: u32) -> &[u8] {
        &self.descriptors[group as usize * group::BYTES..][..group::BYTES]
    }

    /// Reads the descriptors, corrects impossible locations, and marks the blocks of the metadata.
    pub(super) async fn check_groups(&mut self) -> Result<(), CheckError> {
        let geometry = self.volume.geometry;
        self.descriptors = filled(0, 0)?;
        let bytes = geometry.descriptor_blocks as usize * geometry.block_bytes as usize;
        self.descriptors.try_reserve_exact(bytes).map_err(|_| CheckError::NoMemory)?;
        for block in 0..geometry.descriptor_blocks {
            let bytes = self.read_block(geometry.first_data_block + 1 + block).await?;
            self.descriptors.extend_from_slice(&bytes);
        }
        for group in 0..geometry.groups {
            let says = places(&self.descriptors, group);
            let right = self.right_places(group, says).await?;
            for (index, (part, offset)) in PARTS.into_iter().enumerate() {
                let (says, right) = (says[index], right[index]);
                if says == right {
                    continue;
                }
                let repair = self.report(Fault::DescriptorPlace { group, part, says, right }).await?;
                // A read-only check continues with the right value, but does not write it.
                write_u32(&mut self.descriptors, group as usize * group::BYTES + offset, right);
                if repair {
                    self.write_descriptor(group).await?;
                }
            }
            self.check_descriptor_flags(group).await?;
            self.mark_group(group);
        }
        Ok(())
    }

    /// Writes the block of the table that holds a group's descriptor.
    pub(super) async fn write_descriptor(&mut self, group: u32) -> Result<(), CheckError> {
        let block_bytes = self.volume.geometry.block_bytes as usize;
        let block = group as usize * group::BYTES / block_bytes;
        let bytes = self.descriptors[block * block_bytes..][..block_bytes].to_vec();
        self.write_block(self.volume.geometry.first_data_block + 1 + block as u32, &bytes).await
    }

    /// Sets a count in a group's descriptor in memory only.
    pub(super) fn set_count(&mut self, group: u32, offset: usize, count: u16) {
        write_u16(&mut self.descriptors, group as usize * group::BYTES + offset, count);
    }

    /// Returns the location of a group's metadata: from its descriptor, if that is possible; else from a backup; else
    /// the `mke2fs` default.
    async fn right_places(&mut self, group: u32, says: Places) -> Result<Places, CheckError> {
        let geometry = self.volume.geometry;
        let first = geometry.first_bitmap(group);
        let usual = [first, first + 1, first + 2];
        let can_be = self.can_be(group, says);
        if says == usual {
            return Ok(says);
        }
        let mut backup = None;
        for copy in (1..geometry.groups).filter(|&copy| geometry.has_superblock(copy)).take(3) {
            let in_copy = self.places_in_copy(copy, group).await?;
            // Metadata is never moved; a backup with the default locations is intact.
            if in_copy == usual || backup.is_none() && self.can_be(group, in_copy) {
                backup = Some(in_copy);
            }
        }
        Ok(match backup {
            Some(backup) if !can_be || backup == usual => backup,
            _ if can_be => says,
            _ => usual,
        })
    }

    /// Returns whether a group's parts can be there: inside the group, behind its copies, and disjoint.
    fn can_be(&self, group: u32, [block_bitmap, inode_bitmap, inode_table]: Places) -> bool {
        let geometry = &self.volume.geometry;
        let first = u64::from(geometry.group_first(group) + geometry.copies(group));
        let end = u64::from(geometry.group_first(group)) + u64::from(geometry.group_blocks(group));
        let table = u64::from(inode_table)..u64::from(inode_table) + u64::from(geometry.inode_table_blocks());
        let bitmaps = [block_bitmap, inode_bitmap].map(u64::from);
        let inside = |block: u64| (first..end).contains(&block);
        bitmaps.into_iter().all(|block| inside(block) && !table.contains(&block))
            && block_bitmap != inode_bitmap
            && inside(table.start)
            && table.end <= end
    }

    async fn places_in_copy(&mut self, copy: u32, group: u32) -> Result<Places, CheckError> {
        let geometry = self.volume.geometry;
        let per_block = geometry.block_bytes / group::BYTES as u32;
        let bytes = self.read_block(geometry.group_first(copy) + 1 + group / per_block).await?;
        Ok(places(&bytes, group % per_block))
    }

    async fn check_descriptor_flags(&mut self, group: u32) -> Result<(), CheckError> {
        let row = self.row(group);
        // `BLOCK_UNINIT` and `INODE_UNINIT`.
        let stray = read_u16(row, FLAGS) & 3 != 0 || read_u16(row, UNUSED_INODES) != 0;
        let says = read_u16(row, FLAGS);
        if stray && self.report(Fault::DescriptorFlags { group, says }).await? {
            let at = group as usize * group::BYTES;
            let flags = read_u16(&self.descriptors, at + FLAGS);
            write_u16(&mut self.descriptors, at + FLAGS, flags & !3);
            write_u16(&mut self.descriptors, at + UNUSED_INODES, 0);
            self.write_descriptor(group).await?;
        }
        Ok(())
    }

    fn mark_group(&mut self, group: u32) {
        let geometry = self.volume.geometry;
        let descriptor = self.descriptor(group);
        let first = geometry.group_first(group);
        let copies = first..first + geometry.copies(group);
        let table = descriptor.inode_table..descriptor.inode_table + geometry.inode_table_blocks();
        for block in copies.chain(table).chain([descriptor.block_bitmap, descriptor.inode_bitmap]) {
            self.found.insert(block);
        }
    }

    /// Returns whether a block holds the superblock, descriptors, a bitmap or inodes.
    pub(super) fn is_metadata(&self, block: u32) -> bool {
        let geometry = &self.volume.geometry;
        if !self.is_legal(block) {
            return false;
        }
        let group = (block - geometry.first_data_block) / geometry.blocks_per_group;
        let descriptor = self.descriptor(group);
        let first = geometry.group_first(group);
        (first..first + geometry.copies(group)).contains(&block)
            || [descriptor.block_bitmap, descriptor.inode_bitmap].contains(&block)
            || (descriptor.inode_table..descriptor.inode_table + geometry.inode_table_blocks()).contains(&block)
    }

    /// Returns whether a block is part of an inode table.
    pub(super) fn is_in_inode_table(&self, block: u32) -> bool {
        let geometry = &self.volume.geometry;
        if !self.is_legal(block) {
            return false;
        }
        let group = (block - geometry.first_data_block) / geometry.blocks_per_group;
        let table = self.descriptor(group).inode_table;
        (table..table + geometry.inode_table_blocks()).contains(&block)
    }

    /// Compares a group's copy of the descriptors with the correct values, in the fields that must agree.
    pub(super) async fn check_descriptor_copy(&mut self, group: u32) -> Result<(), CheckError> {
        let geometry = self.volume.geometry;
        let (per_block, block_bytes) = (geometry.block_bytes / group::BYTES as u32, geometry.block_bytes as usize);
        let first = geometry.group_first(group) + 1;
        let mut differs = false;
        for block in 0..geometry.descriptor_blocks {
            let copy = self.read_block(first + block).await?;
            let rows = (block * per_block..geometry.groups).take(per_block as usize);
            differs |= rows.into_iter().any(|row| places(&copy, row % per_block) != places(&self.descriptors, row));
        }
        if differs && self.report(Fault::BackupDescriptors { group }).await? {
            for block in 0..geometry.descriptor_blocks {
                let bytes = self.descriptors[block as usize * block_bytes..][..block_bytes].to_vec();
                self.write_block(first + block, &bytes).await?;
            }
        }
        Ok(())
    }
}

fn places(table: &[u8], row: u32) -> Places {
    PARTS.map(|(_, offset)| read_u32(table, row as usize * group::BYTES + offset))
}
