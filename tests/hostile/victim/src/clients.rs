//! Replies to clients.

use alloc::rc::Rc;

use hostile_contract::talk::{self, ExpReady, ExpReadyAfterFirst, ExpReadyAfterFirstThenSecond};

use crate::canaries::Places;

/// Serves one client until it closes.
pub(crate) async fn serve(client: talk::Exp<talk::states::Start>, places: Rc<Places>) {
    let mut server = client.success();
    loop {
        server = match server.receive_async().await {
            ExpReady::Locate { next } => next.located(places.heap, places.stack, places.block, places.bytes),
            ExpReady::Call { value, next } => next.answer(value.wrapping_add(1)),
            ExpReady::Mark { next, .. } => next.marked(),
            ExpReady::Give { data, next } => next.given_back(data),
            ExpReady::GiveMany { numbers, record, data, next } => {
                let sum = numbers.iter().fold(data.len() as u64, |sum, number| sum.wrapping_add(*number));
                let mut record = record;
                record.first = sum;
                next.given_record(record)
            }
            ExpReady::Lend { mut data, length, next } => {
                // As many as exist, regardless of the client's number.
                let meant = data.len().min(usize::try_from(length).unwrap_or(usize::MAX));
                data[..meant].iter_mut().for_each(|byte| *byte = byte.wrapping_add(1));
                next.returned(data, meant as u64)
            }
            ExpReady::Pass { end, next } => {
                drop(end);
                next.marked()
            }
            ExpReady::Serve { end, next } => {
                let end = end.success();
                drop(end);
                next.marked()
            }
            ExpReady::PassAny { end, next } => {
                drop(end);
                next.marked()
            }
            ExpReady::First { next, .. } => match after_first(next).await {
                Some(server) => server,
                None => return,
            },
            ExpReady::ChannelClosed(_) => return,
        };
    }
}

async fn after_first(server: talk::Exp<talk::states::ReadyAfterFirst>) -> Option<talk::Exp<talk::states::Ready>> {
    let ExpReadyAfterFirst::Second { next, .. } = server.receive_async().await else { return None };
    let ExpReadyAfterFirstThenSecond::Third { next, .. } = next.receive_async().await else { return None };
    Some(next.marked())
}
