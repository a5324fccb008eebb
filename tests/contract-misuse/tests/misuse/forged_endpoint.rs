//! A program makes an endpoint, and a loan, out of nothing.

use contract_misuse::store;
use sip::exheap::{ExVec, Lent};

fn endpoint(raw: sip::channel::RawEndpoint) -> store::Imp<store::states::Ready> {
    store::Imp { raw, state: core::marker::PhantomData }
}

fn loan(block: ExVec<u8>) -> Lent<ExVec<u8>> {
    Lent { block }
}

fn main() {}
