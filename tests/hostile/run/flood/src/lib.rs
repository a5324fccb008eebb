//! Writes more debug output than fits a pipe and a queue.
//!
//! The suite runs it with a reader and, hosted, without one: it must delay no other program.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

use alloc::vec::Vec;

use sip::{log, thread};

sip::startup!();

const LINES: usize = 300;
const LINE_BYTES: usize = 900;
const THREADS: usize = 4;

/// Makes the attempt.
pub fn main(startup: Startup) -> i32 {
    match startup.attempt {
        0 => lines(LINES),
        1 => (0..LINES / 10).for_each(|_| log!("{}", "\n".repeat(LINE_BYTES))),
        _ => {
            let threads: Vec<_> =
                core::iter::from_fn(|| thread::spawn(|| lines(LINES / THREADS)).ok()).take(THREADS).collect();
            if threads.len() != THREADS {
                return 2;
            }
            for thread in threads {
                if thread.join().is_err() {
                    return 2;
                }
            }
        }
    }
    0
}

fn lines(count: usize) {
    (0..count).for_each(|number| log!("{number:LINE_BYTES$}"));
}
