//! A client lends numbers instead of bytes; a server returns a block of its own.

use contract_misuse::store;
use sip::exheap::ExVec;

fn client(store: store::Imp<store::states::Ready>, numbers: ExVec<u32>) {
    let _ = store.read(numbers, 0);
}

fn server(store: store::Exp<store::states::Ready>, own: ExVec<u8>) {
    if let store::ExpReady::Read { next, .. } = store.receive() {
        let _ = next.read_done(own);
    }
}

fn main() {}
