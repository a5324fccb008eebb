//! The way from a signal handler back to a SIP's stack: saves all registers, calls the kernel, restores.
//!
//! [`interrupt`] and [`fault`] are the addresses to which an interrupted thread is redirected.
//! Deliberately not here: the decision to do so (`signal`) and the switch of stacks (the kernel).

use std::arch::naked_asm;
use std::arch::x86_64::__cpuid_count;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use hal_api::KernelEntries;

/// Bytes below the stack pointer that code may use without moving it (System V ABI 3.2.2).
pub(crate) const RED_ZONE_BYTES: usize = 128;

/// x87, SSE, AVX, AVX-512 (three components). Not PKRU, which belongs to the host thread, and not AMX, which
/// Linux keeps disabled until a process requests it.
const SAVED_COMPONENTS: u64 = 0b1110_0111;
/// Size of the FXSAVE area.
const LEGACY_BYTES: usize = 512;
const HEADER_BYTES: usize = 64;
/// MXCSR: all exceptions masked, round to nearest, as the System V ABI has it at program start.
static VECTOR_CONTROL: AtomicU64 = AtomicU64::new(0x1f80);

static INTERRUPT: AtomicUsize = AtomicUsize::new(0);
static FAULT: AtomicUsize = AtomicUsize::new(0);
static SAVE_BYTES: AtomicUsize = AtomicUsize::new(LEGACY_BYTES);
/// The components that XSAVE saves; 0: the processor has only FXSAVE.
static SAVE_MASK: AtomicU64 = AtomicU64::new(0);

/// Sets the functions that the trampolines call, and the size of this processor's vector state.
pub(crate) fn prepare(entries: &KernelEntries) {
    INTERRUPT.store(entries.interrupt as usize, Ordering::SeqCst);
    FAULT.store(entries.fault as usize, Ordering::SeqCst);
    let mask = enabled_components();
    SAVE_MASK.store(mask, Ordering::SeqCst);
    SAVE_BYTES.store(save_bytes(mask), Ordering::SeqCst);
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

/// Returns the vector state enabled by the operating system, among the components saved here.
fn enabled_components() -> u64 {
    if !std::arch::is_x86_feature_detected!("xsave") {
        return 0;
    }
    let (low, high): (u32, u32);
    // SAFETY: XGETBV of register 0 exists where the operating system has enabled XSAVE, which the
    // detection above checks; it touches no memory.
    unsafe {
        std::arch::asm!("xgetbv", in("ecx") 0, out("eax") low, out("edx") high, options(nomem, nostack, preserves_flags));
    }
    (u64::from(high) << 32 | u64::from(low)) & SAVED_COMPONENTS
}

/// Returns the size of the area that XSAVE writes in its standard format (Intel SDM volume 1, 13.4).
fn save_bytes(mask: u64) -> usize {
    (2..u64::BITS)
        .filter(|component| mask >> component & 1 == 1)
        .map(|component| {
            let leaf = __cpuid_count(0xd, component);
            leaf.ebx as usize + leaf.eax as usize
        })
        .fold(LEGACY_BYTES + HEADER_BYTES, usize::max)
}

/// Runs on the SIP's stack. State is kept on that stack only across the kernel call, because
/// the thread may resume on another host thread.
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
        "push r12",
        "push r13",
        "push r14",
        "push r15",
        "cld",
        "mov rbp, rsp",
        "sub rsp, [rip + {bytes}]",
        "and rsp, -64",
        "mov rax, [rip + {mask}]",
        "test rax, rax",
        "jz 2f",
        // XRSTOR faults unless the header is zero after its first word.
        "xor edx, edx",
        "mov [rsp + 512], rdx",
        "mov [rsp + 520], rdx",
        "mov [rsp + 528], rdx",
        "mov [rsp + 536], rdx",
        "mov [rsp + 544], rdx",
        "mov [rsp + 552], rdx",
        "mov [rsp + 560], rdx",
        "mov [rsp + 568], rdx",
        "xsave64 [rsp]",
        "jmp 3f",
        "2:",
        "fxsave64 [rsp]",
        "3:",
        "fninit",
        "ldmxcsr [rip + {control}]",
        "call [rip + {interrupt}]",
        "mov rax, [rip + {mask}]",
        "test rax, rax",
        "jz 4f",
        "xor edx, edx",
        "xrstor64 [rsp]",
        "jmp 5f",
        "4:",
        "fxrstor64 [rsp]",
        "5:",
        "mov rsp, rbp",
        "pop r15",
        "pop r14",
        "pop r13",
        "pop r12",
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
        bytes = sym SAVE_BYTES,
        mask = sym SAVE_MASK,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_save_area_fits_the_reserve_of_a_stack() {
        let bytes = save_bytes(enabled_components());
        assert!(bytes >= LEGACY_BYTES + HEADER_BYTES);
        assert!(bytes + RED_ZONE_BYTES + 17 * 8 + 64 < abi::limits::STACK_RESERVE_BYTES / 4, "{bytes} bytes");
    }
}
