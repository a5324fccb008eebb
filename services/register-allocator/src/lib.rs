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
use alloc::vec::Vec;

use contracts::register_allocator::ExpReady;
use register_allocation::{Request, answer};
use sip::Deadline;
use sip::exheap::ExVec;
use sip::select::WaitSet;

/// Memory that is kept for the next function: each grows tables of the same sizes.
const KEPT_BYTES: usize = 16 << 20;

sip::startup!();

/// Allocates what the parent sends, until it closes the channels.
pub fn main(startup: Startup) -> i32 {
    sip::allocator::keep_pages(KEPT_BYTES);
    let Ok(mut clients) = WaitSet::new() else { return 1 };
    clients.insert(startup.client);
    clients.insert(startup.other);
    while !clients.is_empty() {
        match clients.wait(Deadline::NEVER) {
            Some((_, ExpReady::Allocate { function, next })) => {
                let allocated = allocate(&function);
                drop(function);
                let answer = allocated.as_ref().map_or_else(String::as_bytes, Vec::as_slice);
                match (ExVec::from_slice(answer), allocated.is_ok()) {
                    (Ok(allocation), true) => clients.insert(next.allocated(allocation)),
                    (Ok(reason), false) => clients.insert(next.refused(reason)),
                    (Err(_), _) => return 1,
                };
            }
            Some((_, ExpReady::ChannelClosed(_))) | None => {}
        }
    }
    0
}

fn allocate(function: &[u8]) -> Result<Vec<u8>, String> {
    let request = Request::decode(function).map_err(|malformed| malformed.to_string())?;
    let output = request.allocate().map_err(|error| format!("{error:?}"))?;
    Ok(answer::encode(&output))
}
