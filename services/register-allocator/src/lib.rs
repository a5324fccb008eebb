//! The register allocator as an extension: allocates the functions that the compiler, its parent, sends.
//!
//! It has two clients, threads of the same compiler, and nothing else in the world. Neighbours:
//! `register-allocation` has the form of functions and allocations, `regalloc2` is the allocator that compilers without
//! an extension have linked in. Deliberately not here: proofs, which are `allocation-checker`'s.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;

use contracts::register_allocator::{Exp, ExpReady, states};
use register_allocation::{Request, answer};
use sip::exheap::ExVec;
use sip::sync::Mutex;
use sip::thread;

/// Memory that is kept for the next function: each grows tables of the same sizes.
const KEPT_BYTES: usize = 16 << 20;

sip::startup!();

/// Allocates what the parent sends, until it closes the channels.
pub fn main(startup: Startup) -> i32 {
    sip::allocator::keep_pages(KEPT_BYTES);
    let turn = Arc::new(Mutex::new(()));
    let Startup { client, other, .. } = startup;
    let other = {
        let turn = Arc::clone(&turn);
        thread::spawn(move || serve(other, &turn))
    };
    let served = serve(client, &turn);
    served.max(other.ok().and_then(|other| other.join().ok()).unwrap_or(1))
}

/// Serves one client; returns the exit status. Each waits for its own, which is one call of the kernel, and both
/// allocate in turn, since they share a heap.
fn serve(mut client: Exp<states::Ready>, turn: &Mutex<()>) -> i32 {
    loop {
        match client.receive() {
            ExpReady::Allocate { function, next } => {
                let allocated = {
                    let _turn = turn.lock();
                    allocate(&function)
                };
                drop(function);
                let answer = allocated.as_ref().map_or_else(String::as_bytes, Vec::as_slice);
                client = match (ExVec::from_slice(answer), allocated.is_ok()) {
                    (Ok(allocation), true) => next.allocated(allocation),
                    (Ok(reason), false) => next.refused(reason),
                    (Err(_), _) => return 1,
                };
            }
            ExpReady::ChannelClosed(_) => return 0,
        }
    }
}

fn allocate(function: &[u8]) -> Result<Vec<u8>, String> {
    let request = Request::decode(function).map_err(|malformed| malformed.to_string())?;
    let output = request.allocate().map_err(|error| format!("{error:?}"))?;
    Ok(answer::encode(&output))
}
