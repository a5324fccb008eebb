//! Uses its stack up to the last bytes above the guard, then skips the guard or calls the kernel there.
//!
//! The compiler probes no page of a frame of up to 4096 bytes, and a call after it writes eight bytes below: a guard
//! of one page can be skipped from just above it, into the stack of another thread. The kernel runs on the caller's
//! stack: an entry that saves registers before it checks the remaining space faults on the guard, in the kernel.
//!
//! The distance of the last frame from the guard is up to the compiler, so it is searched by children, each of which
//! goes down 16 bytes further than the one before.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

use alloc::string::ToString;
use core::hint::black_box;
use core::mem::MaybeUninit;

use sip::abi::limits::{STACK_GUARD_BYTES, STACK_SLOT_BYTES};
use sip::abi::stack;
use sip::process::{EpitaphKind, create};

sip::startup!();

const OWN_NAME: &str = "hostile-stack-edge";
const NUMBER_PARAMETER: usize = 0;
/// Attempt numbers from here on are those of children that call the kernel: a thousand for each of [`ENTRIES`].
const CALLS: usize = 3000;
/// Calls without anything in between, of entries that save no register, one, and several before the check.
const ENTRIES: [Then; 3] = [yield_there, read_clock, exit_there];
/// Attempt numbers from here on are those of children that skip the guard.
const STEPS: usize = 2000;
/// Number of depths to try, and the step in bytes.
const DEPTHS: usize = 96;
const DEPTH_BYTES: usize = 16;
/// Words of the largest frame without a page probe, less the register saved above it.
const FRAME_WORDS: usize = 4096 / 8 - 1;

/// Action at the end of the stack; the second argument is the next function to call.
type Then = fn(usize, fn(usize)) -> usize;

/// Makes the attempt.
pub fn main(startup: Startup) -> i32 {
    match usize::try_from(startup.attempt).expect("attempts are numbers from 0") {
        0 => (0..ENTRIES.len()).map(|entry| all_overflow(CALLS + entry * 1000)).max().expect("some entries"),
        1 => all_overflow(STEPS),
        depth @ STEPS..CALLS => {
            let body = move || descend(depth - STEPS, step_over);
            sip::thread::spawn(body).expect("a thread").join().expect("it ends")
        }
        call => descend((call - CALLS) % 1000, ENTRIES[(call - CALLS) / 1000]),
    }
}

/// Checks whether each child ends by stack overflow.
fn all_overflow(first: usize) -> i32 {
    for number in first..first + DEPTHS {
        let child = create(OWN_NAME).expect("its own program").parameter(NUMBER_PARAMETER, &number.to_string());
        let end = child.and_then(|child| child.start()?.wait()).expect("a child that ends");
        if end.kind != EpitaphKind::StackOverflow {
            sip::log!("number {number}: {end}");
            return 1;
        }
    }
    0
}

/// Descends to about 1 KiB above the guard, and this many steps further.
fn descend(depth: usize, then: Then) -> i32 {
    let to = stack::start(address_here()) + STACK_GUARD_BYTES + 1024 - depth * DEPTH_BYTES;
    // With another frame below it, every other one ends between those of its neighbours.
    black_box(if depth.is_multiple_of(2) { down(to, then) } else { down_from_lower(to, then) });
    0
}

#[inline(never)]
fn address_here() -> usize {
    let here = black_box(0u8);
    (&raw const here).addr()
}

#[inline(never)]
fn down(to: usize, then: Then) -> usize {
    let here = black_box(0u64);
    let answer = if (&raw const here).addr() < to { then(to, stand) } else { down(to, then) };
    black_box(&here);
    black_box(answer)
}

#[inline(never)]
fn down_from_lower(to: usize, then: Then) -> usize {
    let here = black_box([0u64; 2]);
    let answer = down(to, then);
    black_box(&here);
    black_box(answer)
}

#[inline(never)]
fn yield_there(to: usize, _: fn(usize)) -> usize {
    sip::thread::yield_now();
    to
}

#[inline(never)]
fn read_clock(to: usize, _: fn(usize)) -> usize {
    black_box(sip::time::monotonic());
    to
}

#[inline(never)]
fn exit_there(_: usize, _: fn(usize)) -> usize {
    sip::process::exit(0)
}

/// Has a frame between the caller's and the next one's that is not touched before the call.
#[inline(never)]
fn step_over(to: usize, next: fn(usize)) -> usize {
    let mut frame = MaybeUninit::<[u64; FRAME_WORDS]>::uninit();
    next(to);
    black_box(&mut frame);
    to
}

/// Ends the process with the status of a successful attack if it runs on the stack of another thread.
#[inline(never)]
fn stand(to: usize) {
    if address_here() / STACK_SLOT_BYTES != to / STACK_SLOT_BYTES {
        sip::process::exit(1);
    }
}
