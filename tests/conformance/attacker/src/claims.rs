//! Acts with false claims: addresses, lengths, indices, roles.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use sip::abi::limits::{self, WINDOW_BYTES};
use sip::abi::type_tag;
use sip::{Deadline, Status, thread};

use crate::Act;
use crate::messages::{ANSWER, CALL, receive, send};
use crate::objects::{block, channel, child, end_thread, sleep_thread, thread_at};
use crate::raw::{abi, byte_at, entry_address, must, put_text, refused, set_byte, set_words, slot, word};

pub(crate) const ACTS: &[(&str, Act)] = &[
    ("thread-entries", |_| thread_entries()),
    ("double-join", |_| double_join()),
    ("memory-claims", |_| memory()),
    ("mutex-claims", |_| mutex()),
    ("mutex-of-dead-thread", |_| mutex_of_dead_thread()),
    ("wait-set-strangers", |_| wait_set_strangers()),
    ("wait-set-several-keys", |_| wait_set_several_keys()),
    ("wait-set-closed-full", |_| wait_set_closed_full()),
    ("wait-set-alerts", |_| wait_set_alerts()),
    ("wait-set-many-waiters", |_| wait_set_many_waiters()),
    ("receive-or-add", |_| receive_or_add()),
    ("lengths", |_| lengths()),
    ("child-claims", |_| children()),
];

fn thread_entries() -> i32 {
    let pages = must("memory_allocate", &[1]);
    must("heap_allocate", &[64, type_tag("byte")]);
    let block = word(0);
    static CONSTANT: [u8; 4] = [0xc3; 4];
    let constant = CONSTANT.as_ptr().expose_provenance() as u64;
    for entry in [0, 1, u64::MAX, slot() as u64 + 8, pages, block, constant, entry_address(0) as u64, 1 << 47] {
        refused("thread_create", &[entry, 0], &[Status::BadArgument]);
    }
    refused("thread_join", &[must("thread_self", &[]), u64::MAX], &[Status::Deadlock, Status::BadHandle]);
    0
}

/// Of two threads that join a third, each gets its exit or an error that the handle is closed; a thread that reuses
/// its slot meanwhile is not affected.
fn double_join() -> i32 {
    for round in 0..300u64 {
        let target = thread_at(if round % 2 == 0 { end_thread } else { yielding_thread }).expect("a thread");
        let joins = Arc::new(AtomicU64::new(0));
        let join = {
            let joins = Arc::clone(&joins);
            move || match abi("thread_join", &[target, Deadline::after_ms(1000).as_ns()]) {
                Ok(_) => drop(joins.fetch_add(1, Ordering::SeqCst)),
                Err(status) => assert_eq!(status, Status::BadHandle, "a second join"),
            }
        };
        let (first, second) = (join.clone(), join);
        let first = thread::spawn(first).expect("a thread");
        let second = thread::spawn(second).expect("a thread");
        for _ in 0..3 {
            thread::spawn(|| ()).expect("a thread").join().expect("it ends");
        }
        first.join().expect("it ends");
        second.join().expect("it ends");
        assert_eq!(joins.load(Ordering::SeqCst), 1, "a thread is joined once");
    }
    0
}

extern "C" fn yielding_thread(_: u64) -> ! {
    for _ in 0..5 {
        thread::yield_now();
    }
    end_thread(0)
}

fn memory() -> i32 {
    for pages in [0, u64::MAX, u64::MAX / 4096, 1 << 52, 1 << 32] {
        refused("memory_allocate", &[pages], &[Status::BadArgument, Status::QuotaExceeded]);
    }
    let address = must("memory_allocate", &[4]);
    must("heap_allocate", &[8192, type_tag("byte")]);
    let block = word(0);
    let own_stack = slot() as u64;
    for claim in [0, 1, address + 4096, address + 1, address - 4096, block, own_stack, u64::MAX] {
        refused("memory_free", &[claim], &[Status::BadArgument]);
    }
    assert_eq!(must("memory_free", &[address]), 4, "pages freed");
    refused("memory_free", &[address], &[Status::BadArgument]);
    growth();
    growing_threads();
    windows();
    windows_of_threads();
    0
}

/// Pages of an allocation that has room behind it.
const LONG_PAGES: u64 = 256;

/// An allocation grows by zeroed pages right behind it, and by nothing else; claims are refused, and change nothing.
fn growth() {
    let before = must("memory_usage", &[]);
    let address = must("memory_allocate", &[LONG_PAGES]);
    for claim in [0, 1, address + 4096, address + 1, address - 4096, slot() as u64, u64::MAX] {
        refused("memory_grow", &[claim, 1], &[Status::BadArgument]);
    }
    refused("memory_grow", &[address, 0], &[Status::BadArgument]);
    for pages in [1 << 32, 1 << 52, u64::MAX / 4096, u64::MAX] {
        refused("memory_grow", &[address, pages], &[Status::QuotaExceeded]);
    }
    assert_eq!(must("memory_usage", &[]), before + LONG_PAGES, "what was refused is charged");
    let mut end = address + LONG_PAGES * 4096;
    let mut added = 0;
    for _ in 0..4 {
        // Others may have taken the machine's pages, but nobody those of the first growth after a system's start.
        let Ok(more) = abi("memory_grow", &[address, 3]) else { break };
        assert_eq!(more, end, "right behind it");
        for byte in [more, more + 3 * 4096 - 1] {
            assert_eq!(byte_at(byte), 0, "new pages are zeroed");
            set_byte(byte, 7);
        }
        (end, added) = (more + 3 * 4096, added + 3);
        refused("memory_free", &[more], &[Status::BadArgument]);
    }
    assert!(added > 0, "an allocation of a megabyte does not grow in place");
    assert_eq!(must("memory_free", &[address]), LONG_PAGES + added, "pages freed");
    refused("memory_grow", &[address, 1], &[Status::BadArgument]);
    assert_eq!(must("memory_usage", &[]), before, "all was freed");
}

/// Two threads grow one allocation that a third may free meanwhile: no page is counted twice.
fn growing_threads() {
    let mut all = 0;
    for round in 0..50 {
        let address = must("memory_allocate", &[LONG_PAGES]);
        let grown = Arc::new(AtomicU64::new(0));
        let grow = {
            let grown = Arc::clone(&grown);
            move || {
                for _ in 0..8 {
                    match abi("memory_grow", &[address, 1]) {
                        Ok(page) => {
                            assert!(page >= address + LONG_PAGES * 4096, "not behind it");
                            grown.fetch_add(1, Ordering::SeqCst);
                        }
                        Err(Status::BadArgument | Status::WouldBlock) => {}
                        Err(status) => panic!("{}", status.text()),
                    }
                }
            }
        };
        let threads = [grow.clone(), grow].map(|grow| thread::spawn(grow).expect("a thread"));
        let early = if round % 2 == 0 { abi("memory_free", &[address]).ok() } else { None };
        threads.into_iter().for_each(|thread| thread.join().expect("it ends"));
        let freed = early.unwrap_or_else(|| must("memory_free", &[address]));
        let grown = grown.load(Ordering::SeqCst);
        assert_eq!(freed, LONG_PAGES + grown, "pages freed");
        all += grown;
    }
    assert!(all > 0, "nothing has grown");
}

/// A window grows from its start by zeroed pages, and is freed as a whole; claims are refused, and change nothing.
fn windows() {
    let before = must("memory_usage", &[]);
    let window = must("memory_reserve", &[0]);
    assert!(window.is_multiple_of(WINDOW_BYTES as u64), "not aligned");
    assert_eq!(must("memory_usage", &[]), before, "addresses are no pages");
    for claim in [0, 1, window + 4096, window - 4096, window + WINDOW_BYTES as u64, window - WINDOW_BYTES as u64] {
        refused("memory_grow", &[claim, 1], &[Status::BadArgument]);
        refused("memory_free", &[claim], &[Status::BadArgument]);
    }
    refused("memory_grow", &[window, 0], &[Status::BadArgument]);
    for pages in [1 + WINDOW_BYTES as u64 / 4096, 1 << 52, u64::MAX / 4096, u64::MAX] {
        refused("memory_grow", &[window, pages], &[Status::BadArgument]);
    }
    refused("memory_grow", &[window, WINDOW_BYTES as u64 / 4096], &[Status::QuotaExceeded]);
    assert_eq!(must("memory_usage", &[]), before, "what was refused is charged");
    let mut end = window;
    for pages in [3, 1, 700, 16, 16] {
        assert_eq!(must("memory_grow", &[window, pages]), end, "right behind what there is");
        for byte in [end, end + pages * 4096 - 1] {
            assert_eq!(byte_at(byte), 0, "new pages are zeroed");
            set_byte(byte, 7);
        }
        end += pages * 4096;
    }
    assert_eq!((byte_at(window), byte_at(end - 1)), (7, 7), "nothing has moved");
    let pages = (end - window) / 4096;
    assert_eq!(must("memory_usage", &[]), before + pages, "pages are charged");
    assert_eq!(must("memory_free", &[window]), pages, "pages freed");
    refused("memory_free", &[window], &[Status::BadArgument]);
    refused("memory_grow", &[window, 1], &[Status::BadArgument]);
    assert_eq!(must("memory_usage", &[]), before, "all was freed");
    let again = must("memory_reserve", &[0]);
    must("memory_grow", &[again, 8]);
    assert_eq!((byte_at(again), byte_at(again + 8 * 4096 - 1)), (0, 0), "what another left");
    must("memory_free", &[again]);
    for pages in [1 + WINDOW_BYTES as u64 / 4096, 1 << 52, u64::MAX] {
        refused("memory_reserve", &[pages], &[Status::BadArgument]);
    }
    refused("memory_reserve", &[WINDOW_BYTES as u64 / 4096], &[Status::QuotaExceeded]);
    assert_eq!(must("memory_usage", &[]), before, "what was refused is charged");
    windows_with_pages(before);
    many_windows();
}

/// Windows that come with pages, few and many of them written to: those of the next owner are zeroed, and can grow.
fn windows_with_pages(before: u64) {
    for round in 0..40 {
        let pages = [1, 17, 272, 600][round % 4];
        let window = must("memory_reserve", &[pages]);
        assert_eq!(must("memory_usage", &[]), before + pages, "pages are charged");
        let written = if round % 8 < 4 { 3 } else { pages.min(100) };
        for page in 0..pages {
            assert_eq!(byte_at(window + page * 4096 + 77), 0, "page {page} of {pages} in round {round}");
        }
        for page in 0..written {
            set_byte(window + (page * 7 % pages) * 4096 + 77, 9);
        }
        let end = must("memory_grow", &[window, 2]);
        assert_eq!((end, byte_at(end), byte_at(end + 2 * 4096 - 1)), (window + pages * 4096, 0, 0), "new pages");
        assert_eq!(must("memory_free", &[window]), pages + 2, "pages freed");
        // As many as there were, some of which have been written to.
        let again = must("memory_reserve", &[pages + 2]);
        for page in 0..pages + 2 {
            assert_eq!(byte_at(again + page * 4096 + 77), 0, "page {page} of {pages}, reserved again");
            set_byte(again + page * 4096 + 77, 1);
        }
        assert_eq!(must("memory_free", &[again]), pages + 2, "pages freed");
    }
    assert_eq!(must("memory_usage", &[]), before, "all was freed");
}

/// Windows are bounded by the quota of kernel memory, and each is another.
fn many_windows() {
    let mut all = Vec::new();
    while let Ok(window) = abi("memory_reserve", &[0]) {
        assert!(!all.contains(&window), "a window is given twice");
        must("memory_grow", &[window, 1]);
        set_byte(window, 1);
        all.push(window);
        assert!(all.len() < 4096, "nothing bounds them");
    }
    refused("memory_reserve", &[0], &[Status::QuotaExceeded]);
    assert!(all.len() > 8, "{} windows", all.len());
    for window in all {
        assert_eq!(must("memory_free", &[window]), 1, "pages freed");
    }
}

/// Two threads grow one window that a third may free meanwhile: no page is counted twice.
fn windows_of_threads() {
    for round in 0..50 {
        let window = must("memory_reserve", &[0]);
        let grown = Arc::new(AtomicU64::new(0));
        let grow = {
            let grown = Arc::clone(&grown);
            move || {
                for _ in 0..8 {
                    match abi("memory_grow", &[window, 1]) {
                        Ok(_) => _ = grown.fetch_add(1, Ordering::SeqCst),
                        Err(Status::BadArgument) => {}
                        Err(status) => panic!("{}", status.text()),
                    }
                }
            }
        };
        let threads = [grow.clone(), grow].map(|grow| thread::spawn(grow).expect("a thread"));
        let early = if round % 2 == 0 { abi("memory_free", &[window]).ok() } else { None };
        threads.into_iter().for_each(|thread| thread.join().expect("it ends"));
        let freed = early.unwrap_or_else(|| must("memory_free", &[window]));
        assert_eq!(freed, grown.load(Ordering::SeqCst), "pages freed");
    }
}

fn mutex() -> i32 {
    let mutex = must("mutex_create", &[]);
    refused("mutex_release", &[mutex], &[Status::WrongState]);
    must("mutex_acquire", &[mutex, 0]);
    refused("mutex_acquire", &[mutex, u64::MAX], &[Status::Deadlock]);
    refused("mutex_try_acquire", &[mutex], &[Status::Deadlock]);
    refused("mutex_close", &[mutex], &[Status::Busy]);
    let other = thread::spawn(move || {
        refused("mutex_release", &[mutex], &[Status::WrongState]);
        refused("mutex_try_acquire", &[mutex], &[Status::WouldBlock]);
        refused("mutex_acquire", &[mutex, Deadline::after_ms(2).as_ns()], &[Status::TimedOut]);
    });
    other.expect("a thread").join().expect("it ends");
    // In order of arrival.
    let order = Arc::new(AtomicU64::new(0));
    let waiters: alloc::vec::Vec<_> = (0..5u64)
        .map(|place| {
            let order = Arc::clone(&order);
            let waiter = thread::spawn(move || {
                must("mutex_acquire", &[mutex, u64::MAX]);
                assert_eq!(order.fetch_add(1, Ordering::SeqCst), place, "the order of arrival");
                must("mutex_release", &[mutex]);
            });
            // Each has arrived before the next is created.
            thread::sleep(Deadline::after_ms(3));
            waiter.expect("a thread")
        })
        .collect();
    must("mutex_release", &[mutex]);
    for waiter in waiters {
        waiter.join().expect("it ends");
    }
    must("mutex_close", &[mutex]);
    refused("mutex_acquire", &[mutex, 0], &[Status::BadHandle]);
    0
}

/// A mutex whose owner cannot release it cannot be released by others.
fn mutex_of_dead_thread() -> i32 {
    let mutex = must("mutex_create", &[]);
    let holder = thread::spawn(move || must("mutex_acquire", &[mutex, 0]));
    let _ = holder.expect("a thread").join();
    refused("mutex_try_acquire", &[mutex], &[Status::WouldBlock, Status::Deadlock]);
    refused("mutex_acquire", &[mutex, Deadline::after_ms(2).as_ns()], &[Status::TimedOut, Status::Deadlock]);
    for _ in 0..20 {
        // One of these reuses the dead thread's slot.
        let another = thread::spawn(move || refused("mutex_release", &[mutex], &[Status::WrongState]));
        another.expect("a thread").join().expect("it ends");
    }
    0
}

/// Waits for one key of a set.
fn next_key(set: u64, deadline: u64) -> Result<u64, Status> {
    abi("wait_set_wait", &[set, deadline, 1]).map(|count| {
        assert_eq!(count, 1, "no more than was asked for");
        word(0)
    })
}

/// One wait reports as many endpoints as it is asked for, in order, and what it does not report stays.
fn wait_set_several_keys() -> i32 {
    const MAX: u64 = limits::WAIT_KEYS as u64;
    let set = must("wait_set_create", &[]);
    for wrong in [0, MAX + 1, 1 << 32, u64::MAX] {
        refused("wait_set_wait", &[set, 0, wrong], &[Status::BadArgument]);
    }
    let channels: [(u64, u64); limits::WAIT_KEYS + 3] = core::array::from_fn(|_| channel("Errand"));
    for (key, (importer, exporter)) in channels.iter().enumerate() {
        must("wait_set_add", &[set, *exporter, key as u64 + 100]);
        send(*importer, CALL, (1, 0, 0), &[1]).expect("a question is allowed");
    }
    must("wait_set_alert", &[set]);
    set_words(&[u64::MAX; limits::MESSAGE_WORDS]);
    assert_eq!(abi("wait_set_wait", &[set, 0, 2]), Ok(2));
    assert_eq!([word(0), word(1), word(2)], [100, 101, u64::MAX], "no word behind the keys");
    assert_eq!(abi("wait_set_wait", &[set, 0, MAX]), Ok(MAX));
    assert_eq!([word(0), word(limits::WAIT_KEYS - 1)], [102, 101 + MAX]);
    refused("wait_set_wait", &[set, 0, MAX, 2], &[Status::BadArgument]);
    let before = must("time_monotonic", &[]);
    assert_eq!(abi("wait_set_wait", &[set, 0, 1, 1]), Ok(2), "a key and the clock");
    assert!(word(0) == 102 + MAX && (before..=must("time_monotonic", &[])).contains(&word(1)));
    assert_eq!(abi("wait_set_wait", &[set, 0, MAX]), Ok(1), "the alert");
    assert_eq!(word(0), u64::MAX);
    refused("wait_set_wait", &[set, 0, MAX], &[Status::TimedOut]);
    // A waiter gets the key by which it is woken, and those of endpoints that are ready when it runs.
    let waiter = thread::spawn(move || {
        let count = abi("wait_set_wait", &[set, u64::MAX, MAX]).expect("a key") as usize;
        let first: Vec<u64> = (0..count).map(word).collect();
        let others = (count..3).map(|_| next_key(set, u64::MAX).expect("another"));
        first.into_iter().chain(others).collect::<Vec<u64>>()
    });
    let later: [(u64, u64); 3] = core::array::from_fn(|_| channel("Errand"));
    for (key, (_, exporter)) in later.iter().enumerate() {
        must("wait_set_add", &[set, *exporter, key as u64]);
    }
    sip::time::sleep_until(Deadline::after_ms(5));
    for (importer, _) in later {
        send(importer, CALL, (1, 0, 0), &[1]).expect("a question is allowed");
    }
    assert_eq!(waiter.expect("a thread").join().expect("it ends"), [0, 1, 2], "each once");
    refused("wait_set_wait", &[set, 0, MAX], &[Status::TimedOut]);
    assert_eq!(room(set), room(must("wait_set_create", &[])), "nothing is counted as in it for ever");
    0
}

/// Removing endpoints from a set that they are not in changes nothing in it.
fn wait_set_strangers() -> i32 {
    let set = must("wait_set_create", &[]);
    let (stranger, _) = channel("Errand");
    let mut importers = [0; 3];
    for (key, importer) in importers.iter_mut().enumerate() {
        let (end, exporter) = channel("Errand");
        *importer = end;
        send(end, CALL, (1, 0, 0), &[1]).expect("a question is allowed");
        must("wait_set_add", &[set, exporter, key as u64]);
    }
    for _ in 0..5 {
        // Refused or without effect: both are fine.
        let _ = abi("wait_set_remove", &[set, stranger]);
    }
    let (importer, exporter) = channel("Errand");
    send(importer, CALL, (1, 0, 0), &[1]).expect("a question is allowed");
    must("wait_set_add", &[set, exporter, 3]);
    for key in 0..4 {
        assert_eq!(next_key(set, 0), Ok(key), "each is announced once, in order");
    }
    refused("wait_set_wait", &[set, 0, 1], &[Status::TimedOut]);
    // Adding an endpoint with a message forever costs the kernel no more than the quota.
    let mut added = 0;
    while abi("wait_set_add", &[set, exporter, 7]).is_ok() {
        added += 1;
        assert!(added <= 30_000, "{added} entries of one endpoint");
    }
    for (name, arguments) in [("wait_set_wait", [must("event_create_auto", &[]), 0, 1]), ("event_wait", [set, 0, 1])] {
        refused(name, &arguments, &[Status::BadHandle]);
    }
    0
}

/// The endpoints of a closed set can be received from, and join another set.
fn wait_set_closed_full() -> i32 {
    let set = must("wait_set_create", &[]);
    let ends = [channel("Errand"), channel("Errand"), channel("Errand")];
    for (_, exporter) in ends {
        must("wait_set_add", &[set, exporter, 1]);
    }
    must("wait_set_close", &[set]);
    let next = must("wait_set_create", &[]);
    for (importer, _) in ends {
        send(importer, CALL, (1, 0, 0), &[5]).expect("a question is allowed");
    }
    refused("wait_set_wait", &[next, 0, 1], &[Status::TimedOut]);
    assert_eq!(receive(ends[0].1), Ok(CALL), "an endpoint whose set is gone");
    must("wait_set_add", &[next, ends[1].1, 8]);
    assert_eq!(next_key(next, 0), Ok(8), "it announces itself to its new set");
    must("channel_close", &[ends[2].1]);
    // Waiting for an empty channel again, whose set is closed.
    let (importer, exporter) = channel("Errand");
    must("wait_set_add", &[next, exporter, 2]);
    must("wait_set_close", &[next]);
    refused("channel_receive", &[exporter, Deadline::after_ms(1).as_ns()], &[Status::TimedOut]);
    let (carrier, _) = channel("Errand");
    set_words(&[importer]);
    send(carrier, crate::messages::PASS, (0, 0, 1), &[importer]).expect("its peer can move");
    0
}

/// Alerts coalesce until they are reported, and cost nothing however many there are.
fn wait_set_alerts() -> i32 {
    let set = must("wait_set_create", &[]);
    let (importer, exporter) = channel("Errand");
    must("wait_set_add", &[set, exporter, 4]);
    for _ in 0..1000 {
        must("wait_set_alert", &[set]);
    }
    send(importer, CALL, (1, 0, 0), &[1]).expect("a question is allowed");
    for key in [4, u64::MAX] {
        assert_eq!(next_key(set, u64::MAX), Ok(key));
    }
    refused("wait_set_wait", &[set, 0, 1], &[Status::TimedOut]);
    must("wait_set_alert", &[set]);
    set_words(&[set]);
    assert_eq!(abi("wait_any", &[1, 0]), Ok(0), "an alert is something to wait for");
    must("wait_set_close", &[set]);
    for wrong in [set, exporter, must("event_create_auto", &[]), 0, u64::MAX] {
        refused("wait_set_alert", &[wrong], &[Status::BadHandle]);
    }
    0
}

/// If several threads wait for one set, with deadlines and beside other objects, each key is delivered to exactly one.
fn wait_set_many_waiters() -> i32 {
    const CHANNELS: usize = 6;
    const ROUNDS: usize = 400;
    let set = must("wait_set_create", &[]);
    let channels: [(u64, u64); CHANNELS] = core::array::from_fn(|_| channel("Errand"));
    let done = Arc::new(AtomicBool::new(false));
    let taken = Arc::new(AtomicU64::new(0));
    for (key, (_, exporter)) in channels.iter().enumerate() {
        must("wait_set_add", &[set, *exporter, key as u64]);
    }
    let waiter = |number: u64| {
        let (done, taken) = (Arc::clone(&done), Arc::clone(&taken));
        move || {
            let mut turn = number;
            while !done.load(Ordering::SeqCst) {
                turn += 1;
                let deadline = || Deadline::at(sip::time::monotonic() + turn * 7_919 % 300_000).as_ns();
                set_words(&[set]);
                // A thread that waits for several objects finds it ready, and receives it unless another was faster.
                let until = match turn % 3 {
                    0 if abi("wait_any", &[1, deadline()]).is_ok() => 0,
                    _ => deadline(),
                };
                match next_key(set, until) {
                    Ok(key) => {
                        let exporter = channels[key as usize].1;
                        assert_eq!(abi("channel_try_receive", &[exporter]).map(|tag| tag as u16), Ok(CALL));
                        send(exporter, ANSWER, (1, 0, 0), &[word(0)]).expect("an answer is allowed");
                        taken.fetch_add(1, Ordering::SeqCst);
                        must("wait_set_add", &[set, exporter, key]);
                    }
                    Err(status) => assert_eq!(status, Status::TimedOut),
                }
            }
        }
    };
    let waiters: [_; 4] = core::array::from_fn(|number| thread::spawn(waiter(number as u64 * 11)).expect("a thread"));
    for round in 0..ROUNDS {
        for (importer, _) in channels {
            send(importer, CALL, (1, 0, 0), &[round as u64]).expect("a question is allowed");
            if round % 5 == 0 {
                thread::yield_now();
            }
        }
        for (importer, _) in channels {
            let answer = abi("channel_receive", &[importer, Deadline::after_ms(2000).as_ns()]);
            assert_eq!(answer.map(|tag| tag as u16), Ok(ANSWER), "no key is lost");
            assert_eq!(word(0), round as u64);
        }
    }
    done.store(true, Ordering::SeqCst);
    for waiter in waiters {
        waiter.join().expect("it ends");
    }
    assert_eq!(taken.load(Ordering::SeqCst), (CHANNELS * ROUNDS) as u64);
    refused("wait_set_wait", &[set, 0, 1], &[Status::TimedOut]);
    for (_, exporter) in channels {
        must("wait_set_remove", &[set, exporter]);
    }
    assert_eq!(room(set), room(must("wait_set_create", &[])), "nothing is counted as in it for ever");
    must("wait_set_close", &[set]);
    0
}

/// Number of times that a ready endpoint can be added to a set.
fn room(set: u64) -> u64 {
    let (importer, exporter) = channel("Errand");
    send(importer, CALL, (1, 0, 0), &[1]).expect("a question is allowed");
    let added = (0..).take_while(|_| abi("wait_set_add", &[set, exporter, 7]).is_ok()).count();
    must("channel_close", &[importer]);
    must("channel_close", &[exporter]);
    added as u64
}

/// An endpoint is received from or added: exactly one of the two.
fn receive_or_add() -> i32 {
    let set = must("wait_set_create", &[]);
    let (importer, exporter) = channel("Errand");
    for wrong in [exporter, must("event_create_auto", &[]), 0, u64::MAX] {
        refused("channel_receive_or_add", &[exporter, wrong, 1], &[Status::BadHandle]);
    }
    send(importer, CALL, (1, 0, 0), &[9]).expect("a question is allowed");
    assert_eq!(abi("channel_receive_or_add", &[exporter, set, 1]).map(|message| message as u16), Ok(CALL));
    assert_eq!(word(0), 9);
    refused("wait_set_wait", &[set, 0, 1], &[Status::TimedOut]);
    let (importer, exporter) = channel("Errand");
    refused("channel_receive_or_add", &[exporter, set, 2], &[Status::WouldBlock]);
    refused("channel_receive_or_add", &[exporter, set, 3], &[Status::Busy]);
    send(importer, CALL, (1, 0, 0), &[5]).expect("a question is allowed");
    assert_eq!(next_key(set, 0), Ok(2), "the second time it was not added");
    refused("wait_set_wait", &[set, 0, 1], &[Status::TimedOut]);
    assert_eq!(receive(exporter), Ok(CALL));
    // The closure of a channel is a message to receive.
    let (importer, exporter) = channel("Errand");
    must("channel_close", &[importer]);
    refused("channel_receive_or_add", &[exporter, set, 6], &[Status::Closed]);
    refused("wait_set_wait", &[set, 0, 1], &[Status::TimedOut]);
    0
}

fn lengths() -> i32 {
    const BAD: &[Status] = &[Status::TooLarge, Status::BadArgument, Status::NotFound];
    let child = child().expect("a child");
    for length in [513, 1024, 1 << 32, u64::MAX] {
        refused("debug_write", &[length], BAD);
        refused("process_create", &[length], BAD);
        refused("process_give_parameter", &[child, 0, length], BAD);
    }
    set_words(&[0xffff_ffff_ffff_ffff]);
    refused("process_create", &[8], &[Status::BadArgument, Status::NotFound]);
    for index in [3, 99, 1 << 32, u64::MAX] {
        assert_eq!(abi("parameter_length", &[index]), Ok(u64::MAX), "a parameter that is not there");
        refused("parameter_read", &[index, 0], BAD);
        refused("endpoint_take", &[index], BAD);
        refused("process_give_parameter", &[child, index, 4], BAD);
        refused("device_open", &[index], BAD);
    }
    refused("parameter_read", &[0, u64::MAX], BAD);
    refused("parameter_read", &[0, 1000], BAD);
    refused("program_manifest", &[1000], BAD);
    refused("program_manifest", &[u64::MAX], BAD);
    refused("measurement", &[2], BAD);
    refused("measurement", &[u64::MAX], BAD);
    refused("channel_create", &[12345], BAD);
    for count in [0, 33, 64, u64::MAX] {
        refused("wait_any", &[count, 0], &[Status::BadArgument]);
    }
    refused("wait_any", &[1, 0], &[Status::BadHandle]);
    set_words(&[block(64)]);
    refused("wait_any", &[1, 0], &[Status::BadHandle]);
    0
}

fn children() -> i32 {
    let new = child().expect("a child");
    let (importer, exporter) = channel("Errand");
    let (elsewhere, _) = channel("Welcome");
    refused("process_give_endpoint", &[new, 2, importer], &[Status::NotFound]);
    refused("process_give_endpoint", &[new, 0, exporter], &[Status::ContractMismatch]);
    refused("process_give_endpoint", &[new, 0, elsewhere], &[Status::ContractMismatch]);
    must("process_give_endpoint", &[new, 0, importer]);
    refused("process_give_endpoint", &[new, 0, importer], &[Status::BadHandle, Status::Busy]);
    refused("channel_close", &[importer], &[Status::BadHandle]);
    let (second, _) = channel("Errand");
    refused("process_give_endpoint", &[new, 0, second], &[Status::Busy]);
    for reason in [3, 99, u64::MAX] {
        refused("process_stop", &[new, reason], &[Status::BadArgument]);
    }
    must("process_start", &[new]);
    refused("process_start", &[new], &[Status::WrongState]);
    refused("process_give_parameter", &[new, 0, put_text("exit")], &[Status::WrongState]);
    refused("process_wait", &[new, 0], &[Status::TimedOut]);
    must("process_stop", &[new, 0]);
    must("process_wait", &[new, u64::MAX]);
    must("process_stop", &[new, 0]);
    must("process_release", &[new]);
    for name in ["process_wait", "process_release", "process_stop", "process_start", "process_id_of"] {
        refused(name, &[new, 0], &[Status::BadHandle]);
    }
    handles_given_up_by_another_thread()
}

/// One thread waits for a child whose handle another thread closes, while more children are created and released.
fn handles_given_up_by_another_thread() -> i32 {
    let over = Arc::new(AtomicBool::new(false));
    for _ in 0..20 {
        let new = child().expect("a child");
        must("process_start", &[new]);
        over.store(false, Ordering::SeqCst);
        let flag = Arc::clone(&over);
        let waiter = thread::spawn(move || {
            let answer = abi("process_wait", &[new, Deadline::after_ms(20).as_ns()]);
            flag.store(true, Ordering::SeqCst);
            assert!(!matches!(answer, Err(Status::Unknown)), "waiting for a child that was given up: {answer:?}");
        });
        thread::yield_now();
        must("process_stop", &[new, 0]);
        must("process_release", &[new]);
        for _ in 0..4 {
            let next = child().expect("a child");
            must("process_release", &[next]);
        }
        waiter.expect("a thread").join().expect("it ends");
        assert!(over.load(Ordering::SeqCst), "the waiter came back");
    }
    let _ = thread_at(sleep_thread);
    0
}
