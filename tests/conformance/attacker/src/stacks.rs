//! Acts that exhaust a stack.

use core::arch::asm;
use core::hint::black_box;

use sip::abi::{limits, stack};

use crate::Act;
use crate::faults::on_thread;
use crate::raw::{entry_address, number_of, stack_start};

pub(crate) const ACTS: &[(&str, Act)] = &[
    ("recurse", |_| recurse(0) as i32),
    ("recurse-on-thread", |_| on_thread(|| _ = black_box(recurse(0)))),
    ("recurse-into-kernel", |_| recurse_into_kernel(0) as i32),
    ("big-frame", |_| big_frame()),
    ("call-at-stack-end", |_| call_at_stack_end()),
    ("use-stacks", |_| use_stacks()),
    ("stack-quota", |_| stack_quota()),
];

/// Left of a stack that is used to its end: room for the calls there.
const LEFT_BYTES: usize = 4096;

#[inline(never)]
#[expect(unconditional_recursion, reason = "that is the attack")]
fn recurse(depth: u64) -> u64 {
    let frame = black_box([depth; 16]);
    recurse(depth + 1) + frame[(depth % 16) as usize]
}

#[inline(never)]
#[expect(unconditional_recursion, reason = "that is the attack")]
fn recurse_into_kernel(depth: u64) -> u64 {
    let frame = black_box([depth; 16]);
    sip::thread::yield_now();
    recurse_into_kernel(depth + 1) + frame[(depth % 16) as usize]
}

#[inline(never)]
fn big_frame() -> i32 {
    let mut frame = [0u8; 1 << 20];
    black_box(&mut frame)[77] = 1;
    i32::from(frame[black_box(77)])
}

/// Goes down until little is left, with a frame of its own at each depth; returns the number of frames that are as they were
/// written.
#[inline(never)]
fn descend(depth: usize) -> usize {
    let frame = black_box([depth as u64; 100]);
    let below = if sip::thread::stack_left() < LEFT_BYTES { 0 } else { descend(depth + 1) };
    below + usize::from(black_box(&frame).iter().all(|&word| word == depth as u64))
}

/// Uses nearly all of two stacks at the same time, and again.
fn use_stacks() -> i32 {
    let whole = stack::bytes_at(stack_start()) - limits::STACK_RESERVE_BYTES;
    for _ in 0..2 {
        let other = sip::thread::spawn(|| (sip::thread::stack_left(), descend(0))).expect("a thread");
        let own = (sip::thread::stack_left(), descend(0));
        for (left, frames) in [own, other.join().expect("it ends")] {
            assert!(left <= whole && left > whole - 8192, "{left} bytes are left at the start, of {whole}");
            assert!(frames > (whole - 16384) / 1024, "{frames} frames");
        }
    }
    0
}

/// The quota is enough for two stacks at a time, and what the second cost is given back with it.
fn stack_quota() -> i32 {
    let used = || sip::memory::usage().used_bytes;
    let beyond = stack::pages_beyond_usual(stack::bytes_at(stack_start())) * limits::PAGE_BYTES;
    let mut alone = used();
    for round in 0..4 {
        let second = sip::thread::spawn(|| sip::thread::sleep(sip::Deadline::after_ms(200))).expect("a second thread");
        assert!(used() >= alone + beyond);
        let third = sip::thread::spawn(|| {});
        assert!(matches!(third, Err(sip::Status::QuotaExceeded)), "a third thread");
        second.join().expect("it ends");
        // The heap may grow in the first round.
        assert!(round == 0 || used() == alone);
        alone = used();
    }
    0
}

/// Calls the kernel with the stack pointer just above the guard, without room for it.
fn call_at_stack_end() -> i32 {
    let stack = stack_start() + 20 * 1024;
    let entry = entry_address(number_of("process_id"));
    // SAFETY: the stack below the present frame is unused; it does not return.
    unsafe {
        asm!("mov rsp, {stack}", "call {entry}", "ud2", stack = in(reg) stack, entry = in(reg) entry, options(noreturn))
    }
}
