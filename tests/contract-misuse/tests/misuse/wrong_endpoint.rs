//! A client sends an endpoint of another contract, of the other side, and in another state.

use contract_misuse::{changes, store};

fn contract(store: store::Imp<store::states::Ready>, other: store::Exp<store::states::Ready>) {
    let _ = store.watch(other);
}

fn side(store: store::Imp<store::states::Ready>, other: changes::Imp<changes::states::Ready>) {
    let _ = store.watch(other);
}

fn state(store: store::Imp<store::states::Ready>, other: changes::Exp<changes::states::Ready>) {
    let _ = store.watch(other.changed());
}

fn main() {}
