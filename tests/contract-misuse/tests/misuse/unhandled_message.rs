//! A client forgets that the read can fail.

use contract_misuse::store;
use sip::exheap::ExVec;

fn client(store: store::Imp<store::states::Ready>, data: ExVec<u8>) -> Option<ExVec<u8>> {
    match store.read(data, 0).receive() {
        store::ImpReadyAfterRead::ReadDone { data, .. } => Some(data),
        store::ImpReadyAfterRead::ChannelClosed(_) => None,
    }
}

fn main() {}
