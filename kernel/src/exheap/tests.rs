//! Tests of the exchange heap on the test machine.

extern crate std;

use super::*;
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
