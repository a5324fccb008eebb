//! Programs that wait for each other, for `cargo sing check --deadlock`.
//!
//! `left` and `right` answer a question only after they have asked each other, so a question to either is never
//! answered. `lender` and `worker` wait for each other as well, but a worker has a channel to its lender only while that
//! one serves it. Deliberately not here: the systems that run them, which the tests of `sing` write.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod left;
pub mod lender;
pub mod right;
pub mod worker;

use client::namespace::Namespace;
use contracts::service_provider;

sip::contracts!("src/circles.contract");

type Clients = service_provider::Exp<service_provider::states::Start>;

/// Answers each question with what the program at the path `other` answers, plus one. Nothing else is done while that
/// one is awaited.
fn answer_by_asking(clients: Clients, namespace: Namespace, other: &'static str) -> i32 {
    let namespace = alloc::rc::Rc::new(core::cell::RefCell::new(namespace));
    let serving = provider::accept(clients.ready(), move |client| serve(client, namespace.clone(), other));
    i32::from(sip::executor::block_on(serving).is_err())
}

async fn serve(
    mut client: ask::Exp<ask::states::Ready>,
    namespace: alloc::rc::Rc<core::cell::RefCell<Namespace>>,
    other: &'static str,
) {
    while let ask::ExpReady::Question { number, next } = client.receive_async().await {
        let answer = asked(&mut namespace.borrow_mut(), other, number).unwrap_or(number);
        client = next.answer(answer.wrapping_add(1));
    }
}

/// Asks the program at a path, and waits for its answer however long that takes.
fn asked(namespace: &mut Namespace, other: &str, number: u64) -> Option<u64> {
    let (importer, exporter) = ask::new_channel().ok()?;
    namespace.bind(other, exporter).ok()?;
    match importer.question(number).receive() {
        ask::ImpReadyAfterQuestion::Answer { number, .. } => Some(number),
        ask::ImpReadyAfterQuestion::ChannelClosed(_) => None,
    }
}
