//! The way from an interrupt back to a SIP's stack: saves the registers, calls the kernel, restores.
//!
//! [`interrupt`] and [`fault`] are the addresses to which an interrupted thread is redirected, with
//! interrupts on. Images have no vector instructions beyond SSE2 (checked at install), so FXSAVE saves
//! all vector state. Deliberately not here: the decision to do so (`interrupts`) and the switch of
//! stacks (the kernel).

use core::arch::naked_asm;
use core::sync::atomic::{AtomicUsize, Ordering};

use hal_api::KernelEntries;

/// Bytes below the stack pointer that code may use without moving it (System V ABI 3.2.2).
pub(crate) const RED_ZONE_BYTES: usize = 128;

/// MXCSR: all exceptions masked, round to nearest, as the System V ABI has it at program start.
pub(crate) static VECTOR_CONTROL: u32 = 0x1f80;
static INTERRUPT: AtomicUsize = AtomicUsize::new(0);
static FAULT: AtomicUsize = AtomicUsize::new(0);

/// Sets the functions that the trampolines call.
pub(crate) fn prepare(entries: &KernelEntries) {
    INTERRUPT.store(entries.interrupt as usize, Ordering::SeqCst);
    FAULT.store(entries.fault as usize, Ordering::SeqCst);
}

/// Returns the address to which a thread is redirected to be interrupted. The stack pointer must be `RED_ZONE_BYTES + 8`
/// below that of the interrupted code, and the word there the interrupted instruction's address.
pub(crate) fn interrupt() -> usize {
    interrupt_trampoline as *const () as usize
}

/// Returns the address to which a thread is redirected to be ended. The stack pointer must be 16-byte-aligned and RDI
/// hold the address of a [`hal_api::Fault`] above it.
pub(crate) fn fault() -> usize {
    fault_trampoline as *const () as usize
}

/// Runs on the SIP's stack. State is kept on that stack only across the kernel call, because
/// the thread may resume on another processor.
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
