//! Tests of payment for loans, on the test machine.

extern crate std;

use alloc::string::String;
use alloc::vec;

use abi::{Automaton, Direction, MessageShape, StateRow};

use super::*;
use crate::channel::{EndpointRef, close, create};
use crate::contract::{Contract, register};
use crate::exheap::{RECORD_BYTES, allocate, take_from};
use crate::lifecycle;
use crate::process::Epitaph;
use crate::test_machine::{alone, with_quota};

const BYTES: usize = 1 << 16;
const CHARGE: usize = BYTES + RECORD_BYTES;

fn user() -> ProcessRef {
    with_quota(|quota| quota.block_kib = 128)
}

fn used(process: ProcessRef) -> usize {
    process.block_bytes.load(Ordering::Relaxed)
}

fn contract() -> &'static Contract {
    let automaton = Automaton {
        name: String::from("Lending"),
        queue_to_importer: 1,
        queue_to_exporter: 1,
        messages: vec![MessageShape {
            name: String::from("Ask"),
            direction: Direction::ToExporter,
            scalar_words: 1,
            ranges: vec![],
            blocks: vec![],
            endpoints: vec![],
        }],
        states: vec![StateRow { name: String::from("START"), next: vec![0] }],
    };
    register(&automaton.encode(), [9; 32]).expect("a good contract")
}

/// Lends a block over a new channel of the lender, and returns the lending endpoint.
fn lend(lender: ProcessRef, borrower: ProcessRef, block: BlockRef) -> EndpointRef {
    let (importer, _exporter) = create(lender, contract()).expect("a channel");
    take_from(lender, block, block.handle()).expect("an own block");
    assert!(block.push_loan(importer.handle()));
    receive_block(borrower, block);
    importer
}

fn give_up(owner: ProcessRef, block: BlockRef) {
    take_from(owner, block, block.handle()).expect("an own block");
    dispose(block);
}

#[test]
fn a_loan_counts_against_who_lent_it() {
    let _alone = alone();
    let (client, service) = (user(), user());
    let block = allocate(client, BYTES, 0).expect("a block");
    lend(client, service, block);
    assert_eq!((used(client), used(service)), (CHARGE, 0));
    assert_eq!(allocate(client, BYTES, 0).err(), Some(abi::Status::QuotaExceeded), "what is lent can be lent again");
    let further = user();
    lend(service, further, block);
    assert_eq!((used(client), used(service), used(further)), (CHARGE, 0, 0));
    give_up(further, block);
    assert_eq!((used(client), used(service), used(further)), (CHARGE, 0, 0), "it is at home");
}

#[test]
fn what_a_process_lent_before_it_ended_counts_against_who_has_it() {
    let _alone = alone();
    let (client, service) = (user(), user());
    let block = allocate(client, BYTES, 0).expect("a block");
    lend(client, service, block);
    lifecycle::end(client, Epitaph::exited(0));
    assert_eq!((used(client), used(service)), (0, CHARGE));
    give_up(service, block);
    assert_eq!(used(service), 0);
}

#[test]
fn the_next_lender_pays_when_the_first_closes() {
    let _alone = alone();
    let (first, next, holder) = (user(), user(), user());
    let block = allocate(first, BYTES, 0).expect("a block");
    let first_end = lend(first, next, block);
    let next_end = lend(next, holder, block);
    first_end.channel.lock().sides[0].loans_out = 1;
    next_end.channel.lock().sides[0].loans_out = 1;
    assert!(close(first, first_end).is_ok());
    assert_eq!((used(first), used(next), used(holder)), (0, CHARGE, 0));
    assert!(close(next, next_end).is_ok());
    assert_eq!((used(first), used(next), used(holder)), (0, 0, CHARGE));
    give_up(holder, block);
    assert_eq!((used(first), used(next), used(holder)), (0, 0, 0));
}

#[test]
fn who_lends_to_itself_first_pays_for_what_it_lends_on() {
    let _alone = alone();
    let (client, service) = (user(), user());
    let block = allocate(client, BYTES, 0).expect("a block");
    let to_itself = lend(client, client, block);
    let to_service = lend(client, service, block);
    to_itself.channel.lock().sides[0].loans_out = 1;
    assert!(close(client, to_itself).is_ok());
    assert_eq!((used(client), used(service)), (CHARGE, 0));
    to_service.channel.lock().sides[0].loans_out = 1;
    give_up(service, block);
    assert_eq!((used(client), used(service)), (CHARGE, 0));
}

#[test]
fn a_block_of_one_who_is_gone_counts_against_the_next_in_its_slot() {
    let _alone = alone();
    let (sender, receiver) = (user(), user());
    let block = allocate(sender, BYTES, 0).expect("a block");
    take_from(sender, block, block.handle()).expect("an own block");
    // As if the slot had been reused by another SIP.
    block.charged_to.set(Some(receiver));
    receive_block(receiver, block);
    assert_eq!(used(receiver), CHARGE);
    give_up(receiver, block);
    assert_eq!(used(receiver), 0);
}
