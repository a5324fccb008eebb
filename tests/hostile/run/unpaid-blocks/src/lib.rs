//! Holds more blocks than its quota allows: lends them and leaves the replies unread, or has short-lived children send
//! or lend them to it.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

use alloc::string::ToString;
use alloc::vec::Vec;

use hostile_contract::talk::{self, ExpReady, ImpStart};
use sip::Deadline;
use sip::exheap::ExVec;
use sip::process::{Child, create};

sip::startup!();

const OWN_NAME: &str = "hostile-unpaid-blocks";
const VICTIM_SLOT: usize = 0;
const NUMBER_PARAMETER: usize = 0;
/// Two of these are more than the quota.
const BYTES: usize = 12 << 20;
/// Number of blocks to hold.
const BLOCKS: usize = 8;
/// Timeout for a victim to receive.
const LIMIT_MS: u64 = 500;
/// Actions of a child.
const GIVE: i64 = 100;
const LEND: i64 = 101;

type Victim = talk::Imp<talk::states::Ready>;
type Server = talk::Exp<talk::states::Ready>;

/// Makes the attempt.
pub fn main(startup: Startup) -> i32 {
    let result = match startup.attempt {
        0 => unread_answer(startup.victim),
        1 => messages_of_the_dead(),
        2 => loans_of_the_dead(),
        GIVE => give(startup.victim),
        LEND => lend(startup.victim),
        other => panic!("there is no attempt {other}"),
    };
    match result {
        Some(false) => 0,
        Some(true) => 1,
        None => 2,
    }
}

fn block() -> Option<ExVec<u8>> {
    ExVec::new(BYTES).ok()
}

fn give(parent: Victim) -> Option<bool> {
    core::mem::forget(parent.give(block()?));
    Some(false)
}

fn lend(parent: Victim) -> Option<bool> {
    core::mem::forget(parent.lend(block()?, 0));
    Some(false)
}

/// The loan is received and returned, but the reply stays unread.
fn unread_answer(victim: Victim) -> Option<bool> {
    let _answer = victim.lend(block()?, 0);
    let deadline = Deadline::after_ms(LIMIT_MS);
    while !deadline.has_passed() {
        if block().is_some() {
            return Some(true);
        }
        sip::thread::sleep(Deadline::after_ms(5));
    }
    Some(false)
}

/// A child that makes this attempt and has ended; its messages wait for the server.
fn after_its_end(attempt: i64) -> Option<Server> {
    let (client, server) = talk::new_channel().ok()?;
    let server = server.success();
    let ImpStart::Success { next: client } = client.receive() else { return None };
    let child = create(OWN_NAME).ok()?.parameter(NUMBER_PARAMETER, &attempt.to_string()).ok()?;
    let child = child.endpoint(VICTIM_SLOT, client).and_then(Child::start).ok()?;
    let is_sent = child.wait().is_ok_and(|epitaph| epitaph.is_success());
    is_sent.then_some(server)
}

fn messages_of_the_dead() -> Option<bool> {
    let servers: Vec<Server> = core::iter::from_fn(|| after_its_end(GIVE)).take(BLOCKS).collect();
    // A SIP over its quota can create nothing: neither a channel for the next child nor a block.
    Some(servers.len() > 1 && ExVec::<u8>::new(64).is_ok())
}

fn loans_of_the_dead() -> Option<bool> {
    let mut lent = Vec::new();
    for _ in 0..BLOCKS {
        let Some(server) = after_its_end(LEND) else { break };
        let ExpReady::Lend { data, next, .. } = server.receive() else { return None };
        lent.push((data, next));
    }
    Some(lent.len() > 1 && ExVec::<u8>::new(64).is_ok())
}
