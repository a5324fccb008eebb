//! Creates channels with the largest possible queues.
//!
//! Each takes 65 KiB of the kernel's memory, within the quota of channels. If they were charged less, another program
//! would be ended when memory runs out.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

use alloc::vec::Vec;

use hostile_contract::hoard;
use sip::{Deadline, Status};

sip::startup!();

/// Rounds of creating and closing.
const ROUNDS: usize = 50;
/// Channels per round.
const CHANNELS: usize = 200;

/// Makes the attempt.
pub fn main(startup: Startup) -> i32 {
    match startup.attempt {
        0 => without_end(),
        1 => again_and_again(),
        other => panic!("there is no attempt {other}"),
    }
}

/// When there is no more it waits until there is.
fn without_end() -> i32 {
    let mut hoard = Vec::new();
    loop {
        match hoard::new_channel() {
            Ok(ends) => hoard.push(ends),
            Err(Status::QuotaExceeded) => return 0,
            Err(_) => sip::thread::sleep(Deadline::after_ms(1)),
        }
    }
}

/// A closed channel is free for all.
fn again_and_again() -> i32 {
    for _ in 0..ROUNDS {
        let channels: Result<Vec<_>, Status> = (0..CHANNELS).map(|_| hoard::new_channel()).collect();
        if channels.is_err() {
            return 1;
        }
    }
    0
}
