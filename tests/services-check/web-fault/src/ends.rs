//! Crashes and hangs.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::hint::black_box;

use sip::Deadline;
use sip::executor;
use sip::exheap::ExVec;
use web_application::{Answered, Exchange, Gone};

/// Size in bytes of a repeatedly allocated block.
const PIECE_BYTES: usize = 64 * 1024;

/// Overflows the stack.
pub fn overflow() -> String {
    format!("it took {} calls\n", deeper(1))
}

/// Recurses until the stack overflows. The work after the call prevents tail-call optimization.
fn deeper(depth: u64) -> u64 {
    let here = black_box([depth; 64]);
    // Never reached: the stack overflows first.
    let below = if depth < u64::MAX { deeper(black_box(depth + 1)) } else { depth };
    below.max(black_box(here)[0])
}

/// Exhausts memory.
pub fn overeat() -> String {
    let mut held = Vec::new();
    loop {
        held.push(black_box(Vec::<u8>::from([1; 4096])));
        if held.len() == usize::MAX {
            return format!("{} pieces\n", held.len());
        }
    }
}

/// Exhausts the exchange heap; returns how much there was.
pub fn overeat_blocks() -> String {
    let mut held = Vec::new();
    loop {
        match ExVec::<u8>::new(PIECE_BYTES) {
            Ok(block) => held.push(block),
            // An application that ignored this would have no block for its response.
            Err(status) => panic!("{} blocks of {PIECE_BYTES} bytes, then {}", held.len(), status.text()),
        }
    }
}

/// Blocks the thread forever.
pub fn hang() -> ! {
    loop {
        black_box(());
    }
}

/// Never responds to this one request.
pub async fn wait(exchange: Exchange) -> Result<Answered, Gone> {
    exchange
        .with_channel(async |_, channel| {
            executor::sleep_until(Deadline::NEVER).await;
            drop(channel);
        })
        .await
}
