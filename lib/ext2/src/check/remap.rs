//! Replaces the block list of a folder: new tables are written first, then the inode.

use alloc::vec::Vec;

use super::CheckError;
use super::node::{Node, flag};
use super::state::Checker;
use super::tree::{Step, Tree};
use crate::format::inode::{BLOCK_NUMBERS, DIRECT_BLOCKS};
use crate::format::write_u32;
use block_source::BlockSource;

impl<S: BlockSource> Checker<'_, S> {
    /// Makes these the blocks of a folder, without holes, and drops its index. Returns whether there was room for the
    /// tables.
    pub(super) async fn remap(&mut self, node: &mut Node, blocks: &[u32]) -> Result<bool, CheckError> {
        let before = self.tables(node).await?;
        let per_block = self.volume.geometry.block_bytes as usize / 4;
        let mut numbers = [0; BLOCK_NUMBERS];
        let (direct, mut rest) = blocks.split_at(blocks.len().min(DIRECT_BLOCKS));
        numbers[..direct.len()].copy_from_slice(direct);
        let mut made = Vec::new();
        for depth in 1..=3 {
            let reach = per_block.saturating_pow(depth);
            let (here, later) = rest.split_at(rest.len().min(reach));
            rest = later;
            if here.is_empty() {
                break;
            }
            match self.write_tables(here, depth, &mut made).await? {
                Some(table) => numbers[DIRECT_BLOCKS + depth as usize - 1] = table,
                None => {
                    made.into_iter().for_each(|table| self.found.remove(table));
                    return Ok(false);
                }
            }
        }
        node.set_numbers(&numbers);
        node.set_flags(node.flags() & !flag::INDEX);
        node.set_size(blocks.len() as u64 * u64::from(self.volume.geometry.block_bytes));
        let count = blocks.len() + made.len() + usize::from(node.attribute_block() != 0);
        node.set_sectors(count as u32 * (self.volume.geometry.block_bytes / 512));
        self.store(node).await?;
        before.into_iter().for_each(|table| self.found.remove(table));
        Ok(true)
    }

    /// Writes the tables of this depth above the blocks; returns the outermost one, or `None` if there is no room.
    async fn write_tables(
        &mut self,
        blocks: &[u32],
        depth: u32,
        made: &mut Vec<u32>,
    ) -> Result<Option<u32>, CheckError> {
        let block_bytes = self.volume.geometry.block_bytes as usize;
        let mut level = blocks.to_vec();
        for _ in 0..depth {
            let mut above = Vec::new();
            for part in level.chunks(block_bytes / 4) {
                let Some(table) = self.take_block() else { return Ok(None) };
                made.push(table);
                above.push(table);
                let mut bytes = super::bits::filled(block_bytes, 0u8)?;
                for (slot, &block) in bytes.chunks_exact_mut(4).zip(part) {
                    write_u32(slot, 0, block);
                }
                self.write_block(table, &bytes).await?;
            }
            level = above;
        }
        Ok(level.first().copied())
    }

    async fn tables(&mut self, node: &Node) -> Result<Vec<u32>, CheckError> {
        let (numbers, _) = self.legal_numbers(node);
        let mut tree = Tree::new(numbers, self.volume.geometry.block_bytes);
        let mut tables = Vec::new();
        while let Step::Claim(claim) = tree.next() {
            if claim.depth > 0 {
                tables.push(claim.block);
                let mut bytes = self.read_block(claim.block).await?;
                self.take_illegal(&mut bytes, &claim, u64::MAX);
                tree.enter(&claim, bytes);
            }
        }
        Ok(tables)
    }
}
