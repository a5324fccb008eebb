//! The file cache without a system.
//!
//! The modules under test are compiled into this test, with a stub of the file system.

#[path = "../src/blocks.rs"]
#[allow(dead_code)]
mod blocks;
#[path = "../src/cache.rs"]
#[allow(dead_code)]
mod cache;
#[path = "../src/coded.rs"]
#[allow(dead_code)]
mod coded;
#[path = "../../../sip/tests/double/mod.rs"]
mod double;

mod store {
    /// A channel stub, identified by its number.
    pub(crate) type FileChannel = u32;

    pub(crate) struct Opened {
        pub(crate) channel: FileChannel,
        pub(crate) attributes: contracts::file::FileAttributes,
    }
}

extern crate alloc;

use std::rc::Rc;
use std::sync::{Mutex, PoisonError};

use cache::{Cache, Entry};
use contracts::file::FileAttributes;
use sip::exheap::ExVec;

/// Validity of an entry.
const SECOND_NS: u64 = 1_000_000_000;
/// The current time, and a modification time long before.
const NOW_S: i64 = 1_700_000_000;
const SETTLED_S: i64 = NOW_S - 100;

/// Runs `body` as a thread of a program, without the other tests: all share the kernel's double, whose blocks are counted.
fn alone<T>(body: impl FnOnce() -> T) -> T {
    static RUNNING: Mutex<()> = Mutex::new(());
    let _guard = RUNNING.lock().unwrap_or_else(PoisonError::into_inner);
    double::run(body)
}

fn attributes(node: u64, size_bytes: u64, modified_s: i64) -> FileAttributes {
    FileAttributes { size_bytes, allocated_bytes: size_bytes, node, modified_s, permissions: 0o644, links: 1 }
}

fn entry(path: &str, node: u64, now_ns: u64) -> Rc<Entry> {
    let attributes = attributes(node, 100, SETTLED_S);
    Rc::new(Entry::new(path, store::Opened { channel: 0, attributes }, now_ns, NOW_S))
}

#[test]
fn files_are_found_for_a_second() {
    alone(|| {
        let cache = Cache::new();
        assert!(cache.find("/a", 0).is_none());
        cache.insert(&entry("/a", 1, 0));
        assert_eq!(cache.find("/a", SECOND_NS).map(|entry| entry.attributes.node), Some(1));
        assert!(cache.find("/b", 0).is_none());
        assert!(cache.find("/a", SECOND_NS + 1).is_none());
        cache.sweep(SECOND_NS);
        assert_eq!(cache.count(), 1);
        cache.sweep(SECOND_NS + 1);
        assert_eq!(cache.count(), 0, "expired entries are closed");
        assert_eq!(cache.looked_up(), (1, 3));
    });
}

#[test]
fn a_reopened_file_replaces_the_old_entry() {
    alone(|| {
        let cache = Cache::new();
        let old = entry("/a", 1, 0);
        cache.insert(&old);
        old.give_channel(7);
        cache.insert(&entry("/a", 2, 5));
        assert_eq!(cache.count(), 1);
        assert_eq!(cache.find("/a", 5).map(|entry| entry.attributes.node), Some(2));
        assert_eq!(old.take_channel(), None, "nothing of the old one is kept open");
        old.give_channel(8);
        assert_eq!(old.take_channel(), None);
        // A stale entry is not found.
        cache.forget(&old);
        assert!(cache.find("/a", 5).is_none());
    });
}

/// The number of open files is bounded, and recently used ones stay.
#[test]
fn the_number_of_open_files_is_bounded() {
    alone(|| {
        let cache = Cache::new();
        cache.insert(&entry("/favourite", 1, 0));
        for number in 0..20_000 {
            cache.insert(&entry(&format!("/{number}"), 2, 0));
            assert!(cache.find("/favourite", 0).is_some(), "after {number} others");
        }
        assert!(cache.count() <= 2048, "{} files are open", cache.count());
    });
}

#[test]
fn cached_contents_are_bounded_and_evicted_with_their_file() {
    alone(|| {
        let blocks = double::blocks_alive();
        let cache = Cache::new();
        let mut kept = 0;
        for number in 0..30 {
            let entry = entry(&format!("/{number}"), number, 0);
            cache.insert(&entry);
            for _ in 0..80 {
                kept += usize::from(cache.give_warm(&entry, ExVec::new(64 << 10).expect("a block")).is_none());
            }
        }
        assert_eq!(kept, 256, "64 KiB each within 16 MiB");
        assert_eq!(cache.warm_bytes(), 16 << 20);
        assert_eq!(double::blocks_alive() - blocks, 256);
        let first = cache.find("/0", 0).expect("it is not old");
        drop(cache.take_warm(&first).expect("a block is kept"));
        assert_eq!(cache.warm_bytes(), (16 << 20) - (64 << 10));
        // Unused contents expire, and blocks returned after that are not cached.
        cache.sweep(10 * SECOND_NS);
        assert_eq!(cache.warm_bytes(), (16 << 20) - (64 << 10));
        cache.sweep(10 * SECOND_NS + 1);
        assert_eq!((cache.warm_bytes(), double::blocks_alive()), (0, blocks));
        let late = ExVec::new(64 << 10).expect("a block");
        assert!(cache.give_warm(&first, late).is_some());
        assert_eq!(double::blocks_alive(), blocks);
    });
}

/// A reopened file keeps its cached contents if it is unchanged.
#[test]
fn cached_contents_are_those_of_the_current_file() {
    alone(|| {
        let cache = Cache::new();
        let keep = |entry: &Rc<Entry>| {
            assert!(cache.give_warm(entry, ExVec::new(64 << 10).expect("a block")).is_none());
        };
        let first = entry("/a", 1, 0);
        cache.insert(&first);
        keep(&first);
        let again = entry("/a", 1, 2 * SECOND_NS);
        cache.insert(&again);
        assert!(cache.take_warm(&again).is_some());
        keep(&again);
        let other = entry("/a", 2, 4 * SECOND_NS);
        cache.insert(&other);
        assert!(cache.take_warm(&other).is_none() && cache.warm_bytes() == 0);
    });
}

/// Reservations of long files share the cache's space with cached contents.
#[test]
fn reservations_share_the_space_with_cached_contents() {
    alone(|| {
        let cache = Cache::new();
        cache.set_max_bytes(3 << 20);
        let entry = entry("/long", 1, 0);
        cache.insert(&entry);
        let first = cache.reserve(900_000).expect("there is room");
        assert_eq!(cache.warm_bytes(), 1 << 20, "as many as its block has");
        let second = cache.reserve(1 << 20).expect("there is room");
        assert!(cache.reserve((1 << 20) + 1).is_none(), "no block is as long");
        drop(second);
        assert!(cache.give_warm(&entry, ExVec::new(1 << 20).expect("a block")).is_none());
        let third = cache.reserve(1 << 20).expect("the second one's is free again");
        assert!(cache.reserve(1).is_none());
        drop((first, third));
        assert_eq!(cache.warm_bytes(), 1 << 20);
    });
}

#[test]
fn etags_identify_files_and_are_weak_while_unsettled() {
    let tag = |node, size, modified| {
        let opened = store::Opened { channel: 0, attributes: attributes(node, size, modified) };
        Entry::new("/a.html", opened, 0, NOW_S).validators().etag.to_vec()
    };
    let settled = tag(1, 100, SETTLED_S);
    assert!(settled.starts_with(b"\"") && settled.ends_with(b"\""));
    for other in [tag(2, 100, SETTLED_S), tag(1, 101, SETTLED_S), tag(1, 100, SETTLED_S + 1)] {
        assert_ne!(settled, other);
    }
    // There may be another change within the same second.
    assert!(tag(1, 100, NOW_S).starts_with(b"W/\"") && tag(1, 100, NOW_S - 2).starts_with(b"W/\""));
    // The clock may have been set back.
    assert!(tag(1, 100, NOW_S + 1).starts_with(b"W/\""));
}
