//! The resize inode, through which Linux can grow a volume: it owns the blocks reserved after the descriptors, each as
//! a table of its copies in the groups with backups. All of it follows from the geometry.

use alloc::vec;
use alloc::vec::Vec;

use super::node::Node;
use super::state::{Checker, known};
use super::superblock::feature;
use super::{CheckError, Fault};
use crate::format::inode::{BLOCK_NUMBERS, BYTES, Kind, field};
use crate::format::{write_u16, write_u32};
use block_source::BlockSource;

const RESIZE_INODE: u32 = 7;
/// Slot of the double-indirect block.
const SLOT: usize = 13;

impl<S: BlockSource> Checker<'_, S> {
    pub(super) fn is_resize_inode(&self, number: u32) -> bool {
        number == RESIZE_INODE && self.volume.has(feature::RESIZE_INODE)
    }

    /// Checks the resize inode, whose blocks are already marked except its double-indirect block.
    pub(super) async fn check_resize_inode(&mut self, node: &mut Node) -> Result<(), CheckError> {
        self.inodes[RESIZE_INODE as usize] = known::USED;
        if !self.volume.has(feature::RESIZE_INODE) {
            if !node.is_blank() && self.report(Fault::ReservedInode { inode: RESIZE_INODE }).await? {
                node.bytes.fill(0);
            }
            return Ok(());
        }
        self.resize_damaged = !self.is_resize_sound(node).await?;
        if !self.resize_damaged {
            self.resize_damaged = self.claim(node.numbers()[SLOT])?;
            self.needs_large_file |= node.size() >= 1 << 31;
        }
        Ok(())
    }

    async fn is_resize_sound(&mut self, node: &Node) -> Result<bool, CheckError> {
        let numbers = node.numbers();
        let only = (0..BLOCK_NUMBERS).all(|slot| (slot == SLOT) == (numbers[slot] != 0));
        let plain = node.kind() == Some(Kind::File) && node.links() > 0 && node.flags() == 0 && node.deleted() == 0;
        let counts = node.sectors() == self.resize_sectors() && node.size() >= self.resize_size();
        if !only || !plain || !counts || node.attribute_block() != 0 || !self.is_legal(numbers[SLOT]) {
            return Ok(false);
        }
        if self.is_metadata(numbers[SLOT]) || self.read_block(numbers[SLOT]).await? != self.table_of_tables() {
            return Ok(false);
        }
        for spare in 0..self.volume.geometry.spare_descriptor_blocks {
            let block = self.spare_block(spare);
            if self.read_block(block).await? != self.table_of_copies(block) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Recreates it if it is damaged. All blocks in use are known by then.
    pub(super) async fn repair_resize_inode(&mut self) -> Result<(), CheckError> {
        if !core::mem::take(&mut self.resize_damaged) {
            return Ok(());
        }
        let Some(block) = self.take_block() else {
            self.report_no_room(Fault::ResizeInode);
            return Ok(());
        };
        if !self.report(Fault::ResizeInode).await? {
            self.found.remove(block);
            return Ok(());
        }
        for spare in 0..self.volume.geometry.spare_descriptor_blocks {
            let block = self.spare_block(spare);
            let table = self.table_of_copies(block);
            self.write_block(block, &table).await?;
        }
        let table = self.table_of_tables();
        self.write_block(block, &table).await?;
        let mut node = self.load(RESIZE_INODE).await?;
        node.bytes.fill(0);
        node.set_mode(Kind::File.mode_bits() | 0o600);
        node.set_links(1);
        node.set_size(self.resize_size());
        node.set_sectors(self.resize_sectors());
        let mut numbers = [0; BLOCK_NUMBERS];
        numbers[SLOT] = block;
        node.set_numbers(&numbers);
        for time in [field::ACCESS_TIME, field::CHANGE_TIME, field::MODIFY_TIME] {
            write_u32(&mut node.bytes, time, self.device.now_s());
        }
        if node.bytes.len() > BYTES {
            write_u16(&mut node.bytes, field::EXTRA_BYTES, crate::format::fresh::EXTRA_BYTES);
        }
        self.needs_large_file |= node.size() >= 1 << 31;
        self.store(&node).await
    }

    fn spare_block(&self, spare: u32) -> u32 {
        self.volume.geometry.first_data_block + 1 + self.volume.geometry.descriptor_blocks + spare
    }

    fn table_of_tables(&self) -> Vec<u8> {
        let geometry = &self.volume.geometry;
        let mut bytes = vec![0; geometry.block_bytes as usize];
        let slots = geometry.block_bytes / 4;
        for spare in 0..geometry.spare_descriptor_blocks {
            let slot = (geometry.descriptor_blocks + spare) % slots;
            write_u32(&mut bytes, slot as usize * 4, self.spare_block(spare));
        }
        bytes
    }

    fn table_of_copies(&self, block: u32) -> Vec<u8> {
        let geometry = &self.volume.geometry;
        let mut bytes = vec![0; geometry.block_bytes as usize];
        for (slot, group) in bytes.chunks_exact_mut(4).zip(self.groups_with_copies()) {
            write_u32(slot, 0, block + group * geometry.blocks_per_group);
        }
        bytes
    }

    fn groups_with_copies(&self) -> impl Iterator<Item = u32> {
        let geometry = self.volume.geometry;
        (1..geometry.groups).filter(move |&group| geometry.has_superblock(group))
    }

    fn resize_sectors(&self) -> u32 {
        let spares = self.volume.geometry.spare_descriptor_blocks;
        let copies = self.groups_with_copies().count() as u32;
        (1 + spares * (1 + copies)) * (self.volume.geometry.block_bytes / 512)
    }

    /// Size that e2fsprogs gives it: the reach of two levels of tables.
    fn resize_size(&self) -> u64 {
        let numbers = u64::from(self.volume.geometry.block_bytes / 4);
        (numbers * numbers + numbers + 12) * u64::from(self.volume.geometry.block_bytes)
    }
}
