//! Calls the safe functions of the runtime in random order, with values of every kind alive concurrently, and with
//! hostile implementations of every trait that a program can implement.
//!
//! A finding shows in one of these ways: a fault, which safe code cannot cause; changed contents of an own block,
//! vector or loan; a new block that is not zero; overwritten canaries of the victim, which the suite detects; a leak
//! at the end. A panic of the runtime is no finding: it is a refusal. Key modules: `world` (live values, and the
//! choice of the next call), `blocks`, `messages`, `hostile` (the traits), `waiting`, `tasks`, `others` (threads and
//! children), `ambient` (calls without arguments). Deliberately not here: judging this program's exit, which
//! `hostile-check` does.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod ambient;
mod blocks;
mod hostile;
mod messages;
mod numbers;
mod others;
mod tasks;
mod waiting;
mod world;

use alloc::sync::Arc;

use hostile_contract::talk::ImpReadyAfterLocate;
use messages::{Channel, State};
use sip::Deadline;
use sip::channel::TypedEndpoint;
use sip::sync::Mutex;
use world::World;

sip::startup!();

/// Timeout for the victim to report its canaries.
const LIMIT_MS: u64 = 30_000;

/// Makes the calls, and checks at the end that all own values are unchanged.
pub fn main(startup: Startup) -> i32 {
    let (mut addresses, mut victim) = ([0; 3], None);
    if let Some(endpoint) = startup.victim {
        match endpoint.locate().receive_by(Deadline::after_ms(LIMIT_MS)) {
            Ok(ImpReadyAfterLocate::Located { heap, stack, block, next, .. }) => {
                addresses = [heap, stack, block];
                victim = Some(next);
            }
            Ok(ImpReadyAfterLocate::ChannelClosed(_)) | Err(_) => return 0,
        }
    }
    let world = World::new(startup.seed as u64, addresses, Arc::new(Mutex::new(alloc::vec::Vec::new())));
    world.generations.set(startup.generations.unsigned_abs() as u32);
    let ends = [
        victim.map(|client| (client.into_raw(), true, State::Ready)),
        startup.client.map(|client| (client.into_raw(), true, State::Start)),
        startup.server.map(|server| (server.into_raw(), false, State::Start)),
    ];
    for (endpoint, is_importer, state) in ends.into_iter().flatten() {
        world.add_channel(Channel { endpoint, is_importer, state, loan: None });
    }
    world.run(startup.steps.unsigned_abs() as u32);
    world.check_everything();
    0
}
