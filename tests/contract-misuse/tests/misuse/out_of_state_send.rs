//! A client sends another request before it has received the reply.

use contract_misuse::store;

fn client(store: store::Imp<store::states::Ready>) {
    let waiting = store.get_size();
    let _ = waiting.get_size();
}

fn main() {}
