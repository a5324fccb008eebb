//! Wait sets, events, debug sinks, and waits for several objects, some of which close during the wait.

use alloc::rc::Rc;
use alloc::sync::Arc;
use alloc::vec::Vec;

use sip::Deadline;
use sip::debug::{Printable, Sink, SinkText};
use sip::select::{Either, WaitSet, Waitable, either, wait_any};
use sip::sync::Event;

use crate::hostile::Hostile;
use crate::messages::{self, Channel};
use crate::others::OWN_NAME;
use crate::world::{World, finding};

/// Performs a blocking operation.
pub(crate) fn step(world: &Rc<World>) {
    match world.numbers.below(8) {
        0 => {
            if let Ok(set) = WaitSet::new() {
                world.add(&world.sets, (set, Vec::new()));
            }
        }
        1 | 2 => insert(world),
        3 => wait(world),
        4 => remove(world),
        5 => wait_for_either(world),
        6 => read_sink(world),
        _ => wait_for_all(world),
    }
}

fn soon(world: &World) -> Deadline {
    if world.numbers.once_in(2) { Deadline::PASSED } else { Deadline::after_ns(world.numbers.next() % 40_000) }
}

/// One that receives next.
fn receiving(world: &World) -> Option<Channel> {
    let channel = world.take(&world.channels)?;
    if channel.sends_next() || channel.loan.is_some() {
        world.add_channel(channel);
        return None;
    }
    Some(channel)
}

fn insert(world: &Rc<World>) {
    let Some((mut set, mut keys)) = world.take(&world.sets) else { return };
    if let Some(channel) = receiving(world) {
        keys.push(set.insert(Hostile::new(world, channel)));
    }
    world.add(&world.sets, (set, keys));
}

fn wait(world: &Rc<World>) {
    let Some((mut set, keys)) = world.take(&world.sets) else { return };
    let event = set.wait(soon(world));
    // A message in the buffer is taken first, or the following calls overwrite it.
    if let Some((_, (channel, what))) = event {
        messages::received(world, channel, what);
    }
    if !world.numbers.once_in(20) {
        world.add(&world.sets, (set, keys));
    }
}

fn remove(world: &Rc<World>) {
    let Some((mut set, mut keys)) = world.take(&world.sets) else { return };
    if !keys.is_empty() {
        let key = keys[world.numbers.below(keys.len())];
        if world.numbers.once_in(2) {
            keys.retain(|other| *other != key);
        }
        if let Some(endpoint) = set.remove(key) {
            world.add_channel(endpoint.into_channel());
        }
    }
    world.add(&world.sets, (set, keys));
}

/// With endpoints that return foreign handles it would wait forever by its own fault: it receives from a ready one.
fn wait_for_either(world: &Rc<World>) {
    let (Some(first), Some(second)) = (receiving(world), receiving(world)) else { return };
    let got = match either(Hostile::honest(world, first), Hostile::honest(world, second), soon(world)) {
        Either::First(event, other) | Either::Second(other, event) => Some((event, other)),
        Either::TimedOut(first, second) => {
            world.add_channel(first.into_channel());
            world.add_channel(second.into_channel());
            None
        }
    };
    if let Some(((channel, what), other)) = got {
        messages::received(world, channel, what);
        world.add_channel(other.into_channel());
    }
}

/// Creates a sink, or reads the text of one, whose child is a fuzzer, too.
fn read_sink(world: &Rc<World>) {
    if world.numbers.once_in(2)
        && let Ok(sink) = Sink::new()
    {
        world.add(&world.sinks, Arc::new(sink));
    }
    let Some(sink) = world.take(&world.sinks) else { return };
    while let Some(text) = sink.read() {
        match text {
            SinkText::Text { program, bytes, .. } if program != OWN_NAME || bytes.is_empty() => {
                finding("the text of a sink is another's")
            }
            SinkText::Text { bytes, .. } => sip::log!("a child: {}", Printable(&bytes)),
            SinkText::Lost { .. } => {}
        }
    }
    if !world.numbers.once_in(8) {
        world.add(&world.sinks, sink);
    }
}

/// Waits for things of every kind.
fn wait_for_all(world: &Rc<World>) {
    let made = if world.numbers.once_in(2) { Event::auto() } else { Event::manual() };
    if let Ok(event) = made {
        world.add(&world.events, Arc::new(event));
    }
    let events: Vec<Arc<Event>> = world.events.borrow().iter().map(Arc::clone).collect();
    if let Some(event) = events.first().filter(|_| world.numbers.once_in(3)) {
        event.set();
    }
    let endpoint = receiving(world).map(|channel| Hostile::new(world, channel));
    let set = world.take(&world.sets);
    let mut things: Vec<&dyn Waitable> = events.iter().map(|event| &**event as &dyn Waitable).collect();
    things.extend(endpoint.as_ref().map(|endpoint| endpoint as &dyn Waitable));
    let sink = world.take(&world.sinks);
    things.extend(sink.as_ref().map(|sink| &**sink as &dyn Waitable));
    things.extend(set.as_ref().map(|(set, _)| set as &dyn Waitable));
    if !things.is_empty() {
        let _ = wait_any(&things, soon(world));
    }
    if let Some(endpoint) = endpoint {
        world.add_channel(endpoint.into_channel());
    }
    if let Some(sink) = sink {
        world.add(&world.sinks, sink);
    }
    if let Some(set) = set {
        world.add(&world.sets, set);
    }
}
