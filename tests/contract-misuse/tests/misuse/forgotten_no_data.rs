//! A web server forgets that a read can end without data: the bug of section 2.2 of "Singularity: Rethinking the
//! Software Stack", which was in the web server for almost a year before a contract checker found it.

use contracts::tcp_connection::{Imp, ImpReadyAfterRead, states};
use sip::exheap::ExVec;

fn request(connection: Imp<states::Ready>) -> Option<(ExVec<u8>, Imp<states::Ready>)> {
    match connection.read(4096, 1000).receive() {
        ImpReadyAfterRead::Data { data, next, .. } => Some((data, next)),
        ImpReadyAfterRead::EndOfData { .. } => None,
        ImpReadyAfterRead::Failed { .. } => None,
        ImpReadyAfterRead::ChannelClosed(_) => None,
    }
}

fn main() {}
