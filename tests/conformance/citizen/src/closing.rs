//! Acts about closure: of a process that holds everything, and of a channel with messages in it.

use alloc::vec::Vec;

use conformance_contract::{errand, welcome};
use errand::{ExpReady, ExpReadyAfterFirst, ExpReadyAfterFirstThenSecond};
use sip::sync::{Event, Mutex};

use crate::Stage;
use crate::talk::patterned;

/// Exits while it holds endpoints, blocks, locks, threads, pages, a loan and messages both ways.
pub(crate) fn hold_everything(mut stage: Stage) -> i32 {
    let mut channels = Vec::new();
    let mut sent = Vec::new();
    for round in 0..50u8 {
        let (importer, exporter) = errand::new_channel().expect("a channel");
        sent.push(importer.first(patterned(1000, round)).second(1));
        channels.push(exporter);
    }
    let (importer, exporter) = errand::new_channel().expect("a channel");
    let lent = importer.lend(patterned(5000, 3));
    let ExpReady::Lend { data: borrowed, next } = exporter.receive() else { panic!("no loan came") };
    let (carrier, end) = errand::new_channel().expect("a channel");
    let (travelling, stays) = errand::new_channel().expect("a channel");
    let carrier = carrier.pass(travelling);
    let (hall, door) = welcome::new_channel().expect("a channel");
    let blocks: Vec<_> = (0..100).map(|seed| patterned(300, seed)).collect();
    let events: Vec<_> = (0..100).map(|_| Event::auto().expect("an event")).collect();
    let lock = alloc::sync::Arc::new(Mutex::new(0));
    let held = lock.lock();
    let waiting: Vec<_> = (0..10)
        .map(|_| {
            let lock = alloc::sync::Arc::clone(&lock);
            sip::thread::spawn(move || *lock.lock() += 1).expect("a thread")
        })
        .collect();
    sip::thread::sleep(sip::Deadline::after_ms(2));
    let everything = (channels, sent, lent, borrowed, next, end, stays, carrier, hall, door, blocks, events, waiting);
    core::mem::forget(everything);
    core::mem::forget(held);
    stage.client = None;
    stage.end()
}

/// A closed channel delivers queued messages before its closure, within one process too.
pub(crate) fn closed_after_queue(_: Stage) -> i32 {
    for _ in 0..100 {
        let (importer, exporter) = errand::new_channel().expect("a channel");
        drop(importer.first(patterned(64, 1)).second(2).third(3));
        let ExpReady::First { data, next } = exporter.receive() else { panic!("the first message is lost") };
        assert_eq!(*data, *patterned(64, 1), "the block changed on its way");
        let ExpReadyAfterFirst::Second { value: 2, next } = next.receive() else {
            panic!("the second message is lost")
        };
        let ExpReadyAfterFirstThenSecond::Third { value: 3, next } = next.receive() else {
            panic!("the third message is lost")
        };
        // A send to a closed peer does not fail; the closure is reported by the next receive.
        let next = next.marked();
        let ExpReady::ChannelClosed(mut closed) = next.receive() else { panic!("a closed channel gave a message") };
        assert!(closed.take_home().is_empty(), "nothing was lent");
    }
    0
}
