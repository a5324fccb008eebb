//! What comes back of a block that was submitted to the sockets.
//!
//! Deliberately not here: the answer itself, which `host` decodes.

use sip::device::Completion;
use sip::exheap::{ExVec, Lent};

/// A block that the device has returned, or not taken.
pub enum Returned {
    /// With its answer.
    Completed(Completion),
    /// Without one.
    Refused(ExVec<u8>),
}

impl Returned {
    /// The block, whoever it belongs to.
    pub fn into_block(self) -> ExVec<u8> {
        match self {
            Returned::Completed(completion) => completion.block,
            Returned::Refused(block) => block,
        }
    }

    /// The block, if it is on loan.
    pub fn into_loan(self) -> Option<Lent<ExVec<u8>>> {
        match self {
            Returned::Completed(completion) => completion.into_loan().ok(),
            Returned::Refused(block) => Lent::claim(block).ok(),
        }
    }
}
