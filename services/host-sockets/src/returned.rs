//! What comes back of a block that was submitted to the sockets.
//!
//! [`Content`] is what a connection sends from: a block of its own, or one on loan. Deliberately not here: the answer
//! itself, which `host` decodes.

use sip::device::Completion;
use sip::exheap::{ExVec, Lendable, Lent};

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
}

/// A block that a connection sends from.
pub trait Content: Lendable<ExVec<u8>> + Sized {
    /// Its size in bytes.
    fn bytes(&self) -> usize;

    /// The block that the device has returned, if it is still of this kind.
    fn from_returned(returned: Returned) -> Option<Self>;
}

impl Content for ExVec<u8> {
    fn bytes(&self) -> usize {
        self.len()
    }

    fn from_returned(returned: Returned) -> Option<ExVec<u8>> {
        Some(returned.into_block())
    }
}

impl Content for Lent<ExVec<u8>> {
    fn bytes(&self) -> usize {
        self.len()
    }

    fn from_returned(returned: Returned) -> Option<Lent<ExVec<u8>>> {
        match returned {
            Returned::Completed(completion) => completion.into_loan().ok(),
            Returned::Refused(block) => Lent::claim(block).ok(),
        }
    }
}
