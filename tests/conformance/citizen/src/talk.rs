//! Acts of communication: servers, borrowers, senders that exit midway.

use alloc::vec::Vec;

use conformance_contract::{errand, welcome};
use errand::{ExpReady, ExpReadyAfterFirst, ExpReadyAfterFirstThenSecond, ImpReadyAfterCall, ImpReadyAfterLend};
use sip::exheap::{ExVec, Lent};

use crate::Stage;

/// A block whose bytes prove their integrity: each is `seed` plus its index.
pub(crate) fn patterned(bytes: usize, seed: u8) -> ExVec<u8> {
    let mut block = ExVec::new(bytes).expect("room for a block");
    for (place, byte) in block.iter_mut().enumerate() {
        *byte = seed.wrapping_add(place as u8);
    }
    block
}

/// Replies to everything until the client closes.
pub(crate) fn serve(mut stage: Stage) -> i32 {
    answer_until_closed(stage.server());
    0
}

/// Replies to everything: numbers plus one, blocks unchanged, endpoints by closing them.
pub(crate) fn answer_until_closed(server: errand::Exp<errand::states::Ready>) {
    let mut server = server;
    loop {
        server = match server.receive() {
            ExpReady::Call { value, next } => next.answer(value.wrapping_add(1)),
            ExpReady::Mark { next, .. } => next.marked(),
            ExpReady::Give { data, next } => next.given_back(data),
            ExpReady::GiveTwo { next, .. } => next.marked(),
            ExpReady::Lend { mut data, next } => {
                data[0] = data[0].wrapping_add(1);
                next.returned(data)
            }
            ExpReady::Pass { end, next } => {
                drop(end);
                next.marked()
            }
            ExpReady::PassAny { end, next } => {
                drop(end);
                next.marked()
            }
            ExpReady::PassServer { end, next } => {
                serve_welcome(end);
                next.marked()
            }
            ExpReady::First { next, .. } => match after_first(next) {
                Some(server) => server,
                None => return,
            },
            ExpReady::ChannelClosed(_) => return,
        };
    }
}

fn after_first(server: errand::Exp<errand::states::ReadyAfterFirst>) -> Option<errand::Exp<errand::states::Ready>> {
    let ExpReadyAfterFirst::Second { next, .. } = server.receive() else { return None };
    let ExpReadyAfterFirstThenSecond::Third { next, .. } = next.receive() else { return None };
    Some(next.marked())
}

fn serve_welcome(server: welcome::Exp<welcome::states::Start>) {
    let mut server = server.success();
    while let welcome::ExpReady::Ask { value, next } = server.receive() {
        server = next.told(value + 1);
    }
}

/// Creates `number` channels, then serves while holding both ends of each.
pub(crate) fn hold_channels(mut stage: Stage) -> i32 {
    let held: Vec<_> = (0..stage.number).map(|_| errand::new_channel().expect("a channel")).collect();
    answer_until_closed(stage.server());
    drop(held);
    0
}

/// Sends three messages and exits before they are received.
pub(crate) fn send_three(mut stage: Stage) -> i32 {
    let _sent = stage.client().first(patterned(4096, 7)).second(2).third(3);
    stage.end()
}

/// Sends a block, and exits.
pub(crate) fn send_block(mut stage: Stage) -> i32 {
    let _sent = stage.client().give(patterned(stage.number as usize, 7));
    stage.end()
}

/// Never receives, leaves a message of its own in flight, and exits on request.
pub(crate) fn receive_nothing(mut stage: Stage) -> i32 {
    let _server = stage.server();
    let _client = stage.client().give(patterned(70_000, 1));
    stage.end()
}

/// Borrows a block `number` times, changes it, and returns it.
pub(crate) fn return_loan(mut stage: Stage) -> i32 {
    let mut server = stage.server();
    for _ in 0..stage.number {
        let ExpReady::Lend { mut data, next } = server.receive() else { panic!("no loan came") };
        data[0] = data[0].wrapping_add(1);
        server = next.returned(data);
    }
    answer_until_closed(server);
    0
}

/// Borrows a block, changes it, and exits while holding it.
pub(crate) fn keep_loan(mut stage: Stage) -> i32 {
    let ExpReady::Lend { mut data, next: _next } = stage.server().receive() else { panic!("no loan came") };
    data[0] = data[0].wrapping_add(1);
    stage.end()
}

/// Borrows a block and drops it without a reply.
pub(crate) fn drop_loan(mut stage: Stage) -> i32 {
    let ExpReady::Lend { data, next: _next } = stage.server().receive() else { panic!("no loan came") };
    drop(data);
    stage.end()
}

/// Borrows a block, lends it on, and returns it when it comes back, which it does even if the next borrower exits.
pub(crate) fn lend_on(mut stage: Stage) -> i32 {
    let ExpReady::Lend { mut data, next } = stage.server().receive() else { panic!("no loan came") };
    data[0] = data[0].wrapping_add(1);
    let block = match stage.client().lend(data).receive() {
        ImpReadyAfterLend::Returned { data, .. } => data,
        ImpReadyAfterLend::ChannelClosed(mut closed) => {
            let mut home = closed.take_home();
            let block = home.pop().expect("the block comes home when the next borrower ends");
            assert!(home.is_empty(), "one block was lent, more came home");
            block.into_vec().expect("the block keeps its type")
        }
    };
    let lent = Lent::claim(block).expect("a block that was lent on is still on loan");
    answer_until_closed(next.returned(lent));
    0
}

/// Lends a block and exits while it is on loan.
pub(crate) fn lend_and_end(mut stage: Stage) -> i32 {
    let _sent = stage.client().lend(patterned(4096, 9));
    stage.end()
}

/// Sends an end of a channel, keeps the other, and exits.
pub(crate) fn pass_and_end(mut stage: Stage) -> i32 {
    let (importer, _exporter) = errand::new_channel().expect("a channel");
    let _sent = stage.client().pass(importer);
    stage.end()
}

/// Receives an endpoint, sends over it, and exits while holding it.
pub(crate) fn keep_passed(mut stage: Stage) -> i32 {
    let ExpReady::Pass { end, next: _next } = stage.server().receive() else { panic!("no endpoint came") };
    let _end = end.call(41);
    stage.end()
}

/// Sends its server `number` requests in sequence; without a number, forever.
pub(crate) fn ask_often(mut stage: Stage) -> i32 {
    let mut client = stage.client();
    let mut asked = 0;
    while stage.number == 0 || asked < stage.number {
        client = match client.call(asked).receive() {
            ImpReadyAfterCall::Answer { value, next } => {
                assert_eq!(value, asked + 1, "the answer belongs to another question");
                next
            }
            ImpReadyAfterCall::ChannelClosed(_) => return 0,
        };
        asked += 1;
    }
    0
}
