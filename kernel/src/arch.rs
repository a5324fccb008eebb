//! x86-64 parts of the kernel: the switch between two stacks, the per-processor base register, the stack pointer and
//! the cycle counter. Shared by hosted and bare machines.

use core::arch::{asm, naked_asm};
use core::sync::atomic::{AtomicBool, AtomicUsize};

/// Offset of the processor's own address in its [`Cpu`](crate::cpu::Cpu) block.
pub const CPU_SELF: usize = 0;
/// Offset of the pending flags in the block.
pub const CPU_PENDING: usize = 8;
/// Offset of the current thread in the block.
pub const CPU_CURRENT: usize = 16;
/// Offset of the current thread's stack limit in the block.
pub const CPU_STACK_LIMIT: usize = 24;

/// Returns the first word of the processor's block, which is the block's address.
#[inline(always)]
pub fn cpu_address() -> usize {
    let address;
    // SAFETY: GS base is set to a Cpu block before any kernel code runs on a processor, and the
    // block's first word is never written again. Not `pure`: a switch may change the processor.
    unsafe { asm!("mov {}, gs:[0]", out(reg) address, options(nostack, preserves_flags, readonly)) };
    address
}

/// Returns the word of the block that holds the current thread's address.
#[inline(always)]
pub fn cpu_current() -> usize {
    let address;
    // SAFETY: as for `cpu_address`; offset 16 is CPU_CURRENT, checked in cpu.rs.
    unsafe { asm!("mov {}, gs:[16]", out(reg) address, options(nostack, preserves_flags, readonly)) };
    address
}

/// The pending flags of the processor.
#[inline(always)]
pub fn cpu_pending() -> u32 {
    let pending;
    // SAFETY: as for `cpu_address`; offset 8 is CPU_PENDING, checked in cpu.rs.
    unsafe { asm!("mov {:e}, gs:[8]", out(reg) pending, options(nostack, preserves_flags, readonly)) };
    pending
}

/// Sets pending flags of the processor.
#[inline(always)]
pub fn cpu_set_pending(flags: u32) {
    // SAFETY: as for `cpu_address`; the word is an `AtomicU32`, and the instruction is atomic to all processors.
    unsafe { asm!("lock or dword ptr gs:[8], {:e}", in(reg) flags, options(nostack)) };
}

/// The stack pointer.
#[inline(always)]
pub fn stack_pointer() -> usize {
    let pointer;
    // SAFETY: reads a register. One value for a whole function is as good as many: nobody wants more than the slot, and
    // how much is left within a frame.
    unsafe { asm!("mov {}, rsp", out(reg) pointer, options(pure, nomem, nostack, preserves_flags)) };
    pointer
}

/// The lowest stack pointer with which the current thread may call the kernel.
#[inline(always)]
pub fn stack_limit() -> usize {
    let limit;
    // SAFETY: as for `cpu_address`; offset 24 is CPU_STACK_LIMIT, checked in cpu.rs.
    unsafe { asm!("mov {}, gs:[24]", out(reg) limit, options(nostack, preserves_flags, readonly)) };
    limit
}

/// The time-stamp counter.
#[inline(always)]
pub fn cycles() -> u64 {
    // SAFETY: RDTSC exists on every x86-64 processor and touches no memory.
    unsafe { core::arch::x86_64::_rdtsc() }
}

/// Loads words that code in a domain may be changing: each is read once.
///
/// # Safety
/// `from` is the first of 64 bytes that the kernel may read.
#[inline(always)]
pub unsafe fn load_words(from: usize) -> [u64; 8] {
    let mut words = [0; 8];
    for (half, at) in words.as_chunks_mut::<4>().0.iter_mut().zip([from, from + 32]) {
        let [first, second, third, fourth] = half;
        // SAFETY: the caller's.
        unsafe {
            asm!(
                "mov {}, [{at}]",
                "mov {}, [{at} + 8]",
                "mov {}, [{at} + 16]",
                "mov {}, [{at} + 24]",
                out(reg) *first,
                out(reg) *second,
                out(reg) *third,
                lateout(reg) *fourth,
                at = in(reg) at,
                options(nostack, preserves_flags, readonly),
            );
        }
    }
    words
}

/// Copies bytes that code in a domain may be changing: each is read once.
///
/// # Safety
/// `from` and `to` are the first of `bytes` bytes that the kernel may read and write, and do not overlap.
pub unsafe fn copy_bytes(from: usize, to: usize, bytes: usize) {
    // SAFETY: the caller's; the direction flag is clear in Rust code.
    unsafe {
        asm!(
            // Starting a string instruction takes longer than copying this many bytes.
            "cmp rcx, 256",
            "ja 5f",
            "sub rcx, 8",
            "jb 3f",
            "2:",
            "mov {word}, [rsi]",
            "mov [rdi], {word}",
            "add rsi, 8",
            "add rdi, 8",
            "sub rcx, 8",
            "jae 2b",
            "3:",
            "add rcx, 8",
            "jz 6f",
            "4:",
            "mov {word:l}, [rsi]",
            "mov [rdi], {word:l}",
            "inc rsi",
            "inc rdi",
            "dec rcx",
            "jnz 4b",
            "jmp 6f",
            "5:",
            "mov {word}, rcx",
            "shr rcx, 3",
            "rep movsq",
            "mov rcx, {word}",
            "and rcx, 7",
            "rep movsb",
            "6:",
            word = out(reg_abcd) _,
            inout("rsi") from => _,
            inout("rdi") to => _,
            inout("rcx") bytes => _,
            options(nostack)
        );
    }
}

/// Saves the calling context at `save`, continues the one saved as `load`, and then clears
/// `left`, which tells other processors that the old context is saved.
///
/// # Safety
/// `load` must be a stack pointer that `switch` saved or [`prepare_stack`] made, continued by no
/// other processor. The caller holds no lock and no reference that ends before it is continued.
#[unsafe(naked)]
pub unsafe extern "C" fn switch(save: &AtomicUsize, load: usize, left: &AtomicBool) {
    naked_asm!(
        "push rbx",
        "push rbp",
        "push r12",
        "push r13",
        "push r14",
        "push r15",
        "mov [rdi], rsp",
        "mov rsp, rsi",
        "mov byte ptr [rdx], 0",
        "pop r15",
        "pop r14",
        "pop r13",
        "pop r12",
        "pop rbp",
        "pop rbx",
        "ret",
    )
}

/// Entry of a new thread: `prepare_stack` left the kernel function to call first in rbx, the thread's entry in r12 and
/// its argument in r13.
#[unsafe(naked)]
extern "C" fn thread_start() {
    naked_asm!(
        // The stack is as the entry sees it, as after a call; the kernel's own call wants it aligned.
        "sub rsp, 8",
        "call rbx",
        "add rsp, 8",
        "mov rdi, r13",
        "mov rax, r12",
        // The entry sees the stack as after a call: aligned to 16 less 8. Its return address is 0.
        "xor ebx, ebx",
        "xor ebp, ebp",
        "xor r12d, r12d",
        "xor r13d, r13d",
        "jmp rax",
    )
}

/// Builds the first frame on a new thread's stack, so that [`switch`] to the result calls `arrive` and then starts
/// `entry` with `argument`.
///
/// # Safety
/// `top` is the 16-byte aligned upper end of a stack that nothing else uses.
pub unsafe fn prepare_stack(top: usize, arrive: extern "C" fn(), entry: usize, argument: usize) -> usize {
    // Layout, upwards: r15 r14 r13 r12 rbp rbx, address to return to, then the entry's own (zero)
    // return address. `thread_start` runs with rsp at the latter.
    let frame = [0, 0, argument, entry, 0, arrive as *const () as usize, thread_start as *const () as usize, 0];
    let pointer = top - size_of_val(&frame);
    // SAFETY: the caller gives the stack to us; the frame lies wholly below `top`.
    unsafe { core::ptr::write(pointer as *mut [usize; 8], frame) };
    pointer
}

/// First statement of a function that a SIP calls: if the stack has not the kernel's reserve and `$bytes` left, jumps to
/// the naked function `$used_up`, which does not return.
macro_rules! require_stack {
    (0, $used_up:path) => {
        // SAFETY: reads a register and a word of the processor's block, as `stack_limit` does. The function does not
        // return, and resets the stack: nothing of this frame is needed.
        unsafe {
            core::arch::asm!(
                "cmp rsp, gs:[{limit}]",
                "jb {used_up}",
                limit = const $crate::arch::CPU_STACK_LIMIT,
                used_up = sym $used_up,
                options(nostack, readonly)
            )
        };
    };
    ($bytes:expr, $used_up:path) => {
        // SAFETY: as above.
        unsafe {
            core::arch::asm!(
                "lea {lower}, [rsp - {bytes}]",
                "cmp {lower}, gs:[{limit}]",
                "jb {used_up}",
                lower = out(reg) _,
                bytes = const $bytes,
                limit = const $crate::arch::CPU_STACK_LIMIT,
                used_up = sym $used_up,
                options(nostack, readonly)
            )
        };
    };
}
pub(crate) use require_stack;

/// Body of a naked function that calls `$then`, which does not return, on the current thread's stack reset to its top.
/// `$stack_offset` is the offset of the stack's address in the thread's slot.
macro_rules! restart_stack {
    ($then:path, $stack_offset:expr) => {
        core::arch::naked_asm!(
            "mov rax, gs:[{current}]",
            "mov rsp, [rax + {stack}]",
            "add rsp, {top}",
            "call {then}",
            "ud2",
            current = const $crate::arch::CPU_CURRENT,
            stack = const $stack_offset,
            top = const abi::limits::STACK_SLOT_BYTES - size_of::<abi::ThreadBlock>(),
            then = sym $then,
        )
    };
}
pub(crate) use restart_stack;

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    #[test]
    fn any_number_of_bytes_is_copied_and_no_more() {
        let from: Vec<u8> = (0..600usize).map(|at| (at % 251) as u8 + 1).collect();
        for bytes in (0..300).chain([511, 512, 599]) {
            for start in [0, 1] {
                let mut to = alloc::vec![0u8; 620];
                let (source, place) = (from.as_ptr().expose_provenance(), to.as_mut_ptr().expose_provenance());
                // SAFETY: `from` has 600 bytes, `to` 620, and they are apart.
                unsafe { copy_bytes(source + start, place + 8, bytes) };
                assert!(to[..8].iter().chain(&to[8 + bytes..]).all(|&byte| byte == 0), "{bytes}");
                assert_eq!(to[8..8 + bytes], from[start..start + bytes], "{bytes}");
            }
        }
    }

    #[test]
    fn words_are_loaded_from_any_address() {
        let bytes: Vec<u8> = (0..72).collect();
        for first in 0..8 {
            // SAFETY: 64 bytes of the vector from there on.
            let words = unsafe { load_words(bytes.as_ptr().expose_provenance() + first) };
            assert_eq!(words.map(u64::to_le_bytes).concat(), bytes[first..first + 64]);
        }
    }
}
