//! The exchange heap: blocks of memory whose ownership moves from process to process.
//!
//! Key types: [`ExVec`] and [`ExBox`] (own a block of plain data), [`Lent`] (a block that belongs to
//! somebody else and goes home), [`ExBlock`] (a block whose element type is asked for at run time),
//! [`Plain`] (what may lie in a block). Neighbours: [`channel`](crate::channel) moves blocks.
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

/// What [`Block`] and [`Lendable`] stand on. Programs cannot name it, so they cannot implement the two. They can call it
/// through a bound: that only gives a type up, and the kernel knows what is lent, whatever the type says.
pub(crate) mod sealed {
    use abi::Status;

    use super::{Block, ExBlock};

    /// Types that own a block.
    pub trait Typed: Sized {
        /// Gives the type up.
        fn into_block(self) -> ExBlock;
        /// Gives a block the type, without asking what it was allocated with (any bytes are valid); the
        /// block comes back if it is too short for it.
        fn from_block(block: ExBlock) -> Result<Self, ExBlock>;
        /// A block long enough for the type, with what there is of `short` at its start.
        fn lengthened(short: ExBlock) -> Result<Self, Status>;
    }

    /// What gives its block away to be lent. To the kernel the block is on loan already if it was before.
    pub trait Loan<B: Block> {
        fn into_loan(self) -> ExBlock;
    }
}
