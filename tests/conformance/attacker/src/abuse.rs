//! Garbage for one function of the table, by its number.

use alloc::vec::Vec;

use sip::Deadline;
use sip::abi::{FUNCTIONS, Function, limits};

use crate::Act;
use crate::objects::{KINDS, end_thread, make};
use crate::raw::{call, must, put_text};

pub(crate) const ACTS: &[(&str, Act)] = &[("garbage", |number| garbage(number as u32 as usize, number >> 32))];

const CALLS: u64 = 3000;

/// A seeded pseudo-random generator.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
}

/// Calls a function with arguments from a pool of plausible numbers.
fn garbage(number: usize, seed: u64) -> i32 {
    let function = &FUNCTIONS[number];
    let mut numbers = Numbers(0x2545_f491_4f6c_dd1d ^ (number as u64) << 8 ^ seed << 40);
    let mut pool: Vec<u64> = KINDS.iter().filter_map(|&kind| make(kind).ok()).collect();
    pool.extend([0, 1, 2, 7, 8, 63, 64, 65, 511, 512, 513, 4096, 1 << 16, 1 << 31, 1 << 32, 1 << 47, 1 << 63]);
    pool.extend([u64::MAX, u64::MAX - 1, i64::MAX as u64, must("memory_allocate", &[2])]);
    for _ in 0..CALLS {
        for place in 0..limits::MESSAGE_WORDS {
            let chosen = numbers.next();
            let word = pool[chosen as usize % pool.len()];
            crate::raw::set_word(place, if chosen >> 60 == 0 { chosen } else { word });
        }
        if numbers.next().is_multiple_of(3) {
            put_text("conformance-attacker");
        }
        let arguments: Vec<u64> =
            function.arguments.iter().map(|&name| argument(function, name, &pool, &mut numbers)).collect();
        let _ = call(number, &arguments);
    }
    0
}

fn argument(function: &Function, name: &str, pool: &[u64], numbers: &mut Numbers) -> u64 {
    let chosen = numbers.next();
    match (name, chosen >> 61) {
        // The handle is needed again.
        ("deadline", 0..4) => 0,
        ("deadline", _) => Deadline::after_ns(20_000).as_ns(),
        // Any other code harms only the process itself.
        ("entry", 0) => end_thread as extern "C" fn(u64) -> ! as usize as u64,
        // Debug output is for users.
        ("length", _) if function.name == "debug_write" => 513 | chosen << 10,
        ("length", 0..3) => 20,
        (_, 0) => chosen,
        _ => pool[chosen as usize % pool.len()],
    }
}
