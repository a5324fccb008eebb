//! Threads with worlds of their own, which share blocks, and children that are fuzzers too.

use alloc::rc::Rc;
use alloc::string::ToString;
use alloc::sync::Arc;
use alloc::vec::Vec;

use hostile_contract::talk;
use sip::Deadline;
use sip::channel::TypedEndpoint;
use sip::process::{Child, EpitaphKind, StopReason, create};
use sip::thread::JoinHandle;

use crate::blocks::Block;
use crate::messages::{Channel, State};
use crate::world::{World, finding};

pub(crate) const OWN_NAME: &str = "hostile-fuzzer";
const SEED: usize = 0;
const STEPS: usize = 1;
const GENERATIONS: usize = 2;
const CLIENT_SLOT: usize = 1;
const SERVER_SLOT: usize = 2;
const THREADS: usize = 4;
const CHILDREN: usize = 3;
const LIMIT_MS: u64 = 20_000;

/// Performs an operation on threads or children.
pub(crate) fn step(world: &Rc<World>) {
    match world.numbers.below(5) {
        0 | 1 => start_thread(world),
        2 => {
            if let Some(thread) = world.take(&world.threads) {
                if world.numbers.once_in(3) { drop(thread) } else { join(world, thread) }
            }
        }
        3 => start_child(world),
        _ => {
            if let Some(child) = world.take(&world.children) {
                end(child);
            }
        }
    }
}

fn start_thread(world: &Rc<World>) {
    if world.threads.borrow().len() >= THREADS {
        return;
    }
    let (seed, steps) = (world.numbers.next(), world.numbers.below(60) as u32);
    let (addresses, pool) = (world.addresses, Arc::clone(&world.pool));
    let blocks: Vec<Block> = core::iter::from_fn(|| world.take(&world.blocks)).take(3).collect();
    let channels: Vec<Channel> = core::iter::from_fn(|| world.take(&world.channels)).take(2).collect();
    let started = sip::thread::spawn(move || {
        let world = World::new(seed, addresses, pool);
        blocks.into_iter().for_each(|block| world.add_block(block));
        channels.into_iter().for_each(|channel| world.add_channel(channel));
        world.run(steps);
        world.check_everything();
        world.blocks.take()
    });
    if let Ok(thread) = started {
        world.threads.borrow_mut().push(thread);
    }
}

/// Joins the thread and takes over its values.
pub(crate) fn join(world: &Rc<World>, thread: JoinHandle<Vec<Block>>) {
    let Ok(blocks) = thread.join() else { return };
    for mut block in blocks {
        block.check();
        world.add_block(block);
    }
}

fn start_child(world: &Rc<World>) {
    let generations = world.generations.get();
    if generations == 0 || world.children.borrow().len() >= CHILDREN {
        return;
    }
    let (Ok((client, server)), Ok((other_client, other_server))) = (talk::new_channel(), talk::new_channel()) else {
        return;
    };
    let ends = [(client.into_raw(), true), (other_server.into_raw(), false)];
    let (seed, steps) = (world.numbers.next() >> 1, world.numbers.below(200));
    let child = create(OWN_NAME).ok().and_then(|child| {
        let child = child.parameter(SEED, &seed.to_string()).ok()?.parameter(STEPS, &steps.to_string()).ok()?;
        let child = child.parameter(GENERATIONS, &(generations - 1).to_string()).ok()?;
        let sink = world.sinks.borrow().first().map(Arc::clone);
        let child = match sink {
            Some(sink) => child.debug_sink(&sink).ok()?,
            None => child,
        };
        child.endpoint(SERVER_SLOT, server).ok()?.endpoint(CLIENT_SLOT, other_client).ok()?.start().ok()
    });
    for (endpoint, is_importer) in ends {
        world.add_channel(Channel { endpoint, is_importer, state: State::Start, loan: None });
    }
    world.children.borrow_mut().extend(child);
}

/// Waits for a child's end, or kills it midway.
pub(crate) fn end(child: Child) {
    let is_stopped = child.id().is_ok_and(|id| id % 3 == 0);
    if is_stopped {
        let _ = child.stop(StopReason::Requested);
    }
    let Ok(epitaph) = child.wait_until(Deadline::after_ms(LIMIT_MS)) else { finding("a child does not end") };
    match epitaph.kind {
        EpitaphKind::Exited if epitaph.status != 0 => finding("a child found something"),
        EpitaphKind::Faulted => finding("a child faulted"),
        _ => {}
    }
}
