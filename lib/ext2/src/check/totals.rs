//! Bitmaps and free counts.

use super::state::Checker;
use super::{CheckError, Fault};
use crate::format::group::field as group_field;
use crate::format::superblock::field;
use crate::format::{read_u32, write_u32};
use block_source::BlockSource;

/// Differences between a bitmap and the correct one.
#[derive(Default)]
struct Difference {
    /// In use, but marked free.
    lost: u32,
    /// Free, but marked in use.
    leaked: u32,
    first: Option<u32>,
    end: bool,
}

#[derive(Clone, Copy)]
enum Bitmap {
    Blocks,
    Inodes,
}

impl<S: BlockSource> Checker<'_, S> {
    pub(super) async fn check_totals(&mut self) -> Result<(), CheckError> {
        let geometry = self.volume.geometry;
        let (mut free_blocks, mut free_inodes) = (0, 0);
        for group in 0..geometry.groups {
            let first_inode = group * geometry.inodes_per_group + 1;
            let inodes = first_inode..first_inode + geometry.inodes_per_group;
            let blocks = geometry.group_first(group)..geometry.group_first(group) + geometry.group_blocks(group);
            self.check_bitmap(group, Bitmap::Blocks, blocks.start, blocks.len() as u32).await?;
            self.check_bitmap(group, Bitmap::Inodes, inodes.start, inodes.len() as u32).await?;
            let here_blocks = blocks.filter(|&block| !self.found.has(block)).count() as u32;
            let here_inodes = inodes.clone().filter(|&inode| !self.is_marked_used(inode)).count() as u32;
            let folders = self.folders.partition_point(|folder| folder.number < inodes.end)
                - self.folders.partition_point(|folder| folder.number < inodes.start);
            self.check_counts(group, [here_blocks, here_inodes, folders as u32]).await?;
            free_blocks += here_blocks;
            free_inodes += here_inodes;
        }
        for (what, offset, right) in
            [("free blocks", field::FREE_BLOCKS, free_blocks), ("free inodes", field::FREE_INODES, free_inodes)]
        {
            let says = read_u32(&self.superblock, offset);
            if says != right && self.report(Fault::TotalCount { what, says, right }).await? {
                write_u32(&mut self.superblock, offset, right);
                self.write_superblock().await?;
            }
        }
        Ok(())
    }

    /// Returns whether an inode's bit must be set: reserved and unreadable ones are never free.
    fn is_marked_used(&self, inode: u32) -> bool {
        inode < self.volume.first_inode || self.is_used(inode) || self.is_unreadable(inode)
    }

    async fn check_bitmap(&mut self, group: u32, bitmap: Bitmap, first: u32, count: u32) -> Result<(), CheckError> {
        let descriptor = self.descriptor(group);
        let place = match bitmap {
            Bitmap::Blocks => descriptor.block_bitmap,
            Bitmap::Inodes => descriptor.inode_bitmap,
        };
        let mut bytes = self.read_block(place).await?;
        let mut difference = Difference::default();
        let bits = bytes.len() as u32 * 8;
        for bit in 0..bits {
            let right = bit >= count
                || match bitmap {
                    Bitmap::Blocks => self.found.has(first + bit),
                    Bitmap::Inodes => self.is_marked_used(first + bit),
                };
            let byte = &mut bytes[bit as usize / 8];
            let mask = 1 << (bit % 8);
            if (*byte & mask != 0) == right {
                continue;
            }
            *byte ^= mask;
            if bit >= count {
                difference.end = true;
                continue;
            }
            difference.lost += u32::from(right);
            difference.leaked += u32::from(!right);
            difference.first = difference.first.or(Some(first + bit));
        }
        let mut write = difference.end && self.report(Fault::BitmapEnd { group }).await?;
        if let Difference { lost, leaked, first: Some(first), .. } = difference {
            let fault = match bitmap {
                Bitmap::Blocks => Fault::BlockBitmap { group, lost, leaked, first },
                Bitmap::Inodes => Fault::InodeBitmap { group, lost, leaked, first },
            };
            write |= self.report(fault).await?;
        }
        if write {
            self.write_block(place, &bytes).await?;
        }
        Ok(())
    }

    async fn check_counts(&mut self, group: u32, right: [u32; 3]) -> Result<(), CheckError> {
        let descriptor = self.descriptor(group);
        let counts = [
            ("free blocks", group_field::FREE_BLOCKS, descriptor.free_blocks),
            ("free inodes", group_field::FREE_INODES, descriptor.free_inodes),
            ("folders", group_field::FOLDERS, descriptor.folders),
        ];
        let mut changed = false;
        for ((what, offset, says), right) in counts.into_iter().zip(right) {
            let says = u32::from(says);
            if says != right && self.report(Fault::GroupCount { group, what, says, right }).await? {
                // A group has at most 32,768 blocks and as many inodes.
                self.set_count(group, offset, right as u16);
                changed = true;
            }
        }
        if changed {
            self.write_descriptor(group).await?;
        }
        Ok(())
    }
}
