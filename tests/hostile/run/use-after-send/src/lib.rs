//! Uses values after they were sent, or sends values that it does not own, by means of safe Rust: forgotten or swapped
//! values, and panics midway.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

use hostile_contract::talk::{self, ExpReady, ImpReadyAfterGive, ImpStart};
use sip::channel::{Outgoing, TypedEndpoint};
use sip::exheap::ExVec;

sip::startup!();

/// Number of the contract's message Give.
const GIVE: u64 = 7;
/// Longer than the message buffer.
const TOO_LONG: usize = 600;

/// Makes the attempt.
pub fn main(startup: Startup) -> i32 {
    let result = match startup.attempt {
        0 => other_words_in_an_unsent_message(),
        1 => swapped_loans(),
        2 => panic_between_block_and_send(),
        3 => parts_of_one_block(),
        4 => forgotten_messages(),
        5 => two_messages_at_once(),
        other => panic!("there is no attempt {other}"),
    };
    match result {
        Some(false) => 0,
        Some(true) => 1,
        None => 2,
    }
}

type Conversation = (talk::Imp<talk::states::Ready>, talk::Exp<talk::states::Ready>);

fn conversation() -> Option<Conversation> {
    let (client, server) = talk::new_channel().ok()?;
    let server = server.success();
    let ImpStart::Success { next: client } = client.receive() else { return None };
    Some((client, server))
}

/// Replaces the handle of a sent block by the buffer's current content: it could be that of a block in use.
fn other_words_in_an_unsent_message() -> Option<bool> {
    let (client, server) = conversation()?;
    let block = ExVec::<u8>::from_slice(&[5; 64]).ok()?;
    let text = "x".repeat(TOO_LONG);
    let outgoing = Outgoing::new().block(block);
    let _ = sip::device::exists(&text);
    let _sent = outgoing.send(client.into_raw(), GIVE);
    let ExpReady::Give { data, .. } = server.receive() else { return None };
    Some(*data != [5; 64])
}

/// Each of two loans is returned over the channel of the other.
fn swapped_loans() -> Option<bool> {
    let ((first, first_server), (second, second_server)) = (conversation()?, conversation()?);
    let _lent = (first.lend(ExVec::new(64).ok()?, 64), second.lend(ExVec::new(128).ok()?, 128));
    let ExpReady::Lend { data: mut one, next: first_server, .. } = first_server.receive() else { return None };
    let ExpReady::Lend { data: mut other, next: second_server, .. } = second_server.receive() else { return None };
    core::mem::swap(&mut one, &mut other);
    let _returned = (first_server.returned(one, 0), second_server.returned(other, 0));
    Some(true)
}

struct PanicsWhenDropped;

impl Drop for PanicsWhenDropped {
    fn drop(&mut self) {
        panic!("a panic while a value is dropped");
    }
}

fn panic_between_block_and_send() -> Option<bool> {
    let (client, _server) = conversation()?;
    let block = ExVec::<u8>::new(64).ok()?;
    let panics = PanicsWhenDropped;
    let outgoing = Outgoing::new().block(block);
    drop(panics);
    let _sent = outgoing.send(client.into_raw(), GIVE);
    Some(true)
}

/// One part of a block is sent; writes to the others are not in it.
fn parts_of_one_block() -> Option<bool> {
    let (client, server) = conversation()?;
    let mut first = ExVec::<u8>::new(192).ok()?;
    let mut middle = first.split_off(64).ok()?;
    let mut last = middle.split_off(64).ok()?;
    middle.fill(1);
    let waiting = client.give(middle);
    let ExpReady::Give { data: received, next } = server.receive() else { return None };
    first.fill(2);
    last.fill(3);
    let is_changed = received.len() != 64 || received.iter().any(|&byte| byte != 1);
    let _next = next.given_back(received);
    let ImpReadyAfterGive::GivenBack { data, .. } = waiting.receive() else { return None };
    Some(is_changed || data.iter().any(|&byte| byte != 1) || first.iter().any(|&byte| byte != 2))
}

/// Messages that are begun and never sent, with their contents.
fn forgotten_messages() -> Option<bool> {
    for _ in 0..100 {
        let block = ExVec::<u8>::new(64).ok()?;
        drop(Outgoing::new().block(block));
        let (client, server) = conversation()?;
        core::mem::forget(client.give(ExVec::new(64).ok()?));
        core::mem::forget(server);
    }
    Some(false)
}

/// A second message is begun in the buffer of the first, with another block.
fn two_messages_at_once() -> Option<bool> {
    let ((first, _first_server), (second, _second_server)) = (conversation()?, conversation()?);
    let (one, other) = (ExVec::<u8>::new(64).ok()?, ExVec::<u8>::new(64).ok()?);
    let outgoing = Outgoing::new().block(one);
    let later = Outgoing::new().block(other);
    let _sent = outgoing.send(first.into_raw(), GIVE);
    let _sent = later.send(second.into_raw(), GIVE);
    Some(true)
}
