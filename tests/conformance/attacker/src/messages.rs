//! Acts that send messages forbidden by their contract.

use sip::Status;
use sip::abi::{message_word, type_tag};

use crate::Act;
use crate::objects::{block, channel};
use crate::raw::{abi, must, set_words, word};

// Tags of the contract `Errand`: the index of each message in it.
pub(crate) const CALL: u16 = 0;
pub(crate) const ANSWER: u16 = 1;
pub(crate) const MARK: u16 = 2;
pub(crate) const GIVE: u16 = 4;
pub(crate) const GIVE_TWO: u16 = 6;
pub(crate) const LEND: u16 = 7;
pub(crate) const RETURNED: u16 = 8;
pub(crate) const PASS: u16 = 9;
pub(crate) const PASS_ANY: u16 = 10;

pub(crate) const ACTS: &[(&str, Act)] = &[
    ("send-out-of-state", |_| attempt(errand(), ANSWER, (1, 0, 0), &[1])),
    ("send-twice-in-a-row", |_| send_twice()),
    ("send-unknown", |_| attempt(errand(), 999, (1, 0, 0), &[1])),
    ("send-wrong-direction", |_| attempt(channel("Errand").1, CALL, (1, 0, 0), &[1])),
    ("send-wrong-shape", |_| attempt(errand(), CALL, (2, 0, 0), &[1, 2])),
    ("send-scalars-for-block", |_| attempt(errand(), GIVE, (3, 0, 0), &[block(64), 0, 64])),
    ("send-bad-bool", |_| attempt(errand(), MARK, (3, 0, 0), &[2, 0, 0])),
    ("send-bad-enum", |_| attempt(errand(), MARK, (3, 0, 0), &[1, 3, 0])),
    ("send-bad-flags", |_| attempt(errand(), MARK, (3, 0, 0), &[1, 2, 4])),
    ("send-then-violate", |_| send_then_violate()),
    ("send-block-twice-in-one", |_| block_twice_in_one()),
    ("send-block-twice-in-two", |_| block_twice_in_two()),
    ("send-freed-block", |_| freed_block()),
    ("send-forged-block", |_| attempt(errand(), GIVE, (0, 1, 0), &[block(64) + 7, 0, 64])),
    ("send-block-of-other-type", |_| block_of_other_type()),
    ("send-endpoint-as-block", |_| attempt(errand(), GIVE, (0, 1, 0), &[errand(), 0, 64])),
    ("send-lent-as-own", |_| lent_as_own()),
    ("return-not-lent", |_| return_not_lent()),
    ("return-elsewhere", |_| return_elsewhere()),
    ("lend-too-deep", |_| lend_too_deep()),
    ("pass-own-channel", |_| pass_own(false)),
    ("pass-own-peer", |_| pass_own(true)),
    ("pass-wrong-state", |_| pass(PASS, busy_importer())),
    ("pass-wrong-end", |_| pass(PASS, channel("Errand").1)),
    ("pass-wrong-contract", |_| pass(PASS, channel("Welcome").0)),
    ("pass-any-not-its-turn", |_| pass(PASS_ANY, channel("Welcome").0)),
    ("pass-twice", |_| pass_twice()),
    ("pass-with-loan", |_| pass_with_loan()),
    ("pass-forged", |_| pass(PASS, errand() + 2000)),
    ("pass-well", |_| pass_well()),
];

fn errand() -> u64 {
    channel("Errand").0
}

/// Sends a message with this tag and this many scalars, blocks and endpoints.
pub(crate) fn send(endpoint: u64, tag: u16, shape: (u16, u8, u8), words: &[u64]) -> Result<u64, Status> {
    set_words(words);
    abi("channel_send", &[endpoint, message_word(tag, shape.0, shape.1, shape.2)])
}

/// Waits for a message; returns its tag.
pub(crate) fn receive(endpoint: u64) -> Result<u16, Status> {
    abi("channel_receive", &[endpoint, u64::MAX]).map(|message| message as u16)
}

/// Sends a message that must end this process.
fn attempt(endpoint: u64, tag: u16, shape: (u16, u8, u8), words: &[u64]) -> i32 {
    match send(endpoint, tag, shape, words) {
        Ok(_) => panic!("the message was taken"),
        Err(status) => panic!("the sender lives on: {}", status.text()),
    }
}

fn give(endpoint: u64, block: u64) -> Result<u64, Status> {
    send(endpoint, GIVE, (0, 1, 0), &[block, 0, 64])
}

fn send_twice() -> i32 {
    let endpoint = errand();
    send(endpoint, CALL, (1, 0, 0), &[1]).expect("the first is allowed");
    attempt(endpoint, CALL, (1, 0, 0), &[2])
}

/// The runner holds the other end.
fn send_then_violate() -> i32 {
    let client = must("endpoint_take", &[0]);
    send(client, CALL, (1, 0, 0), &[12]).expect("the first is allowed");
    attempt(client, CALL, (1, 0, 0), &[13])
}

fn block_twice_in_one() -> i32 {
    let block = block(64);
    attempt(errand(), GIVE_TWO, (0, 2, 0), &[block, 0, 64, block, 0, 64])
}

fn block_twice_in_two() -> i32 {
    let block = block(64);
    give(errand(), block).expect("the first is allowed");
    attempt(errand(), GIVE, (0, 1, 0), &[block, 0, 64])
}

fn freed_block() -> i32 {
    let block = block(64);
    must("heap_free", &[block]);
    attempt(errand(), GIVE, (0, 1, 0), &[block, 0, 64])
}

fn block_of_other_type() -> i32 {
    let block = must("heap_allocate", &[64, type_tag("ulong")]);
    attempt(errand(), GIVE, (0, 1, 0), &[block, 0, 64])
}

/// A block that this process has lent to itself: the exporting end, which holds it, and the block.
pub(crate) fn loan() -> (u64, u64, u64) {
    let (importer, exporter) = channel("Errand");
    send(importer, LEND, (0, 1, 0), &[block(256), 0, 256]).expect("a loan is allowed");
    assert_eq!(receive(exporter), Ok(LEND), "the loan arrives");
    (importer, exporter, word(0))
}

fn lent_as_own() -> i32 {
    let (_, _, lent) = loan();
    attempt(errand(), GIVE, (0, 1, 0), &[lent, 0, 256])
}

fn return_not_lent() -> i32 {
    let (_, exporter, _) = loan();
    attempt(exporter, RETURNED, (0, 1, 0), &[block(256), 0, 256])
}

fn return_elsewhere() -> i32 {
    let (_, _, lent) = loan();
    let (_, other, _) = loan();
    attempt(other, RETURNED, (0, 1, 0), &[lent, 0, 256])
}

fn lend_too_deep() -> i32 {
    let (_, _, mut lent) = loan();
    for _ in 1..sip::abi::limits::LOAN_DEPTH {
        let (importer, exporter) = channel("Errand");
        send(importer, LEND, (0, 1, 0), &[lent, 0, 256]).expect("a loan can be lent on");
        assert_eq!(receive(exporter), Ok(LEND), "the loan arrives");
        lent = word(0);
    }
    attempt(errand(), LEND, (0, 1, 0), &[lent, 0, 256])
}

fn pass(tag: u16, endpoint: u64) -> i32 {
    attempt(errand(), tag, (0, 0, 1), &[endpoint])
}

fn pass_own(peer: bool) -> i32 {
    let (importer, exporter) = channel("Errand");
    attempt(importer, PASS, (0, 0, 1), &[if peer { exporter } else { importer }])
}

/// An importing end that waits for an answer.
fn busy_importer() -> u64 {
    let importer = errand();
    send(importer, CALL, (1, 0, 0), &[1]).expect("a question is allowed");
    importer
}

fn pass_twice() -> i32 {
    let moved = errand();
    send(errand(), PASS, (0, 0, 1), &[moved]).expect("the first is allowed");
    pass(PASS, moved)
}

fn pass_with_loan() -> i32 {
    let (importer, _, _) = loan();
    pass(PASS_ANY, importer)
}

/// An endpoint that arrives is the one that was sent, and owned by the receiver alone.
fn pass_well() -> i32 {
    let (carrier, arrival) = channel("Errand");
    let (moved, stays) = channel("Errand");
    send(carrier, PASS, (0, 0, 1), &[moved]).expect("an endpoint is sent");
    for (name, arguments) in [("channel_close", &[moved, 0]), ("channel_receive", &[moved, 0])] {
        crate::raw::refused(name, arguments, &[Status::BadHandle]);
    }
    assert_eq!(receive(arrival), Ok(PASS), "it arrives");
    let arrived = word(0);
    send(arrived, CALL, (1, 0, 0), &[77]).expect("it can be used");
    assert_eq!((receive(stays), word(0)), (Ok(CALL), 77), "its peer is the same");
    0
}
