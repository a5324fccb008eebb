//! Holds canaries in its memory while hostile programs run beside it, and serves them.
//!
//! It publishes the addresses of its canaries, because a test must not depend on luck. Key modules: `canaries` (the
//! guarded memory), `clients` (replies to clients). Neighbours: `hostile-check`, which queries its state after each
//! attack. Deliberately not here: distrust; it is written as most servers are, so that only the system protects it.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod canaries;
mod clients;

use alloc::rc::Rc;

use canaries::{Canaries, STACK_WORDS, stack_canary};
use hostile_contract::guard::{self, ExpReady};

sip::startup!();

/// Serves until the suite closes its endpoint.
pub fn main(startup: Startup) -> i32 {
    let on_stack: [u64; STACK_WORDS] = core::hint::black_box(stack_canary());
    let canaries = match Canaries::new() {
        Ok(canaries) => canaries,
        Err(status) => panic!("the canaries cannot be made: {}", status.text()),
    };
    match sip::executor::block_on(serve(startup.guard, canaries, &on_stack)) {
        Ok(()) => 0,
        Err(status) => panic!("the executor cannot run: {}", status.text()),
    }
}

async fn serve(guard: guard::Exp<guard::states::Ready>, mut canaries: Canaries, on_stack: &[u64; STACK_WORDS]) {
    let places = Rc::new(canaries.places(on_stack));
    let mut guard = guard;
    loop {
        guard = match guard.receive_async().await {
            ExpReady::Check { next } => match canaries.damage(core::hint::black_box(on_stack)) {
                None => next.intact(),
                Some(damage) => next.damaged(damage.place, damage.index, damage.found),
            },
            ExpReady::Serve { client, next } => {
                drop(sip::executor::spawn(clients::serve(client, Rc::clone(&places))));
                next.serving()
            }
            ExpReady::ChannelClosed(_) => return,
        };
    }
}
