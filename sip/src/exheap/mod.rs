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
pub use typed::{Block, ExBox, ExVec};
