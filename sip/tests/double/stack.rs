//! Threads on stack slots with a thread block at the top.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::arch::asm;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::Result as Caught;

use abi::limits::STACK_SLOT_BYTES;
use abi::{AbiTable, ThreadBlock};

/// Zeroed space above the first frame: the unwinder of a panic's backtrace takes it for frames of the caller, and a
/// return address of zero for the end of the stack.
const UNWINDER_BYTES: usize = 4096;

static NEXT_THREAD: AtomicU64 = AtomicU64::new(1);

struct Call<F, T> {
    body: Option<F>,
    result: Option<Caught<T>>,
}

extern "C" fn trampoline<F: FnOnce() -> T, T>(call: *mut Call<F, T>) {
    // SAFETY: `run` passes its own local, which it does not touch meanwhile.
    let call = unsafe { &mut *call };
    if let Some(body) = call.body.take() {
        call.result = Some(catch_unwind(AssertUnwindSafe(body)));
    }
}

/// Runs `body` as the thread of a SIP would run; panics pass through.
pub fn run<T>(body: impl FnOnce() -> T) -> T {
    run_on(super::kernel::table(), body)
}

pub(super) fn run_on<F: FnOnce() -> T, T>(table: &'static AbiTable, body: F) -> T {
    let layout = Layout::from_size_align(STACK_SLOT_BYTES, STACK_SLOT_BYTES).unwrap();
    let mut call = Call { body: Some(body), result: None };
    // SAFETY: the slot is new, aligned and large enough; the block lies in its last KiB and the stack
    // grows down from there. `trampoline` preserves the callee-saved registers; r12 holds the
    // old stack pointer meanwhile.
    unsafe {
        let slot = alloc_zeroed(layout);
        let block = slot.add(STACK_SLOT_BYTES - size_of::<ThreadBlock>()).cast::<ThreadBlock>();
        (*block).abi_table = table as *const AbiTable as u64;
        (*block).thread = NEXT_THREAD.fetch_add(1, Ordering::Relaxed);
        asm!(
            "mov r12, rsp",
            "mov rsp, {stack}",
            "call {trampoline}",
            "mov rsp, r12",
            stack = in(reg) block.byte_sub(UNWINDER_BYTES),
            trampoline = in(reg) trampoline::<F, T> as *const (),
            in("rdi") &mut call,
            out("r12") _,
            clobber_abi("C"),
        );
        dealloc(slot, layout);
    }
    match call.result.unwrap() {
        Ok(value) => value,
        Err(panic) => resume_unwind(panic),
    }
}

/// The calling thread's block, found as the kernel finds it.
pub(super) fn block() -> *mut ThreadBlock {
    let stack: usize;
    // SAFETY: reads a register.
    unsafe { asm!("mov {}, rsp", out(reg) stack) };
    ((stack | (STACK_SLOT_BYTES - 1)) - (size_of::<ThreadBlock>() - 1)) as *mut ThreadBlock
}
