//! Who pays for a block: whose quota it counts against.
//!
//! Its owner; in a message its sender, until it is received. A loan counts against who lent it first, whoever has it, so
//! that nobody can make a service pay by lending it something, or by leaving its answers unread. When that SIP closes the
//! endpoint over which it lent the block, the next lender pays whose endpoint is open; when there is none, whoever has the
//! block.
//!
//! A SIP that ends may leave blocks that count against it: loans that others have, and what it sent to who has not received
//! it. Others pay for those from then on ([`disinherit`]), because nobody would be held to account for them otherwise.

use core::sync::atomic::Ordering;

use super::{BLOCKS, Block, BlockRef};
use crate::process::ProcessRef;
use crate::slab::Slot;
use crate::{channel, sched};

impl Slot<Block> {
    #[inline(always)]
    fn is_charged_to(&self, process: ProcessRef) -> bool {
        self.charged_to.get().is_some_and(|payer| core::ptr::eq(payer, process))
            && self.charged_id.load(Ordering::Relaxed) == process.id.load(Ordering::Relaxed)
    }

    /// The SIP that pays for it, and how many blocks it is with those attached to it.
    pub fn payer_and_records(&self) -> Option<(ProcessRef, usize)> {
        let payer = self.charged_to.get().filter(|_| self.has_payer())?;
        Some((payer, self.records.load(Ordering::Relaxed) as usize))
    }

    /// Whether who pays for it is alive.
    fn has_payer(&self) -> bool {
        let id = self.charged_id.load(Ordering::Relaxed);
        self.charged_to.get().is_some_and(|payer| payer.id.load(Ordering::Relaxed) == id && !payer.is_dying())
    }

    /// The first lender whose endpoint is open. The caller holds no lock.
    fn first_lender(&self) -> Option<ProcessRef> {
        let count = self.loan_count.load(Ordering::Relaxed) as usize;
        self.loans.iter().take(count).find_map(|loan| channel::owner_of(loan.load(Ordering::Relaxed)))
    }
}

#[inline(always)]
pub(super) fn set_charge(block: BlockRef, process: ProcessRef, charge: usize) {
    block.charged_to.set(Some(process));
    block.charged_id.store(process.id.load(Ordering::Relaxed), Ordering::Relaxed);
    block.charge.store(charge, Ordering::Relaxed);
}

/// Takes a block's charge from whoever bears it; how much it was.
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
fn charge(block: BlockRef, process: ProcessRef) {
    let charge = block.charge.load(Ordering::Relaxed);
    if let Some(payer) = block.charged_to.get() {
        payer.refund_blocks(block.charged_id.load(Ordering::Relaxed), charge);
    }
    process.charge_received_blocks(charge);
    block.charged_to.set(Some(process));
    block.charged_id.store(process.id.load(Ordering::Relaxed), Ordering::Relaxed);
}

/// A block passes to a SIP. The caller may hold locks.
#[inline(always)]
pub(super) fn pass(process: ProcessRef, block: BlockRef) {
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

/// Gives a SIP a block out of a message. The caller holds no lock.
#[inline(always)]
pub fn receive(process: ProcessRef, block: BlockRef) {
    if block.is_lent() {
        receive_loan(process, block);
    } else if !block.is_charged_to(process) {
        charge(block, process);
    }
    super::hand_to(process, block);
}

#[cold]
fn receive_loan(process: ProcessRef, block: BlockRef) {
    if block.is_unsettled.load(Ordering::Relaxed) || !block.has_payer() {
        block.is_unsettled.store(false, Ordering::Relaxed);
        charge(block, block.first_lender().unwrap_or(process));
    }
}

/// A block is left at an endpoint of a SIP which lent it. The channel is locked.
pub fn charge_home(lender: ProcessRef, block: BlockRef) {
    pass(lender, block);
}

/// A SIP has closed an endpoint with loans out: finds who pays for them. Looks at all blocks, because few close before what
/// they lent is back.
#[cold]
pub fn settle_loans(lender: ProcessRef) {
    for block in sched::pausing(BLOCKS.iter()).filter(|block| block.is_charged_to(lender) && block.is_lent()) {
        // For who receives it, if it is in a message.
        block.is_unsettled.store(true, Ordering::Relaxed);
        charge_other(block, lender);
    }
}

/// Has a block's owner pay, or a lender of it, if it has an owner and counts against `payer`.
fn charge_other(block: BlockRef, payer: ProcessRef) {
    let first_lender = block.first_lender().filter(|lender| !lender.is_dying());
    let Some(owner) = block.owner.get() else { return };
    let _blocks = owner.blocks.lock();
    let is_still_owned = block.owner.get().is_some_and(|now| core::ptr::eq(now, owner));
    if is_still_owned && block.is_charged_to(payer) {
        block.is_unsettled.store(false, Ordering::Relaxed);
        charge(block, first_lender.unwrap_or(owner));
    }
}

/// Finds others to pay for blocks of a SIP that is being ended and has given up its own.
#[inline(always)]
pub fn disinherit(process: ProcessRef) {
    if process.block_bytes.load(Ordering::Relaxed) != 0 {
        find_heirs(process);
    }
}

#[cold]
fn find_heirs(process: ProcessRef) {
    for block in sched::pausing(BLOCKS.iter()).filter(|block| block.is_charged_to(process)) {
        charge_other(block, process);
    }
    channel::charge_receivers(process);
}

/// Has who is to receive a block pay for it, if it counts against `sender`. The channel is locked.
pub fn charge_receiver(block: BlockRef, sender: ProcessRef, receiver: ProcessRef) {
    if block.is_charged_to(sender) {
        charge(block, receiver);
        // It may be lent by another, who is found when it is received.
        block.is_unsettled.store(true, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests;
