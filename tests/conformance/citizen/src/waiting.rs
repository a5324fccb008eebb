//! Acts that wait for several objects, or with a deadline.

use alloc::vec::Vec;

use conformance_contract::errand;
use errand::{ExpReady, ImpReadyAfterCall};
use sip::select::{Either, WaitSet, either, wait_any as wait_for};
use sip::sync::Event;
use sip::{Deadline, process, thread, time};

use crate::Stage;

/// A receive with a deadline returns the endpoint on time: neither early nor much later.
pub(crate) fn deadlines(_: Stage) -> i32 {
    let (importer, exporter) = errand::new_channel().expect("a channel");
    let mut exporter = match exporter.try_receive() {
        Err(exporter) => exporter,
        Ok(_) => panic!("an empty channel gave something"),
    };
    for milliseconds in [0, 1, 5, 20] {
        let start = time::monotonic();
        exporter = match exporter.receive_by(Deadline::at(start + milliseconds * 1_000_000)) {
            Err(exporter) => exporter,
            Ok(_) => panic!("an empty channel gave something"),
        };
        let waited = (time::monotonic() - start) / 1_000_000;
        assert!((milliseconds..milliseconds + 500).contains(&waited), "{milliseconds} ms took {waited} ms");
    }
    let importer = importer.call(5);
    let Ok(ExpReady::Call { value: 5, next }) = exporter.receive_by(Deadline::PASSED) else {
        panic!("a message that is there is received whatever the deadline")
    };
    let next = next.answer(6);
    let ImpReadyAfterCall::Answer { value: 6, next: importer } = importer.receive() else { panic!("the answer") };
    drop(importer);
    assert!(matches!(next.receive_by(Deadline::NEVER), Ok(ExpReady::ChannelClosed(_))), "the end of the peer");
    0
}

/// A wait set reports each ready and each closed endpoint, once.
pub(crate) fn wait_set(_: Stage) -> i32 {
    const ENDPOINTS: u64 = 100;
    let mut set = WaitSet::new().expect("a wait set");
    assert!(set.wait(Deadline::PASSED).is_none(), "an empty set has nothing");
    let mut importers = Vec::new();
    for _ in 0..ENDPOINTS {
        let (importer, exporter) = errand::new_channel().expect("a channel");
        set.insert(exporter);
        importers.push(importer);
    }
    assert!(set.wait(Deadline::after_ms(1)).is_none(), "nobody said anything");
    let mut waiting: Vec<_> =
        importers.into_iter().enumerate().map(|(number, importer)| importer.call(number as u64)).collect();
    let mut seen = [false; ENDPOINTS as usize];
    for _ in 0..ENDPOINTS {
        let Some((_, ExpReady::Call { value, next })) = set.wait(Deadline::after_ms(2000)) else {
            panic!("a message was not announced")
        };
        assert!(!core::mem::replace(&mut seen[value as usize], true), "message {value} came twice");
        set.insert(next.answer(value + 1));
    }
    waiting.retain(|_| true);
    drop(waiting);
    for _ in 0..ENDPOINTS {
        let Some((_, ExpReady::ChannelClosed(_))) = set.wait(Deadline::after_ms(2000)) else {
            panic!("an end was not announced")
        };
    }
    assert!(set.is_empty() && set.wait(Deadline::PASSED).is_none(), "each end is announced once");
    set_survivors()
}

/// An endpoint that was in a set can be used after the set is closed.
fn set_survivors() -> i32 {
    let mut set = WaitSet::new().expect("a wait set");
    let (importer, exporter) = errand::new_channel().expect("a channel");
    let key = set.insert(exporter);
    let exporter = set.remove(key).expect("the endpoint comes back");
    drop(set);
    let _importer = importer.call(3);
    assert!(matches!(exporter.receive(), ExpReady::Call { value: 3, .. }), "it is an endpoint like any other");
    0
}

/// Waiting for any of an endpoint, an event, a set and a child returns which is ready, and consumes nothing but an
/// automatic event.
pub(crate) fn wait_any(_: Stage) -> i32 {
    let (importer, exporter) = errand::new_channel().expect("a channel");
    let auto = Event::auto().expect("an event");
    let manual = Event::manual().expect("an event");
    let child = process::create("conformance-citizen").expect("a child");
    let child = child.parameter(0, "sleep").and_then(process::Child::start).expect("the child starts");
    let poll = |deadline| wait_for(&[&exporter, &auto, &manual, &child], deadline);
    assert_eq!(poll(Deadline::after_ms(2)), None, "nothing is ready");
    assert_eq!(wait_for(&[], Deadline::after_ms(2)), None, "nothing can get ready");
    manual.set();
    assert_eq!(poll(Deadline::NEVER), Some(2), "the manual event");
    assert_eq!(poll(Deadline::NEVER), Some(2), "stays set");
    auto.set();
    assert_eq!(poll(Deadline::NEVER), Some(1), "the automatic event comes first");
    assert_eq!(poll(Deadline::NEVER), Some(2), "and was taken");
    manual.reset();
    child.stop(process::StopReason::Requested).expect("the child is stopped");
    assert_eq!(poll(Deadline::after_ms(2000)), Some(3), "the child's end");
    let importer = importer.call(1);
    assert_eq!(poll(Deadline::NEVER), Some(0), "the message");
    assert_eq!(poll(Deadline::NEVER), Some(0), "is still there");
    drop(importer);
    assert!(matches!(exporter.receive(), ExpReady::Call { value: 1, .. }), "the message itself");
    // Woken while it waits, by another thread.
    let event = alloc::sync::Arc::new(Event::auto().expect("an event"));
    let setter = alloc::sync::Arc::clone(&event);
    let (_importer, exporter) = errand::new_channel().expect("a channel");
    let other = thread::spawn(move || {
        thread::sleep(Deadline::after_ms(3));
        setter.set();
    });
    assert_eq!(wait_for(&[&exporter, &*event], Deadline::after_ms(2000)), Some(1), "another thread's set");
    other.expect("a thread").join().expect("it ends");
    0
}

/// The switch-receive receives from any ready endpoint, and leaves the others unchanged.
pub(crate) fn switch_receive(_: Stage) -> i32 {
    let (mut one, mut one_end) = errand::new_channel().expect("a channel");
    let (mut two, mut two_end) = errand::new_channel().expect("a channel");
    for round in 0..200u64 {
        if round % 2 == 0 {
            let asking = one.call(round);
            let Either::First(ExpReady::Call { value, next }, other) = either(one_end, two_end, Deadline::NEVER) else {
                panic!("the first endpoint had the message")
            };
            assert_eq!(value, round, "the message of this round");
            (one_end, two_end) = (next.answer(value), other);
            let ImpReadyAfterCall::Answer { next, .. } = asking.receive() else { panic!("the answer") };
            one = next;
        } else {
            let asking = two.call(round);
            let Either::Second(other, ExpReady::Call { value, next }) = either(one_end, two_end, Deadline::NEVER)
            else {
                panic!("the second endpoint had the message")
            };
            assert_eq!(value, round, "the message of this round");
            (one_end, two_end) = (other, next.answer(value));
            let ImpReadyAfterCall::Answer { next, .. } = asking.receive() else { panic!("the answer") };
            two = next;
        }
    }
    assert!(matches!(either(one_end, two_end, Deadline::after_ms(1)), Either::TimedOut(..)), "nothing more");
    0
}
