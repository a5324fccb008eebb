//! Acts that exhaust a quota. Each must get an error, survive, and regain everything afterwards.

use alloc::vec::Vec;

use conformance_contract::errand;
use sip::exheap::{ExBlock, ExBox, ExVec};
use sip::sync::Event;
use sip::{Deadline, Status, process};

use crate::Stage;

/// Takes until refused; returns everything taken.
fn take_all<T, E>(mut take: impl FnMut() -> Result<T, E>, most: usize) -> (Vec<T>, E) {
    let mut taken = Vec::new();
    loop {
        match take() {
            Ok(one) => taken.push(one),
            Err(why) => return (taken, why),
        }
        assert!(taken.len() <= most, "{} were given, the quota is {most}", taken.len());
    }
}

/// Paged memory, through the process's own heap.
pub(crate) fn memory(_: Stage) -> i32 {
    let most = sip::memory::usage().allowed_bytes;
    for _ in 0..3 {
        let mut taken: Vec<Vec<u8>> = Vec::new();
        let mut sum = 0;
        loop {
            let mut piece: Vec<u8> = Vec::new();
            if piece.try_reserve_exact(1 << 20).is_err() {
                break;
            }
            piece.resize(1 << 20, 1);
            sum += 1 << 20;
            taken.push(piece);
            assert!(sum <= most, "more memory was given than the quota allows");
        }
        assert!(sum > most / 2, "{sum} of {most} bytes were given");
    }
    0
}

/// A heap that cannot grow ends the process with an epitaph, not the system.
pub(crate) fn heap(_: Stage) -> i32 {
    let mut all: Vec<Vec<u8>> = Vec::new();
    loop {
        all.push(alloc::vec![1; 1 << 20]);
    }
}

/// Exchange-heap blocks.
pub(crate) fn blocks(_: Stage) -> i32 {
    for _ in 0..3 {
        let (large, why) = take_all(|| ExVec::<u8>::new(1 << 20), 32);
        assert_eq!(why, Status::QuotaExceeded);
        assert_eq!(large.len(), 32, "of 32 MiB");
        drop(large);
        assert_eq!(ExVec::<u8>::new((32 << 20) + 1).err(), Some(Status::QuotaExceeded));
        drop(ExVec::<u8>::new(32 << 20).expect("the whole quota at once"));
    }
    0
}

/// A block attached to another one still counts.
pub(crate) fn attached_blocks(_: Stage) -> i32 {
    let mut parent = ExBox::new([0u64; 8]).expect("a block");
    let mut attached = 0;
    let why = loop {
        match ExVec::<u8>::new(1 << 20) {
            Ok(child) => {
                parent.attach(child).expect("a block is attached");
                attached += 1;
            }
            Err(why) => break why,
        }
        assert!(attached <= 32, "attached blocks are not charged to the quota of 32 MiB");
    };
    assert_eq!(why, Status::QuotaExceeded);
    let child: Option<ExBlock> = parent.detach().expect("a block is detached");
    drop(child);
    drop(ExVec::<u8>::new(1 << 20).expect("the room of the block that was freed"));
    0
}

/// Threads: as many as the quota allows, all alive simultaneously; one more is refused.
pub(crate) fn threads(_: Stage) -> i32 {
    let gate = alloc::sync::Arc::new(Event::manual().expect("an event"));
    let most = 20_100;
    let (threads, why) = take_all(
        || {
            let gate = alloc::sync::Arc::clone(&gate);
            sip::thread::spawn(move || gate.wait())
        },
        most,
    );
    assert_eq!(why, Status::QuotaExceeded);
    assert_eq!(threads.len(), most - 1, "with the first thread that is the quota");
    gate.set();
    for thread in threads {
        thread.join().expect("each thread ends");
    }
    sip::thread::spawn(|| ()).expect("a thread again").join().expect("it ends");
    0
}

/// Handles of objects that have no quota of their own.
pub(crate) fn handles(_: Stage) -> i32 {
    for _ in 0..2 {
        let (events, why) = take_all(Event::auto, 30_000);
        assert_eq!(why, Status::QuotaExceeded);
        assert!(events.len() > 29_000, "only {} handles", events.len());
        drop(events);
        drop(Event::auto().expect("a handle again"));
    }
    0
}

/// Channels.
pub(crate) fn channels(_: Stage) -> i32 {
    for _ in 0..2 {
        let (channels, why) = take_all(errand::new_channel, 2000);
        assert_eq!(why, Status::QuotaExceeded);
        assert_eq!(channels.len(), 2000, "channels");
    }
    0
}

/// Children whose handles were closed count while they run: the quota cannot be evaded through itself.
fn released_children() {
    let mut given_up = 0;
    while let Ok(child) = process::create("conformance-citizen") {
        drop(child.parameter(0, "nap").and_then(process::Child::start).expect("the child starts"));
        given_up += 1;
        assert!(given_up <= 64, "{given_up} children run, the quota is 64");
    }
}

/// Children.
pub(crate) fn children(_: Stage) -> i32 {
    let create = || process::create("conformance-citizen");
    let (children, why) = take_all(create, 64);
    assert_eq!(why.status, Status::QuotaExceeded);
    assert_eq!(children.len(), 64, "children");
    drop(children);
    released_children();
    // They are gone once their handles are closed.
    let deadline = Deadline::after_ms(5000);
    while create().is_err() {
        assert!(!deadline.has_passed(), "no child can be created again");
        sip::thread::yield_now();
    }
    0
}
