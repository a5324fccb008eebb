//! Tests of receiving: messages, the end of a channel, returned loans, and how a wait for them ends.

extern crate std;

use alloc::rc::Rc;
use alloc::vec;
use core::cell::RefCell;
use std::vec::Vec;

use abi::ProcessState;
use abi::limits::NEVER;

use super::*;
use crate::channel::test_contract::{ASK, GIVE, Got, LEND, RETURN, TWO, ask, between, block, get, send_with, user};
use crate::channel::{CHANNELS, close};
use crate::exheap::BlockRef;
use crate::handlers;
use crate::lifecycle::end;
use crate::process::Epitaph;
use crate::sync::{self, Make};
use crate::test_machine::{advance, alone, leave_kernel, run, spawn};
use crate::{claims, timers};

fn used(process: ProcessRef) -> usize {
    process.block_bytes.load(Ordering::Relaxed)
}

fn is_owner(process: ProcessRef, block: BlockRef) -> bool {
    block.owner.get().is_some_and(|owner| core::ptr::eq(owner, process))
}

fn loans_out(end: EndpointRef) -> u32 {
    end.channel.lock().sides[end.side as usize].loans_out
}

/// Lends a block of the first SIP over a new channel.
fn lend(lender: ProcessRef, borrower: ProcessRef) -> (EndpointRef, EndpointRef, BlockRef) {
    let (importer, exporter) = between(lender, borrower);
    let lent = block(lender);
    assert_eq!(send_with(lender, importer, LEND, &[lent.handle()], &[]), Ok(()));
    assert!(matches!(get(borrower, exporter), Got::Message(LEND, _)));
    (importer, exporter, lent)
}

#[test]
fn a_loan_is_the_borrowers_until_it_is_returned_and_the_lender_pays_throughout() {
    let _alone = alone();
    let (lender, borrower) = (user(), user());
    let (importer, exporter, lent) = lend(lender, borrower);
    let charge = used(lender);
    assert!(is_owner(borrower, lent) && lent.is_lent());
    assert_eq!((charge > 0, used(borrower), loans_out(importer)), (true, 0, 1));
    let other = block(borrower);
    let exchanged = send_with(borrower, exporter, RETURN, &[other.handle()], &[]);
    assert!(exchanged.is_err_and(|how| how.ends_with("to return a block that was not lent over this channel")));
    assert_eq!(send_with(borrower, exporter, RETURN, &[lent.handle()], &[]), Ok(()));
    assert_eq!(loans_out(importer), 0);
    let Got::Message(RETURN, words) = get(lender, importer) else { panic!("no message") };
    assert_eq!(words[1], lent.handle());
    assert!(is_owner(lender, lent) && !lent.is_lent());
    assert_eq!(used(lender), charge);
    assert_eq!(send_with(lender, importer, LEND, &[lent.handle()], &[]), Ok(()), "the first state allows it again");
}

#[test]
fn a_loan_comes_home_with_the_end_of_the_channel_when_the_borrower_dies() {
    let _alone = alone();
    let (lender, borrower) = (user(), user());
    let (importer, _exporter, lent) = lend(lender, borrower);
    let (charge, handles) = (used(lender), lender.handles());
    end(borrower, Epitaph::exited(0));
    assert_eq!(lender.handles(), handles, "it waits at the endpoint");
    assert_eq!(get(lender, importer), Got::Closed(vec![lent.handle()]));
    assert!(is_owner(lender, lent) && !lent.is_lent());
    assert_eq!((used(lender), lender.handles(), loans_out(importer)), (charge, handles + 1, 0));
    assert_eq!(get(lender, importer), Got::Closed(vec![]), "once");
}

#[test]
fn a_channel_with_a_loan_out_is_not_closed_for_its_lender_before_the_loan_is_home() {
    let _alone = alone();
    let (lender, borrower, further) = (user(), user(), user());
    let (importer, exporter, lent) = lend(lender, borrower);
    let (onward, last) = between(borrower, further);
    assert_eq!(send_with(borrower, onward, LEND, &[lent.handle()], &[]), Ok(()));
    assert!(close(borrower, exporter).is_ok());
    assert_eq!(get(lender, importer), Got::Nothing);
    assert!(matches!(get(further, last), Got::Message(LEND, _)));
    // The borrower is the last lender, and then it dies.
    end(borrower, Epitaph::exited(0));
    assert_eq!(get(lender, importer), Got::Nothing);
    end(further, Epitaph::exited(0));
    assert_eq!(get(lender, importer), Got::Closed(vec![lent.handle()]));
}

#[test]
fn a_block_whose_lender_is_gone_is_freed_with_its_borrower() {
    let _alone = alone();
    let (lender, borrower) = (user(), user());
    let live = exheap::BLOCKS.live();
    let (_importer, _exporter, lent) = lend(lender, borrower);
    let charge = used(lender);
    end(lender, Epitaph::exited(0));
    assert!(is_owner(borrower, lent));
    assert_eq!(used(borrower), charge, "nobody else is left to pay");
    end(borrower, Epitaph::exited(0));
    assert_eq!(exheap::BLOCKS.live(), live);
}

#[test]
fn a_loan_that_comes_home_unreceived_is_charged_to_the_lender_that_is_left() {
    let _alone = alone();
    let (first, next, receiver) = (user(), user(), user());
    let (_importer, _exporter, lent) = lend(first, next);
    let charge = used(first);
    let (onward, _last) = between(next, receiver);
    assert_eq!(send_with(next, onward, LEND, &[lent.handle()], &[]), Ok(()));
    end(first, Epitaph::exited(0));
    assert_eq!((used(next), used(receiver)), (0, charge), "its receiver pays, before it has it");
    end(receiver, Epitaph::exited(0));
    assert_eq!(used(next), charge);
    assert_eq!(get(next, onward), Got::Closed(vec![lent.handle()]));
    assert_eq!(used(next), charge);
}

#[test]
fn closed_is_received_behind_the_messages_that_were_sent_before() {
    let _alone = alone();
    let (client, service) = (user(), user());
    let live = CHANNELS.live();
    let (importer, exporter) = between(client, service);
    let given = block(client);
    assert_eq!(ask(client, importer, 3), Ok(()));
    assert_eq!(send_with(client, importer, GIVE, &[given.handle()], &[]), Ok(()));
    let lent = block(client);
    let kept = block(client);
    assert_eq!(send_with(client, importer, TWO, &[lent.handle(), kept.handle()], &[]), Ok(()));
    end(client, Epitaph::exited(0));
    assert_eq!(get(service, exporter), Got::Message(ASK, vec![3]));
    assert!(matches!(get(service, exporter), Got::Message(GIVE, _)));
    assert!(matches!(get(service, exporter), Got::Message(TWO, _)));
    assert_eq!(get(service, exporter), Got::Closed(vec![]));
    assert!([given, lent, kept].iter().all(|block| is_owner(service, block)));
    assert!(used(service) > 0, "whoever has them pays");
    assert!(close(service, exporter).is_ok());
    assert_eq!(CHANNELS.live(), live);
}

#[test]
fn only_the_owner_receives() {
    let _alone = alone();
    let (client, service) = (user(), user());
    let (importer, exporter) = between(client, service);
    assert_eq!(ask(client, importer, 3), Ok(()));
    let buffer = MessageBuffer::leaked();
    assert!(matches!(try_receive(client, exporter, buffer), Err(Status::BadHandle)));
    let stale = EndpointRef { generation: exporter.generation + 2, ..exporter };
    assert!(matches!(try_receive(service, stale, buffer), Err(Status::BadHandle)));
    assert_eq!(buffer.get(0), 0);
    assert_eq!(get(service, exporter), Got::Message(ASK, vec![3]));
}

/// Results of the threads, in order.
type Log = Rc<RefCell<Vec<(&'static str, Result<u64, Status>)>>>;

/// A thread that receives once, by an ABI function.
fn receiver(process: ProcessRef, end: EndpointRef, deadline: u64, name: &'static str, log: &Log) {
    let (log, end) = (log.clone(), end.handle());
    spawn(process, move || {
        let received = handlers::channel_receive(end, deadline);
        leave_kernel();
        log.borrow_mut().push((name, received));
    });
}

#[test]
fn a_receiver_that_waits_gets_what_is_sent_next() {
    let _alone = alone();
    let (client, service) = (user(), user());
    let (importer, exporter) = between(client, service);
    let log = Log::default();
    receiver(service, exporter, NEVER, "first", &log);
    run();
    assert!(log.borrow().is_empty());
    receiver(service, exporter, NEVER, "second", &log);
    run();
    assert_eq!(*log.borrow(), [("second", Err(Status::Busy))], "two threads wait at one end");
    assert_eq!(ask(client, importer, 5), Ok(()));
    run();
    assert!(matches!(log.borrow()[1], ("first", Ok(_))));
    assert_eq!(get(client, importer), Got::Closed(vec![]));
    assert_eq!(service.state(), ProcessState::Ended, "its last thread has ended");
}

#[test]
fn a_wait_ends_at_its_deadline_and_leaves_the_endpoint_as_it_was() {
    let _alone = alone();
    let (client, service) = (user(), user());
    let (importer, exporter) = between(client, service);
    let log = Log::default();
    let deadline = crate::machine::machine().monotonic_ns() + 1000;
    let held = Rc::new(RefCell::new(None));
    {
        let (log, held, end) = (log.clone(), held.clone(), exporter.handle());
        spawn(service, move || {
            let timed = handlers::channel_receive(end, deadline);
            log.borrow_mut().push(("timed", timed));
            *held.borrow_mut() = Some(get(service, exporter));
            let again = handlers::channel_receive(end, NEVER);
            log.borrow_mut().push(("again", again.map(|word| word & 0xffff)));
        });
    }
    run();
    advance(999);
    timers::expire();
    run();
    assert!(log.borrow().is_empty(), "it woke before its deadline");
    advance(1);
    timers::expire();
    run();
    assert_eq!(*log.borrow(), [("timed", Err(Status::TimedOut))]);
    assert_eq!(*held.borrow(), Some(Got::Nothing));
    assert_eq!(ask(client, importer, 5), Ok(()));
    run();
    assert_eq!(log.borrow()[1], ("again", Ok(ASK as u64)));
}

#[test]
fn a_receiver_whose_sip_is_ended_does_not_come_back_from_its_wait() {
    let _alone = alone();
    let (client, service) = (user(), user());
    let (_importer, exporter) = between(client, service);
    let log = Log::default();
    receiver(service, exporter, NEVER, "waits", &log);
    run();
    end(service, Epitaph::exited(7));
    assert_eq!(service.state(), ProcessState::Stopping);
    run();
    assert_eq!(service.state(), ProcessState::Ended);
    assert!(log.borrow().is_empty(), "code of a SIP ran after its end");
    assert_eq!(service.threads.lock().count(), 0);
}

#[test]
fn an_endpoint_that_joined_a_set_is_announced_once_for_what_comes_next() {
    let _alone = alone();
    let (client, service) = (user(), user());
    let (importer, exporter) = between(client, service);
    let set = sync::create(service, Make::WaitSet).expect("a set");
    let set = claims::sync(set, service).expect("an own set");
    let buffer = MessageBuffer::leaked();
    let joined = receive_or_join(service, exporter, || Ok(set), 42, buffer);
    assert!(matches!(joined, Ok(Received::Nothing)));
    let twice = receive_or_join(service, exporter, || Ok(set), 43, buffer);
    assert!(matches!(twice, Err(Status::Busy)));
    assert_eq!(ask(client, importer, 1), Ok(()));
    assert_eq!(ask(client, importer, 2), Ok(()));
    let keys = Rc::new(RefCell::new(Vec::new()));
    let found = keys.clone();
    spawn(service, move || {
        let thread = crate::cpu::current();
        let now = crate::machine::machine().monotonic_ns();
        for deadline in [NEVER, now] {
            let mut keys = [0; 4];
            let count = sync::wait_set(set, thread, deadline, &mut keys);
            found.borrow_mut().push(count.map(|count| keys[..count].to_vec()));
        }
    });
    run();
    timers::expire();
    run();
    assert_eq!(*keys.borrow(), [Ok(vec![42]), Err(Status::TimedOut)]);
}
