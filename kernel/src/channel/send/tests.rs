//! Tests of the transfer from the sender, and of contract violations.

use abi::EpitaphKind;
use abi::limits::LOAN_DEPTH;

use super::*;
use crate::channel::test_contract::{
    ASK, BOUND, GIVE, Got, LEND, MAX_ASKED, PASS, RETURN, TWO, TYPE, ask, between, block, contract, get, send_with,
    user, word,
};
use crate::channel::{CHANNELS, close, create};
use crate::exheap::{BLOCKS, allocate, attach, detach};
use crate::handlers;
use crate::lifecycle::end;
use crate::process::Epitaph;
use crate::test_machine::{alone, leave_kernel, run, spawn};

fn used(process: ProcessRef) -> usize {
    process.block_bytes.load(Ordering::Relaxed)
}

fn is_owner(process: ProcessRef, block: BlockRef) -> bool {
    block.owner.get().is_some_and(|owner| core::ptr::eq(owner, process))
}

/// Number of messages queued for an end.
fn waiting(end: EndpointRef) -> usize {
    end.channel.lock().sides[end.side as usize].waiting as usize
}

#[test]
fn a_block_is_nobodys_in_a_message_and_the_receivers_after_it() {
    let _alone = alone();
    let (client, service) = (user(), user());
    let (importer, exporter) = between(client, service);
    let before = (client.handles(), service.handles());
    let block = block(client);
    let charge = used(client);
    assert_eq!(send_with(client, importer, GIVE, &[block.handle()], &[]), Ok(()));
    assert!(block.owner.get().is_none());
    assert_eq!((client.handles(), service.handles()), before);
    assert_eq!((used(client), used(service)), (charge, 0), "the sender pays until it is received");
    let Got::Message(GIVE, words) = get(service, exporter) else { panic!("no message") };
    assert_eq!(words[1], block.handle());
    assert_eq!(words[2..4], [block.address.load(Ordering::Relaxed) as u64, 64]);
    assert!(is_owner(service, block));
    assert_eq!((client.handles(), service.handles()), (before.0, before.1 + 1));
    assert_eq!((used(client), used(service)), (0, charge));
    let again = send_with(client, importer, GIVE, &[block.handle()], &[]);
    assert!(again.is_err_and(|how| how.ends_with("with a block that the sender does not own")));
    assert!(is_owner(service, block));
}

#[test]
fn attached_blocks_go_with_their_parent_and_are_charged_with_it() {
    let _alone = alone();
    let (client, service) = (user(), user());
    let (importer, exporter) = between(client, service);
    let (parent, child, grandchild) = (block(client), block(client), block(client));
    assert!(attach(client, (child, child.handle()), (grandchild, grandchild.handle())).is_ok());
    assert!(attach(client, (parent, parent.handle()), (child, child.handle())).is_ok());
    let charge = used(client);
    assert_eq!(send_with(client, importer, GIVE, &[parent.handle()], &[]), Ok(()));
    assert!(matches!(get(service, exporter), Got::Message(GIVE, _)));
    assert_eq!((used(client), used(service)), (0, charge));
    assert!(detach(service, parent, parent.handle()).is_ok_and(|found| core::ptr::eq(found, child)));
    assert!(detach(service, child, child.handle()).is_ok_and(|found| core::ptr::eq(found, grandchild)));
    assert_eq!(used(service), charge);
    assert!([parent, child, grandchild].iter().all(|block| is_owner(service, block)));
}

#[test]
fn a_message_that_its_state_does_not_allow_ends_the_sender() {
    let _alone = alone();
    let (client, service) = (user(), user());
    let (importer, exporter) = between(client, service);
    assert_eq!(ask(client, importer, 1), Ok(()));
    let handle = importer.handle();
    spawn(client, move || {
        assert_eq!(handlers::channel_send(handle, word(RETURN)), Err(Status::Closed));
        leave_kernel();
        panic!("a SIP goes on after it broke a contract");
    });
    run();
    assert_eq!(client.state(), abi::ProcessState::Ended);
    let epitaph = client.life.lock().epitaph.clone().expect("an epitaph");
    assert_eq!(epitaph.kind, EpitaphKind::ContractViolation);
    assert_eq!(epitaph.text, "sent Return in state START of contract Shapes, which does not allow it");
    assert_eq!(get(service, exporter), Got::Message(ASK, alloc::vec![1]), "what was sent before is there");
    assert_eq!(get(service, exporter), Got::Closed(alloc::vec![]));
}

#[test]
fn what_breaks_a_contract_is_named_and_changes_nothing() {
    let _alone = alone();
    let (client, service) = (user(), user());
    let (importer, exporter) = between(client, service);
    let own = block(client);
    let other_type = allocate(client, 64, TYPE + 1).expect("a block");
    let foreign = block(service);
    let charges = (used(client), used(service));
    for (result, how) in [
        (ask(client, importer, MAX_ASKED + 1), "with a value that its type does not have"),
        (send_with(service, exporter, ASK, &[], &[]), "in the wrong direction"),
        (send_with(client, importer, GIVE, &[other_type.handle()], &[]), "with a block of another type"),
        (send_with(client, importer, GIVE, &[foreign.handle()], &[]), "with a block that the sender does not own"),
        (send_with(client, importer, GIVE, &[importer.handle()], &[]), "with a block that the sender does not own"),
    ] {
        assert!(result.as_ref().is_err_and(|said| said.ends_with(how)), "{result:?} is not: {how}");
    }
    let longer = send(client, importer, word(ASK) + (1 << 16), MessageBuffer::leaked());
    assert!(matches!(longer, Err(SendError::Violation(how)) if how.ends_with("with the wrong number of arguments")));
    assert_eq!(waiting(exporter), 0);
    assert_eq!((used(client), used(service)), charges);
    assert!(is_owner(client, own) && is_owner(client, other_type) && is_owner(service, foreign));
    assert_eq!(ask(client, importer, MAX_ASKED), Ok(()), "the state is what it was");
    assert_eq!(ask(service, importer, 1), Err(Status::BadHandle.text().into()), "the end is another's");
}

#[test]
fn a_queue_holds_its_bound_in_order_and_no_more() {
    let _alone = alone();
    let (client, service) = (user(), user());
    let (importer, exporter) = between(client, service);
    // Starting at each position of the ring.
    for round in 0..2 * BOUND as u64 {
        for number in 0..BOUND as u64 {
            assert_eq!(ask(client, importer, (round + number) % MAX_ASKED), Ok(()));
        }
        assert_eq!(ask(client, importer, 0), Err("sent Ask into a full queue".into()));
        for number in 0..BOUND as u64 {
            assert_eq!(get(service, exporter), Got::Message(ASK, alloc::vec![(round + number) % MAX_ASKED]));
        }
        assert_eq!(get(service, exporter), Got::Nothing);
        // Advances the start of the ring by one.
        assert_eq!(ask(client, importer, 0), Ok(()));
        assert_eq!(get(service, exporter), Got::Message(ASK, alloc::vec![0]));
    }
}

#[test]
fn all_blocks_of_a_message_are_taken_or_none() {
    let _alone = alone();
    let (client, service) = (user(), user());
    let (importer, exporter) = between(client, service);
    let (lent, bad) = (block(client), allocate(client, 64, TYPE + 1).expect("a block"));
    let charge = used(client);
    assert!(send_with(client, importer, TWO, &[lent.handle(), bad.handle()], &[]).is_err());
    assert!(is_owner(client, lent) && !lent.is_lent() && is_owner(client, bad));
    assert_eq!(importer.channel.lock().sides[0].loans_out, 0);
    assert!(send_with(client, importer, TWO, &[lent.handle(), lent.handle()], &[]).is_err(), "one block is two");
    assert!(is_owner(client, lent) && !lent.is_lent());
    assert_eq!((used(client), waiting(exporter)), (charge, 0));
    let good = block(client);
    assert_eq!(send_with(client, importer, TWO, &[lent.handle(), good.handle()], &[]), Ok(()));
    assert_eq!(importer.channel.lock().sides[0].loans_out, 1);
}

#[test]
fn a_lent_block_is_lent_on_so_often_and_given_away_never() {
    let _alone = alone();
    let users: [ProcessRef; LOAN_DEPTH + 2] = core::array::from_fn(|_| user());
    let lent = block(users[0]);
    for pair in users.windows(2).take(LOAN_DEPTH) {
        let (importer, exporter) = between(pair[0], pair[1]);
        assert_eq!(send_with(pair[0], importer, LEND, &[lent.handle()], &[]), Ok(()));
        assert!(matches!(get(pair[1], exporter), Got::Message(LEND, _)));
    }
    let holder = users[LOAN_DEPTH];
    let (importer, _exporter) = between(holder, users[LOAN_DEPTH + 1]);
    let lent_on = send_with(holder, importer, LEND, &[lent.handle()], &[]);
    assert!(lent_on.is_err_and(|how| how.ends_with("with a block that is lent on too often")));
    let given = send_with(holder, importer, GIVE, &[lent.handle()], &[]);
    assert!(given.is_err_and(|how| how.ends_with("with a lent block as if it were its own")));
    assert!(is_owner(holder, lent));
}

#[test]
fn an_endpoint_moves_with_its_queue_and_state() {
    let _alone = alone();
    let (client, service, third) = (user(), user(), user());
    let (importer, exporter) = between(client, service);
    let (moved, peer) = between(client, third);
    assert_eq!(ask(client, moved, 4), Ok(()));
    let handles = (client.handles(), service.handles());
    let given = block(client);
    assert_eq!(send_with(client, importer, PASS, &[given.handle()], &[moved.handle()]), Ok(()));
    assert_eq!(client.handles(), handles.0 - 1);
    assert_eq!(ask(client, moved, 5), Err(Status::BadHandle.text().into()), "what was sent is not the sender's");
    assert!(moved.channel.lock().sides[0].place == Place::InMessage(exporter.handle()));
    let Got::Message(PASS, words) = get(service, exporter) else { panic!("no message") };
    assert_eq!(words[4], moved.handle());
    assert_eq!(service.handles(), handles.1 + 2);
    assert_eq!(ask(service, moved, 6), Ok(()));
    for asked in [4, 6] {
        assert_eq!(get(third, peer), Got::Message(ASK, alloc::vec![asked]));
    }
}

#[test]
fn an_endpoint_that_may_not_move_stays_and_so_does_the_block_beside_it() {
    let _alone = alone();
    let (client, service, third) = (user(), user(), user());
    let (importer, exporter) = between(client, service);
    let (elsewhere, _) = between(client, third);
    let (lending, borrowing) = between(client, third);
    assert_eq!(send_with(client, lending, LEND, &[block(client).handle()], &[]), Ok(()));
    let (_far, exporting) = create(client, contract()).expect("a channel");
    let (of_others, _) = between(third, service);
    let given = block(client);
    for (endpoint, how) in [
        (importer, "with an endpoint of the very channel it goes through"),
        (exporting, "with an endpoint of another contract or side"),
        (of_others, "with an endpoint that the sender does not own"),
        (lending, "with an endpoint in another state"),
    ] {
        let result = send_with(client, importer, PASS, &[given.handle()], &[endpoint.handle()]);
        assert!(result.as_ref().is_err_and(|said| said.ends_with(how)), "{result:?} is not: {how}");
    }
    // The endpoint is valid and the block is not.
    let count = client.handles();
    assert!(send_with(client, importer, PASS, &[0], &[elsewhere.handle()]).is_err());
    assert_eq!(client.handles(), count);
    assert_eq!(ask(client, elsewhere, 1), Ok(()));
    assert!(is_owner(client, given));
    assert_eq!((waiting(exporter), waiting(borrowing)), (0, 1));
}

#[test]
fn what_is_sent_to_a_closed_end_is_freed() {
    let _alone = alone();
    let (client, service, third) = (user(), user(), user());
    let (importer, exporter) = between(client, service);
    let (moved, peer) = between(client, third);
    assert!(close(service, exporter).is_ok());
    let live = BLOCKS.live();
    let (parent, child) = (block(client), block(client));
    assert!(attach(client, (parent, parent.handle()), (child, child.handle())).is_ok());
    assert_eq!(send_with(client, importer, PASS, &[parent.handle()], &[moved.handle()]), Ok(()));
    assert_eq!(BLOCKS.live(), live);
    assert_eq!(used(client), 0);
    assert_eq!(get(third, peer), Got::Closed(alloc::vec![]));
}

#[test]
fn the_end_of_a_receiver_frees_what_waits_for_it() {
    let _alone = alone();
    let (client, service) = (user(), user());
    let live = (BLOCKS.live(), CHANNELS.live());
    let (importer, _exporter) = between(client, service);
    let peers: Vec<EndpointRef> = (0..BOUND)
        .map(|_| {
            let (moved, peer) = create(client, contract()).expect("a channel");
            let (parent, child) = (block(client), block(client));
            assert!(attach(client, (parent, parent.handle()), (child, child.handle())).is_ok());
            assert_eq!(send_with(client, importer, PASS, &[parent.handle()], &[moved.handle()]), Ok(()));
            peer
        })
        .collect();
    assert_eq!(BLOCKS.live(), live.0 + 2 * BOUND as u32);
    end(service, Epitaph::exited(0));
    assert_eq!(BLOCKS.live(), live.0);
    assert_eq!(used(client), 0);
    for end in peers.into_iter().chain([importer]) {
        assert_eq!(get(client, end), Got::Closed(alloc::vec![]));
        assert!(close(client, end).is_ok());
    }
    assert_eq!((CHANNELS.live(), client.handles(), client.paid_channels()), (live.1, 0, 0));
}
