//! The orphan list: inodes that were being deleted or truncated at the last unmount. It begins in the superblock and
//! is linked through the deletion-time field.

use super::bits::Bits;
use super::node::Node;
use super::state::Checker;
use super::tree::{Step, Tree};
use super::{CheckError, Fault};
use crate::format::inode::Kind;
use crate::format::superblock::field;
use crate::format::{read_u32, write_u32};
use block_source::BlockSource;

impl<S: BlockSource> Checker<'_, S> {
    /// Reads the orphan list, so that pending deletions are not reported as faults.
    pub(super) async fn read_orphans(&mut self) -> Result<(), CheckError> {
        self.orphans = Bits::default();
        let mut number = read_u32(&self.superblock, field::LAST_ORPHAN);
        if number == 0 {
            return Ok(());
        }
        self.orphans = Bits::new(self.volume.inodes() + 1)?;
        while number != 0 {
            if !self.can_be_orphan(number) || self.orphans.insert(number) {
                if self.report(Fault::OrphanList { inode: number }).await? {
                    write_u32(&mut self.superblock, field::LAST_ORPHAN, 0);
                    self.write_superblock().await?;
                    self.orphans = Bits::default();
                }
                return Ok(());
            }
            number = self.load(number).await?.deleted();
        }
        Ok(())
    }

    fn can_be_orphan(&self, number: u32) -> bool {
        (self.volume.first_inode..=self.volume.inodes()).contains(&number)
    }

    /// Completes the deletions and truncations. The owners of all blocks are known by then.
    pub(super) async fn finish_orphans(&mut self) -> Result<(), CheckError> {
        let mut number = read_u32(&self.superblock, field::LAST_ORPHAN);
        while number != 0 && self.can_be_orphan(number) && self.orphans.has(number) {
            self.orphans.remove(number);
            let mut node = self.load(number).await?;
            let next = node.deleted();
            if self.report(Fault::Orphan { inode: number }).await? {
                if node.links() > 0 && self.is_used(number) {
                    self.cut(&mut node).await?;
                    self.cut_orphans.push(number);
                }
                write_u32(&mut self.superblock, field::LAST_ORPHAN, next);
                self.write_superblock().await?;
                node.set_deleted(if node.links() > 0 { 0 } else { self.dead_time() });
                self.store(&node).await?;
            }
            number = next;
        }
        Ok(())
    }

    /// Frees the blocks beyond a file's size.
    async fn cut(&mut self, node: &mut Node) -> Result<(), CheckError> {
        let block_bytes = u64::from(self.volume.geometry.block_bytes);
        if !node.has_blocks() || node.kind() == Some(Kind::SymbolicLink) {
            return Ok(());
        }
        let (whole, rest) = (node.size() / block_bytes, node.size() % block_bytes);
        let limit = node.size().div_ceil(block_bytes);
        let (numbers, _) = self.legal_numbers(node);
        let mut tree = Tree::new(numbers, self.volume.geometry.block_bytes);
        let mut blocks = u64::from(node.attribute_block() != 0);
        loop {
            let claim = match tree.next() {
                Step::End => break,
                Step::Changed(block, bytes) => {
                    self.write_block(block, &bytes).await?;
                    continue;
                }
                Step::Claim(claim) => claim,
            };
            if claim.logical >= limit {
                tree.replace(0);
                continue;
            }
            blocks += 1;
            if claim.depth > 0 {
                let bytes = self.read_block(claim.block).await?;
                tree.enter(&claim, bytes);
            } else if claim.logical == whole && rest > 0 {
                let mut bytes = self.read_block(claim.block).await?;
                bytes[rest as usize..].fill(0);
                self.write_block(claim.block, &bytes).await?;
            }
        }
        node.set_numbers(&tree.numbers);
        node.set_sectors(u32::try_from(blocks * (block_bytes / 512)).unwrap_or(u32::MAX));
        self.store(node).await
    }
}
