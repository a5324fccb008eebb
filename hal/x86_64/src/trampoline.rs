//! From an interrupt back onto a SIP's stack: saving everything, calling the kernel, restoring.
//!
//! [`interrupt`] and [`fault`] are instruction addresses at which a struck thread is made to go on, with
//! interrupts on. Images have no vector instructions beyond SSE2 (checked at install), so FXSAVE saves
//! all vector state. Deliberately not here: the decision to do so (`interrupts`) and the switch of
//! stacks (the kernel).

use core::arch::naked_asm;
use core::sync::atomic::{AtomicUsize, Ordering};

use hal_api::KernelEntries;

/// Bytes below the stack pointer that code may use without moving it (System V ABI 3.2.2).
pub(crate) const RED_ZONE_BYTES: usize = 128;

/// All vector exceptions masked, round to nearest: what the System V ABI has at program start.
static VECTOR_CONTROL: u32 = 0x1f80;
static INTERRUPT: AtomicUsize = AtomicUsize::new(0);
static FAULT: AtomicUsize = AtomicUsize::new(0);

/// Tells the trampolines what to call.
pub(crate) fn prepare(entries: &KernelEntries) {
    INTERRUPT.store(entries.interrupt as usize, Ordering::SeqCst);
    FAULT.store(entries.fault as usize, Ordering::SeqCst);
}

/// Where a struck thread goes on to be interrupted. The stack pointer must be `RED_ZONE_BYTES + 8`
/// below that of the struck code, and the word there the struck instruction's address.
pub(crate) fn interrupt() -> usize {
    interrupt_trampoline as *const () as usize
}

/// Where a struck thread goes on to be ended. The stack pointer must be 16-byte-aligned and RDI hold
/// the address of a [`hal_api::Fault`] above it.
pub(crate) fn fault() -> usize {
    fault_trampoline as *const () as usize
}

/// Runs on the SIP's stack. What is kept over the call of the kernel is kept on that stack alone, because
/// the thread may go on on another processor.
#[unsafe(naked)]
extern "C" fn interrupt_trampoline() {
    naked_asm!(
        "pushfq",
        "push rax",
        "push rcx",
        "push rdx",
        "push rbx",
        "push rbp",
        "push rsi",
        "push rdi",
        "push r8",
        "push r9",
        "push r10",
        "push r11",
        "cld",
        "mov rbx, rsp",
        "sub rsp, 512",
        "and rsp, -16",
        "fxsave64 [rsp]",
        "fninit",
        "ldmxcsr [rip + {control}]",
        "call [rip + {interrupt}]",
        "fxrstor64 [rsp]",
        "mov rsp, rbx",
        "pop r11",
        "pop r10",
        "pop r9",
        "pop r8",
        "pop rdi",
        "pop rsi",
        "pop rbp",
        "pop rbx",
        "pop rdx",
        "pop rcx",
        "pop rax",
        "popfq",
        "ret {red_zone}",
        control = sym VECTOR_CONTROL,
        interrupt = sym INTERRUPT,
        red_zone = const RED_ZONE_BYTES,
    )
}

#[unsafe(naked)]
extern "C" fn fault_trampoline() {
    naked_asm!(
        "cld",
        "fninit",
        "ldmxcsr [rip + {control}]",
        "call [rip + {fault}]",
        "ud2",
        control = sym VECTOR_CONTROL,
        fault = sym FAULT,
    )
}
