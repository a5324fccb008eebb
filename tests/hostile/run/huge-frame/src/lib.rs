//! Skips the guard pages of its stack with one huge frame, towards the stacks of others.
//!
//! Stacks lie in adjacent slots. A frame larger than the rest of its slot, of which only the far end is touched, would
//! skip the guard pages if the compiler did not probe each page of a frame in order. Space for the arguments of a call
//! must not be allocated without probes either.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

use core::hint::black_box;

sip::startup!();

/// Bytes of this program's stacks, including guard and thread block.
const STACK_BYTES: usize = sip::abi::stack::USUAL_BYTES;
/// Bytes from one stack to the next.
const SLOT_BYTES: usize = sip::abi::limits::STACK_SLOT_BYTES;

/// One frame of the size that the attempt selects.
pub fn main(startup: Startup) -> i32 {
    match startup.attempt {
        0 => frame::<{ STACK_BYTES }>(),
        1 => frame::<{ SLOT_BYTES + STACK_BYTES / 2 }>(),
        2 => frame::<{ 2 * SLOT_BYTES }>(),
        3 => on_thread(frame::<{ SLOT_BYTES + STACK_BYTES / 2 }>),
        4 => recurse::<{ STACK_BYTES / 64 }>(),
        5 => in_kernel::<{ STACK_BYTES / 64 }>(),
        6 => on_thread(in_kernel::<100>),
        7 => argument(),
        other => panic!("there is no attempt {other}"),
    }
    1
}

fn on_thread(body: fn()) {
    sip::thread::spawn(body).expect("a thread").join().expect("it ends");
}

/// Touches only the far end of a frame.
#[inline(never)]
fn frame<const BYTES: usize>() {
    let mut frame = core::mem::MaybeUninit::<[u8; BYTES]>::uninit();
    black_box(&mut frame);
    black_box(frame.write([0x61; BYTES])[black_box(0)]);
}

#[inline(never)]
#[expect(unconditional_recursion, reason = "that is the attack")]
fn recurse<const BYTES: usize>() {
    let frame = black_box([0x61u8; BYTES]);
    recurse::<BYTES>();
    black_box(frame);
}

/// Recursion that calls the kernel at each depth.
#[inline(never)]
#[expect(unconditional_recursion, reason = "that is the attack")]
fn in_kernel<const BYTES: usize>() {
    let frame = black_box([0x61u8; BYTES]);
    sip::thread::yield_now();
    in_kernel::<BYTES>();
    black_box(frame);
}

/// Passed by value on the stack.
#[repr(C)]
#[derive(Clone, Copy)]
struct Large([u8; STACK_BYTES]);

static LARGE: Large = Large([0x61; STACK_BYTES]);

type TakesLarge = extern "C" fn(Large);
type TakesMany = extern "C" fn(u64, u64, u64, u64, u64, u64, u64, u64, u64, u64, u64, u64);

extern "C" fn large(_: Large) {}

extern "C" fn many(_: u64, _: u64, _: u64, _: u64, _: u64, _: u64, _: u64, _: u64, _: u64, _: u64, _: u64, _: u64) {}

/// Calls that would rather push their arguments make LLVM allocate one area for the arguments of all calls, which is
/// part of the frame and probed page by page.
#[inline(never)]
fn argument() {
    let takes_many: TakesMany = black_box(many);
    let takes_large: TakesLarge = black_box(large);
    takes_many(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12);
    takes_many(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12);
    takes_many(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12);
    takes_large(*black_box(&LARGE));
}
