//! Makes the runtime read a block from forged words.
//!
//! The kernel describes a received block by handle, address and length in the thread's message buffer. Each attempt
//! overwrites these before the runtime reads them: by a function that takes text, by one that takes handles, or by
//! code of an endpoint type that the runtime calls. With chosen words the program would get the victim's memory as a
//! block.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod ends;

use alloc::rc::Rc;
use alloc::string::String;
use alloc::vec::Vec;
use core::cell::RefCell;

use hostile_contract::talk::{self, ImpReadyAfterLocate, ImpStart};
use sip::channel::{Incoming, Outgoing, RawEndpoint, TypedEndpoint};
use sip::exheap::{Block, ExBlock, ExVec};
use sip::select::Waitable;
use sip::sync::Event;
use sip::{Deadline, channel, device, process, select, thread};

use crate::ends::End;

sip::startup!();

type Importer = talk::Imp<talk::states::Ready>;
type Exporter = talk::Exp<talk::states::Ready>;

const OWN: &[u8; 64] = &[7; 64];

/// Makes the attempt.
pub fn main(startup: Startup) -> i32 {
    let worked = match startup.attempt {
        0 => text_under_a_message(),
        1 => handles_under_a_message(),
        2 => words_under_what_came_home(startup.victim),
        3 => numbers_for_a_block(startup.victim),
        4 => a_loan_for_an_own_block(),
        5 => words_of_a_dying_process(startup.victim),
        other => panic!("there is no attempt {other}"),
    };
    match worked {
        Some(false) => 0,
        Some(true) => 1,
        None => 2,
    }
}

/// Both ends of an own channel.
fn pair() -> Option<(Importer, Exporter)> {
    let (importer, exporter) = talk::new_channel().ok()?;
    let exporter = exporter.success();
    let ImpStart::Success { next } = importer.receive() else { return None };
    Some((next, exporter))
}

/// The ends of a channel, kept so that no kernel call closes them.
type Ends = (RawEndpoint, talk::Imp<talk::states::ReadyAfterGive>);

/// A message with a block, which stays in the buffer.
fn received() -> Option<(Incoming, Ends)> {
    let (importer, exporter) = pair()?;
    let waiting = importer.give(ExVec::from_slice(OWN).ok()?);
    let (incoming, raw) = channel::receive(End::new(exporter.into_raw())).ok()?;
    Some((incoming, (raw, waiting)))
}

/// An address in the victim's memory.
fn located(victim: Importer) -> Option<u64> {
    let ImpReadyAfterLocate::Located { heap, .. } = victim.locate().receive() else { return None };
    Some(heap)
}

/// A text longer than the buffer is refused only after its beginning was written there.
fn text_under_a_message() -> Option<bool> {
    let (mut incoming, _ends) = received()?;
    let text: String = core::iter::repeat_n('A', 513).collect();
    // The result does not matter.
    let _ = device::exists(&text);
    let block: ExVec<u8> = incoming.block();
    Some(*block != *OWN)
}

/// Handles of a wait for many are written over the message, and one of them comes from the program's own code.
fn handles_under_a_message() -> Option<bool> {
    // Everything but the message first, because a kernel call would overwrite it.
    let incoming = Rc::new(RefCell::new(None::<Incoming>));
    let taken = Rc::new(RefCell::new(None));
    let (_importer, exporter) = pair()?;
    let (from, to) = (Rc::clone(&incoming), Rc::clone(&taken));
    let last = End::asking(exporter.into_raw(), move || {
        if let Some(mut incoming) = from.take() {
            to.replace(Some(incoming.block::<ExVec<u8>>()));
        }
    });
    let events: Vec<Event> = (0..8).map(|_| Event::manual()).collect::<Result<_, _>>().ok()?;
    let mut things: Vec<&dyn Waitable> = events.iter().map(|event| event as &dyn Waitable).collect();
    things.push(&last);
    let (message, _ends) = received()?;
    incoming.replace(Some(message));
    let _ = select::wait_any(&things, Deadline::PASSED);
    let block = taken.take()?;
    Some(*block != *OWN)
}

/// The runtime requests an endpoint type's handle between the kernel's reply and its reading.
fn words_under_what_came_home(victim: Importer) -> Option<bool> {
    let target = located(victim)?;
    let (importer, exporter) = pair()?;
    let waiting = importer.lend(ExVec::from_slice(OWN).ok()?, 64);
    drop(exporter);
    let end = End::asking(waiting.into_raw(), move || {
        // One block was returned: any handle, the victim's memory, 64 bytes.
        drop(Outgoing::new().word(1).word(1).word(target).word(64));
    });
    let mut closed = channel::receive(end).err()?;
    let home: Vec<ExBlock> = closed.take_home();
    // A block that is not of bytes is another one than was lent.
    let block = home.into_iter().next()?.into_vec::<u8>();
    Some(block.map_or(true, |block| *block != *OWN))
}

/// Three numbers that the program sends to itself, decoded as a block.
fn numbers_for_a_block(victim: Importer) -> Option<bool> {
    let target = located(victim)?;
    let (importer, exporter) = pair()?;
    // `Mark` has a flag, a colour and three words of a name.
    let importer = Outgoing::new().word(1).word(1).word(1).word(target).word(64).send(importer.into_raw(), MARK);
    let (mut incoming, _raw) = channel::receive(End::new(exporter.into_raw())).ok()?;
    let block: ExVec<u8> = incoming.block();
    drop(importer);
    Some(block.len() == 64)
}

/// The position of `Mark` among the contract's messages.
const MARK: u64 = 5;

/// A loan used as an own block: it can neither be split nor carry another block away.
fn a_loan_for_an_own_block() -> Option<bool> {
    let (importer, exporter) = pair()?;
    let _waiting = importer.lend(ExVec::from_slice(&[1u8; 256]).ok()?, 256);
    let (mut incoming, _raw) = channel::receive(End::new(exporter.into_raw())).ok()?;
    let mut own: ExVec<u8> = incoming.block();
    let split = own.split_off(64).is_ok();
    let carried = own.attach(ExVec::<u8>::new(64).ok()?).is_ok();
    let mut carrier = ExVec::<u8>::new(64).ok()?;
    let hidden = carrier.attach(own).is_ok();
    Some(split || carried || hidden)
}

/// Types a block without a kernel check, as far as the runtime's own bound allows.
fn typed<B: Block>(block: ExBlock) -> Option<B> {
    B::from_block(block).ok()
}

/// One thread ends the process while another receives: the kernel reports the end, in a reply without words. A runtime
/// that continued for an instant, with stale words, would write into the victim.
fn words_of_a_dying_process(victim: Importer) -> Option<bool> {
    let target = located(victim)?;
    let (_importer, exporter) = pair()?;
    let raw = exporter.into_raw();
    let receiving = thread::spawn(move || {
        let mut end = End::new(raw);
        loop {
            drop(Outgoing::new().word(1).word(1).word(target).word(64));
            end = match channel::receive_by(end, Deadline::PASSED) {
                Err(again) => again,
                Ok(Ok(_)) => return,
                Ok(Err(mut closed)) => {
                    for mut stolen in closed.take_home().into_iter().filter_map(typed::<ExVec<u64>>) {
                        stolen.fill(0);
                    }
                    return;
                }
            };
        }
    });
    thread::sleep(Deadline::after_ms(20));
    drop(receiving.ok()?);
    process::exit(0)
}
