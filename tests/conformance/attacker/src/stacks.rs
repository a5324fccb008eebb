//! Acts that exhaust a stack.

use core::arch::asm;
use core::hint::black_box;

use crate::Act;
use crate::faults::on_thread;
use crate::raw::{entry_address, number_of, slot};

pub(crate) const ACTS: &[(&str, Act)] = &[
    ("recurse", |_| recurse(0) as i32),
    ("recurse-on-thread", |_| on_thread(|| _ = black_box(recurse(0)))),
    ("recurse-into-kernel", |_| recurse_into_kernel(0) as i32),
    ("big-frame", |_| big_frame()),
    ("call-at-stack-end", |_| call_at_stack_end()),
];

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

/// Calls the kernel with the stack pointer just above the guard, without room for it.
fn call_at_stack_end() -> i32 {
    let stack = slot() + 20 * 1024;
    let entry = entry_address(number_of("process_id"));
    // SAFETY: the stack below the present frame is unused; it does not return.
    unsafe {
        asm!("mov rsp, {stack}", "call {entry}", "ud2", stack = in(reg) stack, entry = in(reg) entry, options(noreturn))
    }
}
