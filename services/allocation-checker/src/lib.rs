//! The checker of register allocations as an extension: proves what an allocator answered to the compiler, its parent.
//!
//! It has two clients, threads of the same compiler, and nothing else in the world. It gets the
//! function from the compiler itself, so that an allocator cannot have another one checked. Neighbours:
//! `register-allocation` has the form of both, and calls regalloc2's checker. Deliberately not here: allocating.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

use alloc::string::{String, ToString};

use contracts::allocation_checker::ExpReady;
use register_allocation::Request;
use sip::Deadline;
use sip::exheap::ExVec;
use sip::select::WaitSet;

/// Memory that is kept for the next function.
const KEPT_BYTES: usize = 16 << 20;
/// Maximum length of a reason, in bytes: the checker's own words name every value that it found.
const MAX_REASON_BYTES: usize = 300;

sip::startup!();

/// Proves what the parent sends, until it closes the channels.
pub fn main(startup: Startup) -> i32 {
    sip::allocator::keep_pages(KEPT_BYTES);
    let Ok(mut clients) = WaitSet::new() else { return 1 };
    clients.insert(startup.client);
    clients.insert(startup.other);
    while !clients.is_empty() {
        match clients.wait(Deadline::NEVER) {
            Some((_, ExpReady::Prove { function, allocation, next })) => match prove(&function, &allocation) {
                Ok(()) => {
                    clients.insert(next.proven());
                }
                Err(reason) => match ExVec::from_slice(reason.as_bytes()) {
                    Ok(reason) => {
                        clients.insert(next.refused(reason));
                    }
                    Err(_) => return 1,
                },
            },
            Some((_, ExpReady::ChannelClosed(_))) | None => {}
        }
    }
    0
}

fn prove(function: &[u8], allocation: &[u8]) -> Result<(), String> {
    let request = Request::decode(function).map_err(|malformed| malformed.to_string())?;
    let output = request.answer(allocation).map_err(|malformed| malformed.to_string())?;
    request.prove(&output).map_err(|mut reason| {
        let end = (0..=MAX_REASON_BYTES).rev().find(|&end| reason.is_char_boundary(end)).unwrap_or(0);
        reason.truncate(end.min(reason.len()));
        reason
    })
}
