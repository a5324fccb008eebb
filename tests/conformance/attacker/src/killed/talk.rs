//! Scenes of channels, wait sets, principals and blocks.

use sip::Status;
use sip::abi::{limits, message_word};

use super::{CLIENT, Scene, Stage};
use crate::messages::{ANSWER, CALL, GIVE, LEND, PASS, RETURNED};
use crate::objects::{block, channel};
use crate::raw::{set_words, word};

/// Tags of the contract `Errand` that no attack has.
const MARKED: u16 = 3;
const GIVEN_BACK: u16 = 5;

/// Sizes of blocks in messages.
const SIZES: [u64; 4] = [200, 4096, 1, 1 << 16];
const KEY: u64 = 7;

pub(super) fn scene(name: &str) -> Option<Scene> {
    Some(match name {
        "channel_create" => |stage| {
            let importer = stage.must("channel_create", &[sip::abi::name_tag("Errand")]);
            let exporter = word(0);
            close(stage, importer);
            close(stage, exporter);
        },
        "channel_send" => |stage| converse(stage, "channel_receive"),
        "channel_receive" => receive_or_wait,
        "channel_try_receive" => |stage| {
            let importer = stage.pair().0;
            assert!(stage.one_of("channel_try_receive", &[importer], &[Status::WouldBlock]).is_none());
            converse(stage, "channel_try_receive");
        },
        "channel_receive_or_add" => receive_or_add,
        "channel_close" => close_with_a_loan,
        "channel_describe" => |stage| {
            let importer = stage.pair().0;
            stage.run("channel_describe", &[importer]);
        },
        "endpoint_take" => |stage| {
            stage.one_of("endpoint_take", &[CLIENT], &[Status::NotFound]);
        },
        "principal_of_peer" => |stage| {
            let importer = stage.pair().0;
            stage.run("principal_of_peer", &[importer]);
        },
        "principal_delegate" => delegate,
        _ => return set_scene(name).or_else(|| block_scene(name)),
    })
}

fn set_scene(name: &str) -> Option<Scene> {
    Some(match name {
        "wait_set_create" => |stage| {
            let set = stage.must("wait_set_create", &[]);
            stage.run("wait_set_close", &[set]);
        },
        "wait_set_add" | "wait_set_remove" => |stage| {
            let (set, exporter) = (stage.must("wait_set_create", &[]), stage.pair().1);
            for _ in 0..4 {
                stage.run("wait_set_add", &[set, exporter, KEY]);
                stage.run("wait_set_remove", &[set, exporter]);
            }
            stage.run("wait_set_close", &[set]);
        },
        "wait_set_wait" => wait_in_set,
        "wait_set_alert" => |stage| {
            let set = stage.must("wait_set_create", &[]);
            stage.run("wait_set_alert", &[set]);
            assert_eq!(stage.must("wait_set_wait", &[set, limits::NEVER, 4]), 1, "an alert");
            stage.run("wait_set_close", &[set]);
        },
        "wait_set_close" => |stage| {
            let (set, exporter) = (stage.must("wait_set_create", &[]), stage.pair().1);
            stage.run("wait_set_add", &[set, exporter, KEY]);
            stage.run("wait_set_close", &[set]);
        },
        _ => return None,
    })
}

fn block_scene(name: &str) -> Option<Scene> {
    Some(match name {
        "heap_allocate" => |stage| {
            let bytes = if stage.round % 13 == 12 { 0 } else { 1 << (6 + stage.round % 13) };
            let block = stage.must("heap_allocate", &[bytes, sip::abi::type_tag("byte")]);
            stage.run("heap_free", &[block]);
        },
        "heap_free" => |stage| {
            let (parent, child) = (block(200), block(4096));
            stage.run("heap_attach", &[parent, child]);
            stage.run("heap_free", &[parent]);
            if stage.round % 8 == 7
                && let Some(loan) = stage.take_loan()
            {
                stage.run("heap_free", &[loan]);
            }
        },
        "heap_split" => |stage| {
            let first = block(8192);
            let second = stage.must("heap_split", &[first, 4096]);
            let third = stage.must("heap_split", &[second, 64]);
            for part in [second, first, third] {
                stage.run("heap_free", &[part]);
            }
        },
        "heap_describe" => |stage| {
            let block = stage.loan.unwrap_or_else(|| block(64));
            stage.run("heap_describe", &[block]);
            if stage.loan.is_none() {
                stage.run("heap_free", &[block]);
            }
        },
        "heap_attach" | "heap_detach" => |stage| {
            let (parent, child) = (block(200), block(4096));
            for _ in 0..4 {
                stage.run("heap_attach", &[parent, child]);
                assert_eq!(stage.must("heap_detach", &[parent]), child, "the child that was attached");
            }
            stage.run("heap_attach", &[parent, child]);
            stage.run("heap_free", &[parent]);
        },
        _ => return None,
    })
}

fn close(stage: &Stage, endpoint: u64) {
    stage.run("channel_close", &[endpoint]);
}

fn send(stage: &Stage, endpoint: u64, tag: u16, shape: (u16, u8, u8), words: &[u64]) {
    set_words(words);
    stage.run("channel_send", &[endpoint, message_word(tag, shape.0, shape.1, shape.2)]);
}

/// Receives a message that is there.
#[track_caller]
fn receive(stage: &Stage, with: &str, endpoint: u64, tag: u16) {
    let arguments = [endpoint, limits::NEVER];
    let count = if with == "channel_receive" { 2 } else { 1 };
    assert_eq!(stage.must(with, &arguments[..count]) as u16, tag, "the tag of the message");
}

/// A request and its reply: a number, a block given, one lent, the borrowed one lent on.
fn converse(stage: &mut Stage, with: &str) {
    let (importer, exporter) = stage.pair();
    let bytes = SIZES[(stage.round / 4) as usize % SIZES.len()];
    match stage.round % 4 {
        1 => there_and_back(stage, with, block(bytes), (GIVE, GIVEN_BACK)),
        2 => there_and_back(stage, with, block(bytes), (LEND, RETURNED)),
        3 if stage.loan.is_some() => {
            let loan = stage.take_loan().unwrap_or_default();
            there_and_back(stage, with, loan, (LEND, RETURNED));
        }
        _ => {
            send(stage, importer, CALL, (1, 0, 0), &[1]);
            receive(stage, with, exporter, CALL);
            send(stage, exporter, ANSWER, (1, 0, 0), &[2]);
            receive(stage, with, importer, ANSWER);
        }
    }
}

fn there_and_back(stage: &mut Stage, with: &str, block: u64, (there, back): (u16, u16)) {
    let (importer, exporter) = stage.pair();
    let is_lent_on = stage.loan.is_none() && stage.round % 4 == 3;
    send(stage, importer, there, (0, 1, 0), &[block, 0, 0]);
    receive(stage, with, exporter, there);
    send(stage, exporter, back, (0, 1, 0), &[word(0), 0, 0]);
    receive(stage, with, importer, back);
    let block = word(0);
    if is_lent_on {
        stage.keep_loan(block);
    } else {
        stage.run("heap_free", &[block]);
    }
}

fn receive_or_wait(stage: &mut Stage) {
    let importer = stage.pair().0;
    if stage.waits_for_ever() {
        stage.run("channel_receive", &[importer, limits::NEVER]);
    }
    assert!(stage.one_of("channel_receive", &[importer, 0], &[Status::TimedOut]).is_none(), "nothing was sent");
    converse(stage, "channel_receive");
}

fn receive_or_add(stage: &mut Stage) {
    let (set, (importer, exporter)) = (stage.must("wait_set_create", &[]), stage.pair());
    let arguments = [exporter, set, KEY];
    assert!(stage.one_of("channel_receive_or_add", &arguments, &[Status::WouldBlock]).is_none(), "nothing was sent");
    send(stage, importer, CALL, (1, 0, 0), &[1]);
    assert_eq!(stage.must("wait_set_wait", &[set, limits::NEVER, 4]), 1, "the endpoint that was added");
    assert_eq!(stage.must("channel_receive_or_add", &arguments) as u16, CALL, "the message");
    send(stage, exporter, ANSWER, (1, 0, 0), &[2]);
    receive(stage, "channel_receive", importer, ANSWER);
    stage.run("wait_set_close", &[set]);
}

fn wait_in_set(stage: &mut Stage) {
    let (set, (importer, exporter)) = (stage.must("wait_set_create", &[]), stage.pair());
    stage.run("wait_set_add", &[set, exporter, KEY]);
    if stage.waits_for_ever() {
        stage.run("wait_set_wait", &[set, limits::NEVER, 4]);
    }
    send(stage, importer, CALL, (1, 0, 0), &[1]);
    assert_eq!(stage.must("wait_set_wait", &[set, limits::NEVER, 4]), 1, "the endpoint that was added");
    receive(stage, "channel_receive", exporter, CALL);
    send(stage, exporter, ANSWER, (1, 0, 0), &[2]);
    receive(stage, "channel_receive", importer, ANSWER);
    stage.run("wait_set_close", &[set]);
}

/// Closes a peer with a loan in its queue: an own block, or the borrowed one.
fn close_with_a_loan(stage: &mut Stage) {
    let (importer, exporter) = channel("Errand");
    let loan = if stage.round % 2 == 1 { stage.take_loan() } else { None };
    send(stage, importer, LEND, (0, 1, 0), &[loan.unwrap_or_else(|| block(4096)), 0, 0]);
    close(stage, exporter);
    let closed = stage.one_of("channel_receive", &[importer, limits::NEVER], &[Status::Closed]);
    assert_eq!((closed, word(0)), (None, 1), "a lent block came home");
    let home = word(1);
    match loan {
        Some(_) => stage.keep_loan(home),
        None => stage.run("heap_free", &[home]),
    }
    close(stage, importer);
}

fn delegate(stage: &mut Stage) {
    let ((importer, exporter), (passed, other)) = (stage.pair(), channel("Errand"));
    stage.run("principal_delegate", &[passed]);
    send(stage, importer, PASS, (0, 0, 1), &[passed]);
    receive(stage, "channel_receive", exporter, PASS);
    close(stage, word(0));
    close(stage, other);
    send(stage, exporter, MARKED, (0, 0, 0), &[]);
    receive(stage, "channel_receive", importer, MARKED);
}
