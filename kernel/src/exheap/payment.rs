//! The account charged for a block: its owner's; in a message its sender's, until it is received. A loan is charged to
//! its first lender, wherever it is (`channel::loans`).

use core::sync::atomic::Ordering;

use super::{Block, BlockRef};
use crate::process::ProcessRef;
use crate::slab::Slot;

impl Slot<Block> {
    /// Whether this SIP is charged for it.
    #[inline(always)]
    pub fn is_charged_to(&self, process: ProcessRef) -> bool {
        self.charged_to.get().is_some_and(|payer| core::ptr::eq(payer, process))
            && self.charged_id.load(Ordering::Relaxed) == process.id.load(Ordering::Relaxed)
    }

    /// Returns the SIP charged for it, and its number of blocks including attached ones.
    pub fn payer_and_records(&self) -> Option<(ProcessRef, usize)> {
        let payer = self.charged_to.get().filter(|_| self.has_payer())?;
        Some((payer, self.records.load(Ordering::Relaxed) as usize))
    }

    /// Whether the SIP charged for it is alive.
    pub fn has_payer(&self) -> bool {
        let id = self.charged_id.load(Ordering::Relaxed);
        self.charged_to.get().is_some_and(|payer| payer.id.load(Ordering::Relaxed) == id && !payer.is_dying())
    }
}

#[inline(always)]
pub(super) fn set_charge(block: BlockRef, process: ProcessRef, charge: usize) {
    block.charged_to.set(Some(process));
    block.charged_id.store(process.id.load(Ordering::Relaxed), Ordering::Relaxed);
    block.charge.store(charge, Ordering::Relaxed);
}

/// Refunds a block to its payer; returns the amount.
#[inline(always)]
pub(super) fn uncharge(block: BlockRef) -> usize {
    let charge = block.charge.load(Ordering::Relaxed);
    if let Some(process) = block.charged_to.take() {
        process.refund_blocks(block.charged_id.load(Ordering::Relaxed), charge);
    }
    charge
}

/// Moves a block's charge to a SIP. It may exceed its quota, but then it can allocate none.
#[inline(always)]
pub fn charge(block: BlockRef, process: ProcessRef) {
    let charge = block.charge.load(Ordering::Relaxed);
    if let Some(payer) = block.charged_to.get() {
        payer.refund_blocks(block.charged_id.load(Ordering::Relaxed), charge);
    }
    process.charge_received_blocks(charge);
    block.charged_to.set(Some(process));
    block.charged_id.store(process.id.load(Ordering::Relaxed), Ordering::Relaxed);
}

/// Charges a SIP for a block that it receives, unless it is a loan. The caller may hold locks.
#[inline(always)]
pub fn pass(process: ProcessRef, block: BlockRef) {
    if block.is_lent() {
        pass_loan(process, block);
    } else if !block.is_charged_to(process) {
        charge(block, process);
    }
}

#[cold]
fn pass_loan(process: ProcessRef, block: BlockRef) {
    if !block.has_payer() {
        charge(block, process);
    }
}
