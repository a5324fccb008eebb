//! A server gives away, or keeps, what was only lent to it.

use contract_misuse::store;
use sip::exheap::ExVec;

fn give_away(server: store::Exp<store::states::Ready>, other: store::Imp<store::states::Ready>) {
    if let store::ExpReady::Read { data, .. } = server.receive() {
        let _ = other.append(data);
    }
}

fn keep(server: store::Exp<store::states::Ready>, kept: &mut ExVec<u8>) {
    if let store::ExpReady::Read { data, .. } = server.receive() {
        *kept = data;
    }
}

fn main() {}
