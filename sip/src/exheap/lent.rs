//! Blocks on loan: they belong to another process, to which they always return.

use core::ops::{Deref, DerefMut};

use super::sealed::Loan;
use super::{Block, ExBlock};

/// A block on loan to this process. It can be read, written, returned in a message or lent on; dropping it returns it
/// to its owner.
#[derive(Debug)]
pub struct Lent<B: Block> {
    block: B,
}

impl<B: Block> Lent<B> {
    #[inline(always)]
    pub(crate) fn new(block: B) -> Lent<B> {
        Lent { block }
    }

    /// Returns the typed block, for its handle and bounds.
    pub(crate) fn lent_block(&self) -> &B {
        &self.block
    }

    /// Restores the type of a loan returned by a further borrower. Returns the block unchanged if it is the process's
    /// own.
    pub fn claim(block: B) -> Result<Lent<B>, B> {
        let block = block.into_block();
        let lent = block.is_lent();
        match B::from_block(block) {
            Ok(block) if lent => Ok(Lent { block }),
            Ok(block) => Err(block),
            // It was long enough when it was given its type, and its length has not changed since.
            Err(_) => unreachable!("a block does not shrink"),
        }
    }
}

// The contents, not the block: a block on loan must not be split, or swapped for another.
impl<B: Block> Deref for Lent<B> {
    type Target = B::Target;
    #[inline(always)]
    fn deref(&self) -> &B::Target {
        &self.block
    }
}

impl<B: Block> DerefMut for Lent<B> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut B::Target {
        &mut self.block
    }
}

/// A block that can be lent: an own block, or one on loan that is lent on. Nothing else can be:
///
/// ```compile_fail,E0277
/// struct Mine;
/// impl sip::exheap::Lendable<sip::exheap::ExVec<u8>> for Mine {}
/// # fn main() {}
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be lent where the contract asks for `{B}`",
    label = "expected `{B}`, or one that is on loan already",
    note = "the contract's `lent` argument takes a block of exactly this type"
)]
pub trait Lendable<B: Block>: Loan<B> {}

impl<B: Block> Lendable<B> for B {}
impl<B: Block> Lendable<B> for Lent<B> {}

impl<B: Block> Loan<B> for B {
    const IS_LENT: bool = false;

    #[inline(always)]
    fn into_loan(self) -> ExBlock {
        self.into_block()
    }
}

impl<B: Block> Loan<B> for Lent<B> {
    const IS_LENT: bool = true;

    #[inline(always)]
    fn into_loan(self) -> ExBlock {
        self.block.into_block()
    }
}
