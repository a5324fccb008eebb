//! Closes channels during waits for them, from other threads, with messages and loans in flight.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

use hostile_contract::talk::{self, ExpReady, ImpReadyAfterCall, ImpReadyAfterLend, ImpStart};
use sip::Deadline;
use sip::exheap::ExVec;
use sip::select::{Either, WaitSet, either};
use sip::thread;

sip::startup!();

const ROUNDS: u64 = 300;
/// Timeout for a closed channel to be reported.
const LIMIT_MS: u64 = 60_000;

/// Makes the attempt.
pub fn main(startup: Startup) -> i32 {
    for round in 0..ROUNDS {
        let is_lost = match startup.attempt {
            0 => in_a_wait_for_two(round),
            1 => in_a_wait_set(round),
            2 => with_a_loan(round),
            3 => all_at_once(),
            other => panic!("there is no attempt {other}"),
        };
        if is_lost {
            return 1;
        }
    }
    0
}

type Conversation = (talk::Imp<talk::states::Ready>, talk::Exp<talk::states::Ready>);

fn conversation() -> Conversation {
    let (client, server) = talk::new_channel().expect("a channel");
    let server = server.success();
    let ImpStart::Success { next: client } = client.receive() else { panic!("the channel closed") };
    (client, server)
}

/// Drops it on another thread, slightly later.
fn drop_elsewhere<T: Send + 'static>(value: T, round: u64) -> thread::JoinHandle<()> {
    let later = move || {
        for _ in 0..round % 5 {
            thread::yield_now();
        }
        drop(value);
    };
    thread::spawn(later).expect("a thread")
}

fn soon() -> Deadline {
    Deadline::after_ms(LIMIT_MS)
}

fn in_a_wait_for_two(round: u64) -> bool {
    let ((client, server), (other_client, other_server)) = (conversation(), conversation());
    let closing = drop_elsewhere(server, round);
    let waited = either(client.call(1), other_client.call(2), soon());
    let is_right = matches!(waited, Either::First(ImpReadyAfterCall::ChannelClosed(_), _));
    closing.join().expect("it ends");
    drop(other_server);
    !is_right
}

fn in_a_wait_set(round: u64) -> bool {
    let mut set = WaitSet::new().expect("a wait set");
    let conversations: [Conversation; 4] = core::array::from_fn(|_| conversation());
    let servers = conversations.map(|(client, server)| {
        set.insert(client.call(1));
        server
    });
    let closing = servers.map(|server| drop_elsewhere(server, round));
    let mut is_lost = false;
    for _ in 0..4 {
        let closed = set.wait(soon());
        is_lost |= !matches!(closed, Some((key, ImpReadyAfterCall::ChannelClosed(_))) if set.remove(key).is_none());
    }
    closing.into_iter().for_each(|thread| thread.join().expect("it ends"));
    is_lost || !set.is_empty()
}

/// The block has returned to its lender when the channel is closed.
fn with_a_loan(round: u64) -> bool {
    let (client, server) = conversation();
    let waiting = client.lend(ExVec::from_slice(&[9; 640]).expect("a block"), 640);
    let closing = match round % 3 {
        0 => drop_elsewhere(server, round),
        1 => {
            let ExpReady::Lend { data, next, .. } = server.receive() else { return true };
            drop_elsewhere((data, next), round)
        }
        _ => {
            let ExpReady::Lend { data, next, .. } = server.receive() else { return true };
            drop_elsewhere((next, data), round)
        }
    };
    let ImpReadyAfterLend::ChannelClosed(mut closed) = waiting.receive() else { return true };
    let home = closed.take_home();
    closing.join().expect("it ends");
    let [block] = <[_; 1]>::try_from(home).unwrap_or_else(|home| panic!("{} blocks came home", home.len()));
    !block.into_vec::<u8>().is_ok_and(|block| *block == [9; 640])
}

/// Both ends close at the same time, with messages in flight.
fn all_at_once() -> bool {
    let (client, server) = conversation();
    let sent = client.first(ExVec::new(64).expect("a block")).second(2);
    let one = drop_elsewhere(sent, 1);
    let other = drop_elsewhere(server, 1);
    one.join().expect("it ends");
    other.join().expect("it ends");
    false
}
