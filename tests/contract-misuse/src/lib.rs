//! Two small contracts, and programs that obey them. Violations are in `tests/misuse`, each beside rustc's expected
//! message.
#![no_std]
#![forbid(unsafe_code)]

sip::contracts!("store.contract");

use sip::exheap::ExVec;

/// A client that queries the size and gives the endpoint back; `None` if the server is gone.
pub fn size(store: store::Imp<store::states::Ready>) -> Option<(u64, store::Imp<store::states::Ready>)> {
    match store.get_size().receive() {
        store::ImpReadyAfterGetSize::Size { bytes, next } => Some((bytes, next)),
        store::ImpReadyAfterGetSize::ChannelClosed(_) => None,
    }
}

/// A client that lends a block, which is returned whether or not the server could fill it.
pub fn read(store: store::Imp<store::states::Ready>, data: ExVec<u8>) -> Option<ExVec<u8>> {
    match store.read(data, 0).receive() {
        store::ImpReadyAfterRead::ReadDone { data, .. } | store::ImpReadyAfterRead::ReadFailed { data, .. } => {
            Some(data)
        }
        store::ImpReadyAfterRead::ChannelClosed(mut closed) => {
            closed.take_home().into_iter().next().and_then(|block| block.into_vec().ok())
        }
    }
}

/// A server that replies until its client is gone.
pub fn serve(mut store: store::Exp<store::states::Ready>) {
    loop {
        store = match store.receive() {
            store::ExpReady::GetSize { next } => next.size(0),
            store::ExpReady::Read { data, next, .. } => next.read_failed(data),
            store::ExpReady::Append { next, .. } => next.appended(),
            store::ExpReady::Watch { next, .. } => next.watching(),
            store::ExpReady::ChannelClosed(_) => return,
        }
    }
}
