//! Starts children that start children.
//!
//! Deliberately not here: an unbounded bomb; each of these has a depth.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

use alloc::string::ToString;
use alloc::vec::Vec;

use sip::Deadline;
use sip::process::{Child, create};

sip::startup!();

const OWN_NAME: &str = "hostile-child-bomb";
const NUMBER_PARAMETER: usize = 0;
/// Limit in the manifest.
const CHILDREN: usize = 4;
/// Attempt numbers from here on encode a depth: the number of further generations.
const RELEASED: i64 = 100;
const HELD: i64 = 200;

/// Makes the attempt.
pub fn main(startup: Startup) -> i32 {
    match startup.attempt {
        0 => more_than_allowed(),
        depth @ RELEASED..HELD => {
            drop(children(depth, RELEASED));
            0
        }
        depth => {
            // Every child that ends is restarted.
            let mut held = children(depth, HELD);
            loop {
                held.retain(|child| child.wait_until(Deadline::PASSED).is_err());
                held.extend(children(depth, HELD));
                sip::thread::sleep(Deadline::after_ms(1));
            }
        }
    }
}

/// Creates as many children as possible, one generation less deep.
fn children(depth: i64, least: i64) -> Vec<Child> {
    if depth == least {
        return Vec::new();
    }
    let number = (depth - 1).to_string();
    let one = || create(OWN_NAME).ok()?.parameter(NUMBER_PARAMETER, &number).and_then(Child::start).ok();
    core::iter::from_fn(one).take(CHILDREN).collect()
}

fn more_than_allowed() -> i32 {
    for _ in 0..3 {
        let children: Vec<Child> = core::iter::from_fn(|| create(OWN_NAME).ok()).take(1000).collect();
        if children.len() != CHILDREN {
            return 1;
        }
    }
    0
}
