//! Blocks with several owners: all owners but one get copies.
//!
//! A table that several inodes use is copied for each of them: changing the original could change another inode's data.

use alloc::collections::BTreeSet;

use super::bits::Bits;
use super::node::Node;
use super::state::{Checker, known};
use super::tree::{Claim, Step, Tree};
use super::{CheckError, Fault, Mode};
use block_source::BlockSource;

/// Owners of the blocks that several inodes claim.
struct Owners {
    shared: Bits,
    /// Blocks whose owner has been determined.
    owned: Bits,
    /// Those that hold attributes, which several inodes may use.
    attributes: BTreeSet<u32>,
}

/// Result for one inode.
#[derive(PartialEq, Eq)]
enum Copying {
    NotYet,
    Going,
    /// No change is needed, or there is no room.
    Left,
}

impl<S: BlockSource> Checker<'_, S> {
    /// Gives each inode its own blocks. If that is impossible, no more is changed, because ownership is unclear.
    pub(super) async fn give_copies(&mut self) -> Result<(), CheckError> {
        let Some(shared) = self.shared.take() else { return Ok(()) };
        let blocks = self.volume.geometry.blocks;
        let mut owners = Owners { shared, owned: Bits::new(blocks)?, attributes: BTreeSet::new() };
        let mut left = false;
        for number in 1..=self.volume.inodes() {
            if self.is_used(number) && self.known(number) & known::TANGLED == 0 && !self.is_resize_inode(number) {
                left |= self.separate(number, &mut owners).await?;
            }
        }
        if left {
            self.mode = Mode::Report;
        }
        self.shared = Some(owners.shared);
        Ok(())
    }

    /// Gives one inode its own blocks. Returns whether it still shares some.
    async fn separate(&mut self, number: u32, owners: &mut Owners) -> Result<bool, CheckError> {
        let mut node = self.load(number).await?;
        let mut left = self.separate_attributes(&mut node, owners).await?;
        if !node.has_blocks() {
            return Ok(left);
        }
        let (numbers, _) = self.legal_numbers(&node);
        let limit = self.logical_limit(&node);
        let mut tree = Tree::new(numbers, self.volume.geometry.block_bytes);
        let mut copying = Copying::NotYet;
        loop {
            let claim = match tree.next() {
                Step::End => break,
                Step::Changed(block, bytes) => {
                    self.write_block(block, &bytes).await?;
                    continue;
                }
                Step::Claim(claim) => claim,
            };
            let mut block = claim.block;
            if self.needs_copy(&claim, owners) && copying != Copying::Left {
                match self.copy(number, block, &mut copying).await? {
                    Some(copy) => {
                        block = copy;
                        tree.replace(copy);
                    }
                    None => left = true,
                }
            }
            if claim.depth > 0 {
                let mut bytes = self.read_block(block).await?;
                self.take_illegal(&mut bytes, &claim, limit);
                tree.enter(&Claim { block, ..claim }, bytes);
            }
        }
        if tree.changed {
            node.set_numbers(&tree.numbers);
            self.store(&node).await?;
        }
        Ok(left)
    }

    fn needs_copy(&self, claim: &Claim, owners: &mut Owners) -> bool {
        owners.shared.has(claim.block)
            && (claim.depth > 0 || self.is_metadata(claim.block) || owners.owned.insert(claim.block))
    }

    /// Copies a block for an inode; `None` if that is impossible.
    async fn copy(&mut self, inode: u32, block: u32, copying: &mut Copying) -> Result<Option<u32>, CheckError> {
        let fault = Fault::SharedBlocks { inode, first: block };
        let room = self.take_block();
        if *copying == Copying::NotYet {
            *copying = Copying::Going;
            if room.is_none() {
                self.report_no_room(fault);
            } else if !self.report(fault).await? {
                *copying = Copying::Left;
            }
        }
        match room {
            Some(copy) if *copying == Copying::Going => {
                self.copy_block(block, copy).await?;
                Ok(Some(copy))
            }
            Some(copy) => {
                self.found.remove(copy);
                Ok(None)
            }
            None => {
                *copying = Copying::Left;
                Ok(None)
            }
        }
    }

    /// Drops attributes in a block that is also used for something else.
    async fn separate_attributes(&mut self, node: &mut Node, owners: &mut Owners) -> Result<bool, CheckError> {
        let (inode, block) = (node.number, node.attribute_block());
        let sound = self.attributes.get(&block).is_some_and(|used| !used.damaged);
        if !sound || !owners.shared.has(block) || owners.attributes.contains(&block) {
            return Ok(false);
        }
        if !self.is_metadata(block) && !owners.owned.insert(block) {
            owners.attributes.insert(block);
            return Ok(false);
        }
        if !self.report(Fault::AttributeBlock { inode, block }).await? {
            return Ok(true);
        }
        node.set_attribute_block(0);
        self.store(node).await?;
        // No other inode keeps it either.
        if let Some(used) = self.attributes.get_mut(&block) {
            used.users = used.users.saturating_sub(1);
        }
        Ok(false)
    }

    /// Removes impossible numbers from the tables in which they were found. Each table has one owner by then.
    pub(super) async fn clear_illegal_tables(&mut self) -> Result<(), CheckError> {
        for inode in 1..=self.volume.inodes() {
            let known = self.known(inode);
            if known & known::ILLEGAL_TABLES == 0 || known & (known::USED | known::TANGLED) != known::USED {
                continue;
            }
            let node = self.load(inode).await?;
            let (numbers, _) = self.legal_numbers(&node);
            let limit = self.logical_limit(&node);
            let mut tree = Tree::new(numbers, self.volume.geometry.block_bytes);
            while let Step::Claim(claim) = tree.next() {
                if claim.depth == 0 {
                    continue;
                }
                let mut bytes = self.read_block(claim.block).await?;
                if let Some((count, first)) = self.take_illegal(&mut bytes, &claim, limit) {
                    let table = Some(claim.block);
                    if self.report(Fault::IllegalBlocks { inode, table, count, first }).await? {
                        self.write_block(claim.block, &bytes).await?;
                    }
                }
                tree.enter(&claim, bytes);
            }
        }
        Ok(())
    }
}
