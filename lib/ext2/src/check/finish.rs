//! The end of a check: writes the changes and summarizes.

use alloc::vec::Vec;

use super::apply::{Held, Order};
use super::journal::JOURNAL_INODE;
use super::state::{Checker, Replayed, STATE_CLEAN, STATE_ERRORS, known};
use super::{CheckError, Mode, Outcome, Summary, redo, superblock};
use crate::format::superblock::{BYTES, OFFSET, field};
use crate::format::{read_u16, write_u16, write_u32};
use block_source::BlockSource;

impl<S: BlockSource> Checker<'_, S> {
    /// Writes the changes, if allowed, and summarizes.
    pub(super) async fn finish(mut self) -> Result<Summary, CheckError> {
        let left = self.left_before + self.left_here + self.repaired_here;
        let outcome = match (self.faults, left) {
            (0, 0) => Outcome::Clean,
            (_, 0) => Outcome::Repaired,
            _ => Outcome::Faulty,
        };
        let changes = match self.asked {
            Mode::Report => false,
            Mode::Preen => self.marked || left > 0,
            Mode::Repair => self.marked && left == 0,
        };
        if changes {
            self.settle(left).await?;
            self.write_changes().await?;
        }
        let is_undone = self.marked && !changes;
        let used = self.inodes.iter().filter(|&&inode| inode & known::USED != 0).count();
        Ok(Summary {
            outcome,
            faults: self.faults,
            repaired: if is_undone { 0 } else { self.repaired },
            left: if is_undone { self.faults } else { left },
            written: changes,
            inodes: self.volume.inodes(),
            used_inodes: used as u32,
            folders: self.folders.len() as u32,
            block_bytes: self.volume.geometry.block_bytes,
            blocks: self.volume.geometry.blocks,
            used_blocks: self.used_blocks(),
        })
    }

    /// Updates the superblock to the state of the volume.
    async fn settle(&mut self, left: u64) -> Result<(), CheckError> {
        let now = self.device.now_s();
        let state = read_u16(&self.superblock, field::STATE);
        let state = if left == 0 { state & !STATE_ERRORS | STATE_CLEAN } else { state & !STATE_CLEAN | STATE_ERRORS };
        write_u16(&mut self.superblock, field::STATE, state);
        write_u32(&mut self.superblock, field::LAST_CHECK, now);
        write_u32(&mut self.superblock, field::WRITE_TIME, now);
        write_u16(&mut self.superblock, field::MOUNTS, 0);
        self.write_superblock().await?;
        // Written completely, changed or not: during the repair, the superblock on the disk has a pointer to the log.
        self.device.rewrite(OFFSET, BYTES).await
    }

    async fn write_changes(&mut self) -> Result<(), CheckError> {
        self.device.keep_sources().await?;
        let disk = self.device.read_disk(OFFSET, BYTES).await?;
        let is_readable = superblock::examine(&disk, self.device.bytes()).is_ok();
        let says_clean = is_readable && read_u16(&disk, field::STATE) & STATE_CLEAN != 0;
        let mut marked = if is_readable { disk } else { self.superblock.clone() };
        not_clean(&mut marked);
        redo::clear_pointer(&mut marked);
        let is_logged = self.log_changes(&mut marked).await?;
        let mut unsettled = self.superblock.clone();
        not_clean(&mut unsettled);
        let mut order = Order {
            block_bytes: u64::from(self.volume.geometry.block_bytes),
            new_blocks: &core::mem::take(&mut self.new_blocks),
            marked: Some(marked).filter(|_| is_logged || says_clean),
            orphans: Vec::new(),
            journal: None,
            held: None,
            unsettled,
        };
        if !is_logged {
            self.order_without_log(&mut order).await?;
        }
        self.device.apply(&order).await
    }

    /// Determines the write order needed if there is no log.
    async fn order_without_log(&mut self, order: &mut Order<'_>) -> Result<(), CheckError> {
        let block_bytes = order.block_bytes;
        let offset_of = |checker: &Self, inode: u32| {
            let (block, at) = checker.place_of(inode);
            u64::from(block) * block_bytes + at as u64
        };
        order.orphans = self.cut_orphans.iter().map(|&inode| offset_of(self, inode)).collect();
        match self.replayed {
            Some(Replayed::Emptied(block)) => order.journal = Some(u64::from(block) * block_bytes),
            Some(Replayed::Gone) => {
                let bytes = self.load(JOURNAL_INODE).await?.bytes;
                order.held = Some(Held { offset: offset_of(self, JOURNAL_INODE), bytes });
            }
            None => {}
        }
        Ok(())
    }
}

/// Clears the clean flag of a superblock.
fn not_clean(superblock: &mut [u8]) {
    let state = read_u16(superblock, field::STATE);
    write_u16(superblock, field::STATE, state & !STATE_CLEAN);
}
