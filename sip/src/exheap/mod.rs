//! The exchange heap: blocks of memory whose ownership moves from process to process.
//!
//! Key types: [`ExVec`] and [`ExBox`] (own a block of plain data), [`Lent`] (a block on loan, which returns
//! to its owner), [`ExBlock`] (a block whose element type is checked at run time), [`Plain`] (the types of
//! elements). Neighbours: [`channel`](crate::channel) moves blocks.
//! Deliberately not here: the process's private heap ([`allocator`](crate::allocator)).

mod block;
mod lent;
mod plain;
mod typed;

pub use block::{ExBlock, SPLIT_ALIGN};
pub use lent::{Lendable, Lent};
pub use plain::Plain;
#[doc(hidden)]
pub use plain::field_bytes;
pub use typed::{Block, ExBox, ExVec};

/// The sealed supertraits of [`Block`] and [`Lendable`]. Programs cannot name them, so they cannot implement the two.
/// They can call them through a bound: that only erases a type, and the kernel tracks loans regardless of the type.
pub(crate) mod sealed {
    use abi::Status;

    use super::{Block, ExBlock};

    /// Types that own a block.
    pub trait Typed: Sized {
        /// Gives up the type.
        fn into_block(self) -> ExBlock;
        /// Gives a block the type, without checking the type it was allocated with (any bytes are valid); returns
        /// the block if it is too short.
        fn from_block(block: ExBlock) -> Result<Self, ExBlock>;
        /// Returns a block long enough for the type, with the bytes of `short` at its start and zeroes after them.
        fn lengthened(short: ExBlock) -> Result<Self, Status>;
    }

    /// A block that can be moved out to be lent. A block already on loan stays so for the kernel.
    pub trait Loan<B: Block> {
        /// Whether it is known to be on loan already.
        const IS_LENT: bool;
        fn into_loan(self) -> ExBlock;
    }
}
