//! A client wants the same endpoint, and the same block, twice.

use contract_misuse::store;
use sip::exheap::ExVec;

fn endpoint(store: store::Imp<store::states::Ready>) {
    let second = store.clone();
}

fn needs_copy<T: Copy>(_: T) {}

fn copied(store: store::Imp<store::states::Ready>, block: ExVec<u8>) {
    needs_copy(store);
    needs_copy(block);
}

fn main() {}
