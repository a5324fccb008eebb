//! A client sends, and lets the endpoint fall on which the answer would come.
#![deny(unused_must_use)]

use contract_misuse::store;

fn client(store: store::Imp<store::states::Ready>) {
    store.get_size();
}

fn listener(changes: contract_misuse::changes::Imp<contract_misuse::changes::states::Ready>) {
    changes.receive();
}

fn main() {}
