//! Tests of the exchange heap on the test machine.

extern crate std;

use super::*;
use crate::lifecycle::end;
use crate::process::Epitaph;
use crate::test_machine::{alone, pauses, with_quota};

fn owner() -> ProcessRef {
    with_quota(|quota| (quota.block_kib, quota.handles) = (1 << 19, 1 << 20))
}

fn small(owner: ProcessRef) -> BlockRef {
    allocate(owner, 1, 0).expect("a block")
}

fn freed(owner: ProcessRef, block: BlockRef) -> usize {
    let before = pauses();
    take_from(owner, block, block.handle()).expect("an own block");
    free(block);
    assert_eq!(owner.block_bytes.load(Ordering::Relaxed), 0);
    pauses() - before
}

#[test]
fn a_long_chain_is_freed_in_small_steps() {
    const LENGTH: usize = 200_000;
    let _alone = alone();
    let owner = owner();
    let live = BLOCKS.live();
    let mut chain = small(owner);
    for _ in 1..LENGTH {
        let next = small(owner);
        assert_eq!(attach(owner, (next, next.handle()), (chain, chain.handle())), Ok(0));
        chain = next;
    }
    let pauses = freed(owner, chain);
    assert!(pauses >= LENGTH / STEPS, "{LENGTH} blocks were freed with {pauses} pauses");
    assert_eq!(BLOCKS.live(), live);
}

#[test]
fn many_blocks_of_one_are_counted_and_freed_in_small_steps() {
    const COUNT: usize = 30_000;
    let _alone = alone();
    let owner = owner();
    let live = BLOCKS.live();
    let parent = small(owner);
    for number in 0..COUNT as u64 {
        let child = small(owner);
        assert_eq!(attach(owner, (parent, parent.handle()), (child, child.handle())), Ok(number));
    }
    let last = detach(owner, parent, parent.handle()).expect("the last child");
    assert_eq!(attach(owner, (parent, parent.handle()), (last, last.handle())), Ok(COUNT as u64 - 1));
    let pauses = freed(owner, parent);
    assert!(pauses >= COUNT / STEPS, "{COUNT} blocks were freed with {pauses} pauses");
    assert_eq!(BLOCKS.live(), live);
}

#[test]
fn each_part_of_a_block_counts_what_it_keeps() {
    let _alone = alone();
    let owner = owner();
    let used = || owner.block_bytes.load(Ordering::Relaxed);
    let whole = allocate(owner, 1 << 20, 0).expect("a block");
    let charge = used();
    assert_eq!(charge, (1 << 20) + RECORD_BYTES);
    let rest = split(owner, whole, whole.handle(), 64).expect("two parts");
    assert_eq!(used(), 2 * charge);
    take_from(owner, rest, rest.handle()).expect("an own block");
    free(rest);
    assert_eq!(used(), charge, "64 bytes keep the whole");
    freed(owner, whole);
}

#[test]
fn the_records_of_attached_blocks_count_against_the_quota() {
    let _alone = alone();
    let owner = with_quota(|quota| (quota.block_kib, quota.handles) = (64, 100));
    let parent = small(owner);
    let mut attached = 0;
    while let Ok(child) = allocate(owner, 1, 0) {
        assert!(attach(owner, (parent, parent.handle()), (child, child.handle())).is_ok());
        attached += 1;
        assert!(attached < 64 * 1024 / (BLOCK_ALIGN + RECORD_BYTES) + 4, "{attached} records are not counted");
    }
    freed(owner, parent);
}

#[test]
fn threads_that_allocate_at_once_stay_within_the_quota_together() {
    const BLOCK: usize = 64 * 1024;
    let _alone = alone();
    let owner = with_quota(|quota| (quota.block_kib, quota.handles) = (256, 100));
    for _ in 0..500 {
        let go = std::sync::Barrier::new(2);
        let allocate_some = || {
            go.wait();
            (0..4).filter_map(|_| allocate(owner, BLOCK, 0).ok()).collect::<std::vec::Vec<_>>()
        };
        let blocks = std::thread::scope(|scope| {
            let threads = [scope.spawn(allocate_some), scope.spawn(allocate_some)];
            threads.map(|thread| thread.join().expect("no panic")).concat()
        });
        assert!(blocks.len() <= 4, "{} blocks of 64 KiB are more than 256 KiB", blocks.len());
        for block in blocks {
            take_from(owner, block, block.handle()).expect("an own block");
            free(block);
        }
    }
}

#[test]
fn a_block_that_is_made_with_bytes_has_them() {
    let _alone = alone();
    let owner = owner();
    let block = allocate_with(owner, b"what it holds", 0).expect("a block");
    let copy = memory::copy_of_block(block.address.load(Ordering::Relaxed), block.size(), block.size());
    assert_eq!(copy.as_deref(), Some(&b"what it holds"[..]));
    freed(owner, block);
}

/// Blocks that a SIP lists.
fn listed(owner: ProcessRef) -> std::vec::Vec<u32> {
    let list = owner.blocks.lock();
    let listed: std::vec::Vec<u32> = core::iter::successors(list.first(), |&index| list.next(index)).collect();
    assert_eq!(listed.len(), list.count() as usize);
    listed
}

/// Slots and room in use.
fn in_use() -> (u32, u32, usize) {
    (BLOCKS.live(), EXTENTS.live(), memory::usage().1)
}

#[test]
fn the_parts_of_a_block_are_their_owners_and_free_its_room_with_the_last() {
    let _alone = alone();
    let owner = owner();
    let before = in_use();
    let whole = allocate(owner, 4 * BLOCK_ALIGN, 5).expect("a block");
    let address = whole.address.load(Ordering::Relaxed);
    let last = split(owner, whole, whole.handle(), 3 * BLOCK_ALIGN).expect("two parts");
    let middle = split(owner, whole, whole.handle(), BLOCK_ALIGN).expect("three parts");
    let parts = [whole, middle, last];
    assert_eq!(parts.map(|part| part.address.load(Ordering::Relaxed) - address), [0, BLOCK_ALIGN, 3 * BLOCK_ALIGN]);
    assert_eq!(parts.map(|part| part.size()), [BLOCK_ALIGN, 2 * BLOCK_ALIGN, BLOCK_ALIGN]);
    assert_eq!(parts.map(|part| part.type_tag.load(Ordering::Relaxed)), [5; 3]);
    let mut list = listed(owner);
    list.sort_unstable();
    let mut indices = parts.map(|part| part.index());
    indices.sort_unstable();
    assert_eq!(list, indices);
    for offset in [0, 1, BLOCK_ALIGN, 2 * BLOCK_ALIGN] {
        assert_eq!(split(owner, last, last.handle(), offset).err(), Some(Status::BadArgument), "at {offset}");
    }
    assert_eq!((EXTENTS.live(), BLOCKS.live()), (before.1 + 1, before.0 + 3));
    for part in [middle, whole, last] {
        assert_eq!(EXTENTS.live(), before.1 + 1);
        take_from(owner, part, part.handle()).expect("an own block");
        free(part);
    }
    assert_eq!(in_use(), before);
    assert_eq!(owner.block_bytes.load(Ordering::Relaxed), 0);
}

#[test]
fn an_attached_block_is_in_no_list_and_comes_off_last_first() {
    let _alone = alone();
    let owner = owner();
    let (parent, first, second) = (small(owner), small(owner), small(owner));
    let charge = owner.block_bytes.load(Ordering::Relaxed);
    assert_eq!(attach(owner, (parent, parent.handle()), (first, first.handle())), Ok(0));
    assert_eq!(attach(owner, (parent, parent.handle()), (second, second.handle())), Ok(1));
    assert_eq!(listed(owner), [parent.index()]);
    assert_eq!(owner.block_bytes.load(Ordering::Relaxed), charge);
    let records = || parent.payer_and_records().map(|(_, records)| records);
    assert_eq!(records(), Some(3));
    assert_eq!(take_from(owner, first, first.handle()), Err(Status::BadHandle), "it is its parent's");
    assert_eq!(attach(owner, (parent, parent.handle()), (parent, parent.handle())), Err(Status::BadHandle));
    assert_eq!(listed(owner), [parent.index()], "what is not attached to itself is where it was");
    for expected in [second, first] {
        let child = detach(owner, parent, parent.handle()).expect("a child");
        assert!(core::ptr::eq(child, expected));
        assert!(listed(owner).contains(&child.index()));
    }
    assert_eq!(records(), Some(1));
    assert_eq!(detach(owner, parent, parent.handle()).err(), Some(Status::NotFound));
    assert_eq!(listed(owner).len(), 3);
    assert_eq!(owner.block_bytes.load(Ordering::Relaxed), charge);
    end(owner, Epitaph::exited(0));
}

#[test]
fn only_the_owner_with_the_right_handle_takes_a_block() {
    let _alone = alone();
    let (owner, other) = (owner(), owner());
    let block = small(owner);
    let handle = block.handle();
    assert_eq!(take_from(other, block, handle), Err(Status::BadHandle));
    assert_eq!(describe_of(other, block, handle).err(), Some(Status::BadHandle));
    assert_eq!(split(other, block, handle, BLOCK_ALIGN).err(), Some(Status::BadHandle));
    assert_eq!(pin(other, block, handle), Err(Status::BadHandle));
    take_from(owner, block, handle).expect("an own block");
    assert_eq!(take_from(owner, block, handle), Err(Status::BadHandle), "it was taken before");
    free(block);
    let next = small(owner);
    assert!(core::ptr::eq(next, block), "the slot was not used again");
    assert_eq!(take_from(owner, next, handle), Err(Status::BadHandle), "the handle is of a block that is gone");
    assert!(super::block(handle).is_err() && super::block(next.handle()).is_ok());
    freed(owner, next);
}

#[test]
fn a_pinned_block_stays_until_it_is_unpinned_or_seized() {
    let _alone = alone();
    let owner = owner();
    let before = in_use();
    let (block, other) = (small(owner), small(owner));
    let handle = block.handle();
    assert_eq!(pin(owner, block, handle), Ok(()));
    assert_eq!(pin(owner, block, handle), Err(Status::Busy));
    assert_eq!(take_from(owner, block, handle), Err(Status::Busy));
    assert_eq!(attach(owner, (other, other.handle()), (block, handle)), Err(Status::Busy));
    assert_eq!(listed(owner).len(), 2);
    unpin(owner, block);
    assert_eq!(attach(owner, (block, handle), (other, other.handle())), Ok(0));
    assert_eq!(pin(owner, block, handle), Err(Status::BadArgument), "a device is told of one block");
    assert!(detach(owner, block, handle).is_ok());
    assert_eq!(pin(owner, block, handle), Ok(()));
    let charge = owner.block_bytes.load(Ordering::Relaxed);
    seize(owner, block);
    assert_eq!(listed(owner), [other.index()]);
    assert_eq!(owner.block_bytes.load(Ordering::Relaxed), charge / 2, "nobody pays for it");
    free(block);
    freed(owner, other);
    assert_eq!(in_use(), before);
}

#[test]
fn what_is_lent_is_not_taken_apart_or_put_together() {
    let _alone = alone();
    let owner = owner();
    let (lent, other) = (allocate(owner, 2 * BLOCK_ALIGN, 0).expect("a block"), small(owner));
    let (lent_handle, other_handle) = (lent.handle(), other.handle());
    assert!(lent.push_loan(1));
    assert_eq!(split(owner, lent, lent_handle, BLOCK_ALIGN).err(), Some(Status::Lent));
    assert_eq!(attach(owner, (lent, lent_handle), (other, other_handle)), Err(Status::Lent));
    assert_eq!(attach(owner, (other, other_handle), (lent, lent_handle)), Err(Status::Lent));
    assert_eq!(detach(owner, lent, lent_handle).err(), Some(Status::Lent));
    assert_eq!(listed(owner).len(), 2);
    assert_eq!(lent.pop_loan(), Some(1));
    assert!(split(owner, lent, lent_handle, BLOCK_ALIGN).is_ok());
    end(owner, Epitaph::exited(0));
}

#[test]
fn the_end_of_a_sip_frees_its_blocks_with_their_parts_and_children() {
    let _alone = alone();
    let owner = owner();
    let before = in_use();
    let whole = allocate(owner, 1 << 16, 0).expect("a block");
    let rest = split(owner, whole, whole.handle(), 1 << 12).expect("two parts");
    let parent = small(owner);
    for child in [rest, small(owner)] {
        assert!(attach(owner, (parent, parent.handle()), (child, child.handle())).is_ok());
    }
    let in_no_list = small(owner);
    assert!(attach(owner, (whole, whole.handle()), (in_no_list, in_no_list.handle())).is_ok());
    end(owner, Epitaph::exited(0));
    assert_eq!(in_use(), before);
    assert_eq!(listed(owner), [0; 0]);
    assert_eq!(owner.block_bytes.load(Ordering::Relaxed), 0);
}
