//! Tests of blocks that cross between domains, on the test machine.

extern crate std;

use alloc::vec;
use alloc::vec::Vec;
use core::sync::atomic::Ordering;
use std::collections::BTreeSet;

use abi::limits::PAGE_BYTES;
use abi::{ProcessState, Status};

use super::*;
use crate::channel::EndpointRef;
use crate::channel::test_contract::{GIVE, Got, LEND, RETURN, TWO, TYPE, between, get, send_with, user};
use crate::exheap::{allocate, attach, detach, split, take_from};
use crate::lifecycle;
use crate::process::{Epitaph, ProcessRef};
use crate::space::SPACES;
use crate::test_machine::{alone, domains, put_apart};

const LARGE: usize = 3 * PAGE_BYTES;

/// A SIP in a domain of its own, and the domain's number.
fn apart() -> (ProcessRef, u32) {
    let process = user();
    let (_, domain) = put_apart(process);
    (process, domain)
}

fn fill(block: BlockRef, with: u8) {
    memory::write_block(block.address.load(Ordering::Relaxed), block.size(), &vec![with; block.size()]);
}

fn contents(block: BlockRef) -> Vec<u8> {
    memory::copy_of_block(block.address.load(Ordering::Relaxed), block.size(), block.size()).expect("memory")
}

fn reached_from(block: BlockRef) -> Vec<u32> {
    domains::reached_from(block.address.load(Ordering::Relaxed)).into_iter().collect()
}

fn end(process: ProcessRef) {
    lifecycle::end(process, Epitaph::exited(0));
}

/// Pages and bytes in use, domains, spaces and mapped pages.
fn counts() -> [usize; 5] {
    let (pages, exchange, _) = memory::usage();
    [pages, exchange, domains::count(), SPACES.live() as usize, domains::mapped_pages()]
}

/// Sends a block over a channel and receives it.
fn pass(from: (ProcessRef, EndpointRef), to: (ProcessRef, EndpointRef), block: BlockRef) {
    assert_eq!(send_with(from.0, from.1, GIVE, &[block.handle()], &[]), Ok(()));
    let address = |words: &[u64]| words[2] as usize;
    match get(to.0, to.1) {
        Got::Message(GIVE, words) => assert_eq!(address(&words), block.address.load(Ordering::Relaxed)),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_small_block_is_copied_and_a_large_one_is_remapped() {
    let _alone = alone();
    let before = counts();
    let ((sender, one), (receiver, other)) = (apart(), apart());
    let (importer, exporter) = between(sender, receiver);
    for (bytes, stays) in [(1, false), (64, false), (2048, false), (2049, true), (LARGE, true)] {
        let block = allocate(sender, bytes, TYPE).expect("a block");
        fill(block, 7);
        let address = block.address.load(Ordering::Relaxed);
        assert_eq!(reached_from(block), [one]);
        pass((sender, importer), (receiver, exporter), block);
        assert_eq!(reached_from(block), [other], "{bytes} bytes");
        assert_eq!(block.address.load(Ordering::Relaxed) == address, stays, "{bytes} bytes");
        assert_eq!(contents(block), vec![7; bytes]);
    }
    [sender, receiver].into_iter().for_each(end);
    assert_eq!(counts(), before);
}

#[test]
fn blocks_cross_to_and_from_the_kernels_own_space() {
    let _alone = alone();
    let before = counts();
    let ((inside, domain), outside) = (apart(), user());
    let (importer, exporter) = between(inside, outside);
    let (back, there) = between(outside, inside);
    for bytes in [64, LARGE] {
        let block = allocate(inside, bytes, TYPE).expect("a block");
        fill(block, 9);
        pass((inside, importer), (outside, exporter), block);
        assert!(reached_from(block).is_empty());
        pass((outside, back), (inside, there), block);
        assert_eq!(reached_from(block), [domain]);
        assert_eq!(contents(block), vec![9; bytes]);
    }
    [inside, outside].into_iter().for_each(end);
    assert_eq!(counts(), before);
}

#[test]
fn a_message_within_a_domain_keeps_its_address() {
    let _alone = alone();
    let (one, other) = (user(), user());
    let (space, domain) = put_apart(one);
    assert!(space.join());
    other.space.set(Some(space));
    let (importer, exporter) = between(one, other);
    let block = allocate(one, 64, TYPE).expect("a block");
    let address = block.address.load(Ordering::Relaxed);
    pass((one, importer), (other, exporter), block);
    assert_eq!(block.address.load(Ordering::Relaxed), address);
    end(one);
    assert_eq!(domains::reached_from(address), BTreeSet::from([domain]));
    end(other);
}

#[test]
fn parts_of_a_split_block_cross_one_by_one() {
    let _alone = alone();
    let before = counts();
    let ((sender, one), (receiver, other)) = (apart(), apart());
    let (importer, exporter) = between(sender, receiver);
    let block = allocate(sender, LARGE, TYPE).expect("a block");
    fill(block, 1);
    let rest = split(sender, block, block.handle(), PAGE_BYTES).expect("a part");
    fill(rest, 2);
    pass((sender, importer), (receiver, exporter), block);
    assert_eq!((reached_from(block), reached_from(rest)), (vec![other], vec![one]));
    // Alone in its extent by now, but not all of it: the other part is not the receiver's to see.
    pass((sender, importer), (receiver, exporter), rest);
    assert_eq!((contents(block), contents(rest)), (vec![1; PAGE_BYTES], vec![2; LARGE - PAGE_BYTES]));
    [sender, receiver].into_iter().for_each(end);
    assert_eq!(counts(), before);
}

#[test]
fn attached_blocks_cross_with_theirs() {
    let _alone = alone();
    let before = counts();
    let ((sender, _), (receiver, other)) = (apart(), apart());
    let (importer, exporter) = between(sender, receiver);
    let [root, middle, leaf] = [64, LARGE, 128].map(|bytes| allocate(sender, bytes, TYPE).expect("a block"));
    let and_handle = |block: BlockRef| (block, block.handle());
    for (block, with) in [(root, 1), (middle, 2), (leaf, 3)] {
        fill(block, with);
    }
    assert!(attach(sender, and_handle(middle), and_handle(leaf)).is_ok());
    assert!(attach(sender, and_handle(root), and_handle(middle)).is_ok());
    pass((sender, importer), (receiver, exporter), root);
    let inner = detach(receiver, root, root.handle()).expect("the attached block");
    let innermost = detach(receiver, inner, inner.handle()).expect("the attached block");
    for (block, with) in [(root, 1), (inner, 2), (innermost, 3)] {
        assert_eq!(reached_from(block), [other]);
        assert_eq!(contents(block), vec![with; block.size()]);
    }
    [sender, receiver].into_iter().for_each(end);
    assert_eq!(counts(), before);
}

#[test]
fn a_loan_comes_home_with_what_its_dead_borrower_wrote() {
    let _alone = alone();
    let before = counts();
    for bytes in [64, LARGE] {
        let ((lender, own), (borrower, _)) = (apart(), apart());
        let (importer, exporter) = between(lender, borrower);
        let block = allocate(lender, bytes, TYPE).expect("a block");
        assert_eq!(send_with(lender, importer, LEND, &[block.handle()], &[]), Ok(()));
        assert!(matches!(get(borrower, exporter), Got::Message(LEND, _)));
        fill(block, 5);
        end(borrower);
        assert_eq!(get(lender, importer), Got::Closed(vec![block.handle()]));
        assert_eq!(reached_from(block), [own]);
        assert_eq!(contents(block), vec![5; bytes]);
        end(lender);
    }
    assert_eq!(counts(), before);
}

#[test]
fn a_returned_loan_is_in_its_lenders_domain() {
    let _alone = alone();
    let ((lender, own), (borrower, _)) = (apart(), apart());
    let (importer, exporter) = between(lender, borrower);
    let block = allocate(lender, 64, TYPE).expect("a block");
    assert_eq!(send_with(lender, importer, LEND, &[block.handle()], &[]), Ok(()));
    assert!(matches!(get(borrower, exporter), Got::Message(LEND, _)));
    assert_eq!(send_with(borrower, exporter, RETURN, &[block.handle()], &[]), Ok(()));
    assert!(matches!(get(lender, importer), Got::Message(RETURN, _)));
    assert_eq!(reached_from(block), [own]);
    [lender, borrower].into_iter().for_each(end);
}

#[test]
fn a_message_outlives_its_sender_and_the_senders_domain() {
    let _alone = alone();
    let before = counts();
    let ((sender, _), (receiver, other)) = (apart(), apart());
    let (importer, exporter) = between(sender, receiver);
    let blocks = [64, LARGE].map(|bytes| allocate(sender, bytes, TYPE).expect("a block"));
    for block in blocks {
        fill(block, 4);
        assert_eq!(send_with(sender, importer, GIVE, &[block.handle()], &[]), Ok(()));
    }
    end(sender);
    assert_eq!(domains::count(), before[2] + 1);
    for block in blocks {
        assert!(matches!(get(receiver, exporter), Got::Message(GIVE, _)));
        assert_eq!(reached_from(block), [other]);
        assert_eq!(contents(block), vec![4; block.size()]);
    }
    end(receiver);
    assert_eq!(counts(), before);
}

#[test]
fn a_message_that_nobody_receives_frees_what_is_mapped_at_its_sender() {
    let _alone = alone();
    let before = counts();
    let ((sender, _), (receiver, _)) = (apart(), apart());
    let (importer, _) = between(sender, receiver);
    for bytes in [64, LARGE] {
        let block = allocate(sender, bytes, TYPE).expect("a block");
        assert_eq!(send_with(sender, importer, GIVE, &[block.handle()], &[]), Ok(()));
    }
    end(receiver);
    end(sender);
    assert_eq!(counts(), before);
}

#[test]
fn a_receiver_without_memory_for_a_message_is_not_told_and_loses_nothing_of_others() {
    let _alone = alone();
    let before = counts();
    for bytes in [64, LARGE] {
        let ((sender, own), (receiver, other)) = (apart(), apart());
        let (importer, exporter) = between(sender, receiver);
        let [lent, kept] = [(); 2].map(|()| allocate(sender, bytes, TYPE).expect("a block"));
        fill(lent, 6);
        assert_eq!(send_with(sender, importer, TWO, &[lent.handle(), kept.handle()], &[]), Ok(()));
        domains::HAS_FRAMES.store(false, Ordering::Relaxed);
        assert!(!receiver.has_no_room());
        get(receiver, exporter);
        assert!(receiver.has_no_room());
        domains::HAS_FRAMES.store(true, Ordering::Relaxed);
        assert!([lent, kept].iter().all(|&block| !reached_from(block).contains(&other)));
        // As the handler ends it.
        end(receiver);
        assert_eq!(get(sender, importer), Got::Closed(vec![lent.handle()]));
        assert_eq!(reached_from(lent), [own]);
        assert_eq!(contents(lent), vec![6; bytes]);
        end(sender);
    }
    assert_eq!(counts(), before);
}

#[test]
fn what_a_handle_does_not_own_stays_where_it_is() {
    let _alone = alone();
    let ((owner, own), (other, _)) = (apart(), apart());
    let block = allocate(owner, LARGE, TYPE).expect("a block");
    assert_eq!(take_from(other, block, block.handle()), Err(Status::BadHandle));
    assert_eq!(reached_from(block), [own]);
    assert_eq!(owner.state(), ProcessState::Created);
    [owner, other].into_iter().for_each(end);
}
