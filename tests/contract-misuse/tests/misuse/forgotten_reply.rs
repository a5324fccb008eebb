//! A server proceeds to the next request without a reply to the last.

use contract_misuse::store;

fn server(mut store: store::Exp<store::states::Ready>) {
    loop {
        store = match store.receive() {
            store::ExpReady::GetSize { next } => next,
            store::ExpReady::Read { data, next, .. } => next.read_failed(data),
            store::ExpReady::Append { next, .. } => next.appended(),
            store::ExpReady::Watch { next, .. } => next.watching(),
            store::ExpReady::ChannelClosed(_) => return,
        }
    }
}

fn main() {}
