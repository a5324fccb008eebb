//! Test SIPs: extensions of the compiler that speak its contract and answer with something else than an allocation of
//! the function that they got. A module each, with its manifest in the folder of its name.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod allocator_astray;
pub mod allocator_crash;
pub mod allocator_mute;
pub mod allocator_swaps;
pub mod allocator_wordy;

use alloc::vec::Vec;

use contracts::register_allocator::{Exp, ExpReady, states::Ready};
use register_allocation::{Request, answer};
use sip::exheap::ExVec;
use sip::thread;

/// Answers both clients with right allocations, changed by a function that gets the number of the client's question.
fn serve(client: Exp<Ready>, other: Exp<Ready>, change: fn(u32, &Request, Vec<u8>) -> Vec<u8>) -> i32 {
    let Ok(second) = thread::spawn(move || serve_one(other, change)) else { return 1 };
    serve_one(client, change);
    second.join().map_or(1, |()| 0)
}

fn serve_one(mut client: Exp<Ready>, change: fn(u32, &Request, Vec<u8>) -> Vec<u8>) {
    for number in 0.. {
        let ExpReady::Allocate { function, next } = client.receive() else { return };
        let Ok(request) = Request::decode(&function) else { return };
        let Ok(output) = request.allocate() else { return };
        let Ok(block) = ExVec::from_slice(&change(number, &request, answer::encode(&output))) else { return };
        client = next.allocated(block);
    }
}
