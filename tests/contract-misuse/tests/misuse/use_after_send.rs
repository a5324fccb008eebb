//! A client uses an endpoint, and a block, after it has given them away.

use contract_misuse::{changes, store};
use sip::exheap::ExVec;

fn endpoint(store: store::Imp<store::states::Ready>) {
    let _waiting = store.get_size();
    let _again = store.get_size();
}

fn block(store: store::Imp<store::states::Ready>, data: ExVec<u8>) -> usize {
    let _waiting = store.append(data);
    data.len()
}

fn moved(store: store::Imp<store::states::Ready>, listener: changes::Exp<changes::states::Ready>) {
    let _waiting = store.watch(listener);
    let _ = listener.changed();
}

fn main() {}
