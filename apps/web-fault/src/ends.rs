//! Ways to end, and to stand still.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::hint::black_box;

use sip::Deadline;
use sip::executor;
use sip::exheap::ExVec;
use web_application::{Answered, Exchange, Gone};

/// Bytes of a block that is allocated on and on.
const PIECE_BYTES: usize = 64 * 1024;

/// Uses up the stack.
pub fn overflow() -> String {
    format!("it took {} calls\n", deeper(1))
}

/// The depth at which no stack is left. What it does after the call keeps it from becoming a loop.
fn deeper(depth: u64) -> u64 {
    let here = black_box([depth; 64]);
    // Never so many: the stack ends before.
    let below = if depth < u64::MAX { deeper(black_box(depth + 1)) } else { depth };
    below.max(black_box(here)[0])
}

/// Uses up the memory.
pub fn overeat() -> String {
    let mut held = Vec::new();
    loop {
        held.push(black_box(Vec::<u8>::from([1; 4096])));
        if held.len() == usize::MAX {
            return format!("{} pieces\n", held.len());
        }
    }
}

/// Uses up the exchange heap, and tells how much there was.
pub fn overeat_blocks() -> String {
    let mut held = Vec::new();
    loop {
        match ExVec::<u8>::new(PIECE_BYTES) {
            Ok(block) => held.push(block),
            // An application that takes no notice of this has nothing to answer with.
            Err(status) => panic!("{} blocks of {PIECE_BYTES} bytes, then {}", held.len(), status.text()),
        }
    }
}

/// Keeps the thread for ever.
pub fn hang() -> ! {
    loop {
        black_box(());
    }
}

/// Keeps this one request for ever.
pub async fn wait(exchange: Exchange) -> Result<Answered, Gone> {
    exchange
        .by_hand(async |_, channel| {
            executor::sleep_until(Deadline::NEVER).await;
            drop(channel);
        })
        .await
}
