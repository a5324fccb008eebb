//! Operations behind `dyn`: calls of functions that only the data knows.

use alloc::boxed::Box;
use alloc::vec::Vec;

use crate::numbers::{Numbers, digest};

const OPERATIONS: u64 = 64;
const ROUNDS: u32 = 20_000;

trait Operation {
    fn apply(&self, value: u64) -> u64;
}

struct Add(u64);
struct Turn(u32);
struct Mix;
struct Either(u64, Box<dyn Operation>);

impl Operation for Add {
    fn apply(&self, value: u64) -> u64 {
        value.wrapping_add(self.0)
    }
}

impl Operation for Turn {
    fn apply(&self, value: u64) -> u64 {
        value.rotate_left(self.0)
    }
}

impl Operation for Mix {
    fn apply(&self, value: u64) -> u64 {
        (value ^ value >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9)
    }
}

impl Operation for Either {
    fn apply(&self, value: u64) -> u64 {
        if value & self.0 == 0 { self.1.apply(value) } else { value ^ self.0 }
    }
}

pub fn run() -> u64 {
    let mut numbers = Numbers::of(0xca115);
    let operations: Vec<Box<dyn Operation>> = (0..OPERATIONS).map(|_| operation(&mut numbers)).collect();
    let round = |value, _| operations.iter().fold(value, |value, operation| operation.apply(value));
    digest([(0..ROUNDS).fold(1, round)])
}

fn operation(numbers: &mut Numbers) -> Box<dyn Operation> {
    match numbers.below(4) {
        0 => Box::new(Add(numbers.next())),
        1 => Box::new(Turn(numbers.below(64) as u32)),
        2 => Box::new(Mix),
        _ => Box::new(Either(1 << numbers.below(64), Box::new(Add(numbers.next())))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn either_asks_its_bit() {
        let either = Either(2, Box::new(Add(1)));
        assert_eq!((either.apply(4), either.apply(6)), (5, 4));
    }
}
