//! Allocates without end, and requests impossible sizes.
//!
//! Sizes that overflow a computation must be refused, not truncated to something small.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

use alloc::vec::Vec;

use sip::exheap::{ExBox, ExVec};

sip::startup!();

/// Blocks of a chain.
const CHAIN: usize = 30_000;

/// Makes the attempt.
pub fn main(startup: Startup) -> i32 {
    match startup.attempt {
        0 => without_end(),
        1 => absurd_vectors(),
        2 => absurd_blocks(),
        3 => blocks_without_end(),
        4 => long_chain(),
        other => panic!("there is no attempt {other}"),
    }
}

fn without_end() -> i32 {
    let mut all: Vec<Vec<u8>> = Vec::new();
    loop {
        all.push(alloc::vec![1; 100_000]);
    }
}

/// Sizes near those at which a computation overflows.
fn absurd_sizes() -> impl Iterator<Item = usize> {
    [usize::MAX, isize::MAX as usize, 1 << 63, 1 << 61, 1 << 60, 1 << 48, 1 << 47, 1 << 40]
        .into_iter()
        .flat_map(|size| (0..70).flat_map(move |less| [size.wrapping_sub(less), size.saturating_add(less)]))
}

fn absurd_vectors() -> i32 {
    for size in absurd_sizes() {
        if Vec::<u8>::new().try_reserve_exact(size).is_ok() || Vec::<[u64; 64]>::new().try_reserve_exact(size).is_ok() {
            return 1;
        }
    }
    0
}

fn absurd_blocks() -> i32 {
    for size in absurd_sizes() {
        let given = [
            ExVec::<u8>::new(size).is_ok(),
            ExVec::<u64>::new(size).is_ok(),
            ExVec::<[u64; 64]>::new(size).is_ok(),
            ExVec::<[u8; 4096]>::new(size).is_ok(),
        ];
        if given.contains(&true) {
            return 1;
        }
        let mut small = ExVec::<[u64; 64]>::new(2).expect("a block");
        if small.split_off(size).is_ok() {
            return 1;
        }
    }
    0
}

fn blocks_without_end() -> i32 {
    for bytes in [1usize, 64, 100_000] {
        let mut all = Vec::new();
        while let Ok(block) = ExVec::<u8>::new(bytes) {
            all.push(block);
        }
    }
    0
}

/// Each block holds the previous one, and all are freed with the last.
fn long_chain() -> i32 {
    for _ in 0..3 {
        let mut chain = ExBox::new([0u64; 8]).expect("a block");
        for _ in 0..CHAIN {
            let Ok(mut next) = ExBox::new([1u64; 8]) else { break };
            if next.attach(chain).is_err() {
                return 2;
            }
            chain = next;
        }
        drop(chain);
    }
    0
}
