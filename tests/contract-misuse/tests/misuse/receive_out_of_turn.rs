//! A client listens where it is to speak.

use contract_misuse::store;

fn client(store: store::Imp<store::states::Ready>) {
    let _ = store.receive();
}

fn main() {}
