//! Calls without arguments, or with text and memory only: many of them use the thread's message buffer.

use alloc::rc::Rc;
use alloc::string::String;
use alloc::vec::Vec;

use hostile_contract::pattern;
use sip::Deadline;
use sip::exheap::ExVec;
use sip::sync::Event;

use crate::hostile::HostileValue;
use crate::numbers::Numbers;
use crate::world::{World, finding};

/// Occasionally longer than the message buffer.
const LONGEST_TEXT: usize = 700;

/// Makes one of these calls.
pub(crate) fn step(world: &Rc<World>) {
    match world.numbers.below(4) {
        0 => heap(world),
        1 => {
            let _ = sip::device::exists(&text(world));
        }
        2 => name_something(world),
        _ => without_context(&world.numbers),
    }
}

/// Text that imitates a block's or endpoint's words in the message buffer.
fn text(world: &World) -> String {
    let numbers = &world.numbers;
    let mut bytes = Vec::new();
    let length = numbers.below(LONGEST_TEXT);
    while bytes.len() < length {
        let word = match numbers.below(6) {
            0 => 1,
            1 => 64,
            2 => numbers.next() & 0x7f7f,
            3 => 4096,
            // Handles are small numbers with a kind.
            4 => ((1 + numbers.next() % 6) << 56) | (1 << 32) | (numbers.next() % 64),
            _ => world.addresses[numbers.below(3)] + 8 * (numbers.next() % 512),
        };
        bytes.extend_from_slice(&word.to_le_bytes());
    }
    bytes.truncate(length);
    match String::from_utf8(bytes) {
        Ok(text) => text,
        // Every byte unchanged if representable, or none.
        Err(error) => error.as_bytes().iter().map(|byte| char::from(byte & 0x7f)).collect(),
    }
}

fn name_something(world: &World) {
    let name = text(world);
    match world.numbers.below(6) {
        0 => drop(sip::process::create(&name)),
        1 => drop(sip::config::optional::<HostileValue>(world.numbers.below(5), "value")),
        2 => drop(sip::config::repeated::<HostileValue>(world.numbers.below(5), "value")),
        3 => {
            let _ = sip::programs::uninstall(&name);
        }
        4 => {
            let _ = sip::device::Device::open(world.numbers.below(3));
        }
        _ => drop(sip::diagnostics::processes()),
    }
}

/// Vectors on the program's own heap, each with its canary.
fn heap(world: &World) {
    let numbers = &world.numbers;
    match world.take(&world.heap) {
        Some(mut words) if numbers.once_in(2) => {
            check_words(&words);
            let seed = words[0];
            words.resize(1 + numbers.below(6000), 0);
            fill(&mut words, seed ^ 1);
            world.add(&world.heap, words);
        }
        Some(words) => check_words(&words),
        None => {}
    }
    let mut words = alloc::vec![0; 1 + numbers.below(600)];
    fill(&mut words, numbers.next());
    world.add(&world.heap, words);
}

fn fill(words: &mut [u64], seed: u64) {
    pattern::fill(words, seed);
    words[0] = seed;
}

fn check_words(words: &[u64]) {
    let seed = words[0];
    if words.iter().zip(0..).skip(1).any(|(&found, index)| found != pattern::word(seed, index)) {
        finding("a vector on the heap was overwritten");
    }
}

/// Checks that all of them are unchanged.
pub(crate) fn check_heap(heap: &[Vec<u64>]) {
    for words in heap {
        check_words(words);
    }
}

/// Calls that are valid anywhere.
pub(crate) fn without_context(numbers: &Numbers) {
    match numbers.below(14) {
        0 => sip::thread::yield_now(),
        1 => drop(alloc::vec![1u8; 1 + numbers.below(100_000)]),
        2 => drop(ExVec::<u64>::new(numbers.below(100))),
        3 => drop(hostile_contract::talk::new_channel()),
        4 => drop(Event::auto()),
        5 => _ = sip::memory::usage(),
        6 => _ = sip::thread::stack_left(),
        7 => _ = sip::process::id(),
        8 => _ = sip::config::parameter_bytes(numbers.below(5)),
        9 => _ = sip::time::monotonic(),
        10 => sip::thread::sleep(Deadline::after_ns(1 + numbers.next() % 20_000)),
        11 => _ = sip::device::exists(&"x".repeat(numbers.below(LONGEST_TEXT))),
        12 => _ = sip::debug::cycles(),
        _ => sip::debug::note(numbers.next(), 0),
    }
}
