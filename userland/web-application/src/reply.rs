//! Bodies of complete responses.

use alloc::vec::Vec;

use sip::exheap::ExVec;

/// A complete response, which [`Exchange::reply`](crate::Exchange::reply) sends.
pub type Reply = web_message::Reply<Body>;

/// The body of a response.
pub enum Body {
    /// Copied into a block on sending.
    Bytes(Vec<u8>),
    /// The first bytes of a block, sent without a copy.
    Block(ExVec<u8>, usize),
}

impl From<Vec<u8>> for Body {
    fn from(bytes: Vec<u8>) -> Body {
        Body::Bytes(bytes)
    }
}
