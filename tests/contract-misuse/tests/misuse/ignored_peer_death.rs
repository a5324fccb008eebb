//! A server forgets that its client can be gone.

use contract_misuse::store;

fn server(mut store: store::Exp<store::states::Ready>) {
    loop {
        store = match store.receive() {
            store::ExpReady::GetSize { next } => next.size(0),
            store::ExpReady::Read { data, next, .. } => next.read_failed(data),
            store::ExpReady::Append { next, .. } => next.appended(),
            store::ExpReady::Watch { next, .. } => next.watching(),
        }
    }
}

fn main() {}
