//! Loans: the account charged for a lent block, and the destination of one that its borrower gives up.
//!
//! A loan is charged to its first lender, whichever process holds it, so that no client can make a service pay by
//! lending it a block, or by leaving its replies unread. When that SIP closes the endpoint over which it lent the
//! block, the next lender with an open endpoint pays, or else the holder.
//!
//! When a borrower dies or drops a block, the block returns to the endpoint of its last lender, delivered together with
//! `ChannelClosed`; if that endpoint is closed, to the previous lender's; if none is open, it is freed.
//!
//! A SIP that ends may leave blocks charged to it: loans held by others, and blocks in unread messages. These are
//! recharged to others ([`disinherit_blocks`]); otherwise they would be free of charge.

use core::sync::atomic::Ordering;

use super::{charge_receivers, close, owner_of};
use crate::exheap::{self, BLOCKS, BlockRef, Freeing};
use crate::preempt;
use crate::process::ProcessRef;

/// Disposes of a block that its owner gives up: returns it to its lender if it is lent, else frees it and all attached
/// blocks. The block is in no list and no lock is held; the caller may be preempted.
pub fn dispose(block: BlockRef) {
    if !send_home(block) {
        exheap::free(block);
    }
}

/// First part of [`dispose`]: nothing is left to free if the block returned to its lender.
pub fn begin_disposal(block: BlockRef) -> Option<Freeing> {
    (!send_home(block)).then(|| exheap::begin_free(block))
}

/// Returns a block to the last lender whose endpoint is open; false if there is none.
fn send_home(block: BlockRef) -> bool {
    while let Some(lender) = block.pop_loan() {
        if close::bring_home(lender, block) {
            return true;
        }
    }
    false
}

/// Returns the first lender whose endpoint is open. The caller holds no lock.
fn first_lender(block: BlockRef) -> Option<ProcessRef> {
    block.lenders().find_map(owner_of)
}

/// Makes a SIP the owner of a block from a message, even if there is no memory for it in its space. The caller holds no
/// lock.
#[inline(always)]
pub(super) fn receive_block(process: ProcessRef, block: BlockRef) {
    if block.is_lent() {
        receive_loan(process, block);
    } else if !block.is_charged_to(process) {
        exheap::charge(block, process);
    }
    exheap::cross(process, block);
    exheap::hand_to(process, block);
}

#[cold]
fn receive_loan(process: ProcessRef, block: BlockRef) {
    if block.is_unsettled.load(Ordering::Relaxed) || !block.has_payer() {
        block.is_unsettled.store(false, Ordering::Relaxed);
        exheap::charge(block, first_lender(block).unwrap_or(process));
    }
}

/// Recharges the outstanding loans of a SIP that closed an endpoint. Scans all blocks, because few endpoints close with
/// loans outstanding.
#[cold]
pub(super) fn settle_loans(lender: ProcessRef) {
    for block in preempt::pausing(BLOCKS.iter()).filter(|block| block.is_charged_to(lender) && block.is_lent()) {
        // Settled by its receiver, if it is in a message.
        block.is_unsettled.store(true, Ordering::Relaxed);
        charge_other(block, lender);
    }
}

/// Charges a block's owner, or a lender of it, if it has an owner and counts against `payer`.
fn charge_other(block: BlockRef, payer: ProcessRef) {
    let first_lender = first_lender(block).filter(|lender| !lender.is_dying());
    let Some(owner) = block.owner.get() else { return };
    let _blocks = owner.blocks.lock();
    let is_still_owned = block.owner.get().is_some_and(|now| core::ptr::eq(now, owner));
    if is_still_owned && block.is_charged_to(payer) {
        block.is_unsettled.store(false, Ordering::Relaxed);
        exheap::charge(block, first_lender.unwrap_or(owner));
    }
}

/// Recharges blocks of a SIP that is ending and has given up its own.
#[inline(always)]
pub fn disinherit_blocks(process: ProcessRef) {
    if process.block_bytes.load(Ordering::Relaxed) != 0 {
        find_heirs(process);
    }
}

#[cold]
fn find_heirs(process: ProcessRef) {
    for block in preempt::pausing(BLOCKS.iter()).filter(|block| block.is_charged_to(process)) {
        charge_other(block, process);
    }
    charge_receivers(process);
}

/// Charges the receiver of a block in a message, if it counts against `sender`. The channel is locked.
pub(super) fn charge_receiver(block: BlockRef, sender: ProcessRef, receiver: ProcessRef) {
    if block.is_charged_to(sender) {
        exheap::charge(block, receiver);
        // It may be lent by another SIP, which is determined on receipt.
        block.is_unsettled.store(true, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests;
