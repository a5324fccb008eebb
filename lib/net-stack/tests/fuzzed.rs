//! Runs the fuzz target `net_stack` without a fuzzer: on its seed inputs, and for some time on random bytes.

mod wire;

#[path = "fuzzed/frames.rs"]
mod frames;
#[path = "../../../fuzz/replay.rs"]
mod replay;

use std::path::Path;

use wire::{Numbers, raw};

fn run_some(first: u64, count: u64) {
    for seed in first..first + count {
        let mut numbers = Numbers::new(seed);
        let length = numbers.next() % 1500;
        let bytes: Vec<u8> = (0..length).map(|_| numbers.next() as u8).collect();
        println!("seed {seed}");
        frames::run(&bytes);
    }
}

#[test]
fn damaged_inputs_do_no_harm() {
    replay::replay(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fuzzed/inputs"), 100, frames::run);
}

#[test]
fn any_bytes_do_no_harm() {
    run_some(0, 1500);
}

#[test]
#[ignore = "some minutes"]
fn any_bytes_do_no_harm_for_long() {
    run_some(1_000_000, 200_000);
}
