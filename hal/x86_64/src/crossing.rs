//! The way into a domain and back: from `Machine::domain_enter` to ring 3 by SYSRET or IRET, and to its return by
//! SYSCALL or an interrupt.
//!
//! A processor keeps what it needs on the way in an [`Area`], which is mapped in every domain and reached through the GS
//! base register: while the processor is in a domain, and only then, SWAPGS leads to it. The kernel's GS and FS bases
//! are set again on the way back, because code in a domain can clear both by loading a selector. The thread's stack in
//! the kernel, which the domain does not have, waits with the registers that the kernel's functions keep, and the
//! addresses of the thread's context and of the exit to be filled in.
//!
//! From the moment that CR3 has a domain's tables until ring 3 starts, and from SYSCALL until CR3 has the kernel's,
//! nothing but this code, the area and registers is used, with interrupts off.

use core::arch::global_asm;
use core::mem::{MaybeUninit, offset_of};
use core::ptr;

use hal_api::{DomainContext, DomainExit, DomainId, Fault, FaultKind};
use x86_64::instructions::interrupts;
use x86_64::registers::model_specific::Msr;

use crate::domains::{self, USER_END};
use crate::interrupts::Frame;
use crate::processors;
use crate::trampoline::VECTOR_CONTROL;

/// Selectors of the descriptors of `processor_tables`.
pub(crate) const KERNEL_CODE: u16 = 8;
pub(crate) const KERNEL_DATA: u16 = 16;
pub(crate) const USER_DATA: u16 = 24 | 3;
pub(crate) const USER_CODE: u16 = 32 | 3;

/// Code of a domain in ring 0; by the selector it is known from the kernel's own.
pub(crate) const DOMAIN_CODE: u16 = 56;

const EFER: u32 = 0xc000_0080;
const STAR: u32 = 0xc000_0081;
const LSTAR: u32 = 0xc000_0082;
const SFMASK: u32 = 0xc000_0084;
pub(crate) const GS_BASE: u32 = 0xc000_0101;
pub(crate) const FS_BASE: u32 = 0xc000_0100;
const KERNEL_GS_BASE: u32 = 0xc000_0102;
const SYSENTER_CS: u32 = 0x174;
const EFER_SYSCALL: u64 = 1;

/// Flags that it always has: interrupts, and bit 1.
const FIXED_FLAGS: u64 = 0x202;
/// Flags that SYSCALL clears: trap, interrupt, direction, I/O privilege, nested task, resume, alignment check,
/// identification.
const CLEARED_FLAGS: u64 = 0x0025_7700;

/// What a processor needs on the way.
#[repr(C)]
pub(crate) struct Area {
    /// Value for CR3 in the kernel.
    pub(crate) kernel_root: u64,
    /// Stack pointer of the thread that is in a domain.
    kernel_stack: u64,
    /// Stack pointer in the domain, for a moment.
    user_stack: u64,
    pub(crate) kernel_gs: u64,
    pub(crate) kernel_fs: u64,
    /// RAX, then what IRET takes: RIP, CS, RFLAGS, RSP, SS.
    frame: [u64; 6],
}

/// How a thread came back: filled in on the way.
#[repr(C)]
struct Exit {
    kind: u64,
    gate: u64,
    arguments: [u64; 6],
    fault: Fault,
}

const INTERRUPT: u64 = 0;
const CALL: u64 = 1;
const MISSING: u64 = 2;
const FAULT: u64 = 3;

/// Vector state of a thread that has none of its own: default control words, zero registers.
#[repr(C, align(16))]
struct Vectors([u8; 512]);

static CLEAR_VECTORS: Vectors = {
    let mut bytes = [0; 512];
    (bytes[0], bytes[1]) = (0x7f, 0x03);
    (bytes[24], bytes[25]) = (0x80, 0x1f);
    Vectors(bytes)
};

global_asm!(
    ".pushsection .text.crossing, \"ax\"",
    ".p2align 4",
    ".globl crossing_enter, crossing_call, crossing_back",
    // Called with interrupts off: RDI the context, RSI the exit, RDX the value for CR3, RCX the area.
    "crossing_enter:",
    "    push rbx",
    "    push rbp",
    "    push r12",
    "    push r13",
    "    push r14",
    "    push r15",
    "    push rdi",
    "    push rsi",
    "    mov [rcx + {kernel_stack}], rsp",
    "    mov r8, rdx",
    "    cmp qword ptr [rdi + {is_whole}], 0",
    "    jne 2f",
    // After a call: what a function keeps, and its result. Nothing of the kernel's is left in the others.
    "    fxrstor64 [rip + {clear}]",
    "    mov rax, [rdi + {registers}]",
    "    mov rdx, [rdi + {registers} + 2 * 8]",
    "    mov rbx, [rdi + {registers} + 3 * 8]",
    "    mov rsp, [rdi + {registers} + 4 * 8]",
    "    mov rbp, [rdi + {registers} + 5 * 8]",
    "    mov r12, [rdi + {registers} + 12 * 8]",
    "    mov r13, [rdi + {registers} + 13 * 8]",
    "    mov r14, [rdi + {registers} + 14 * 8]",
    "    mov r15, [rdi + {registers} + 15 * 8]",
    "    mov rcx, [rdi + {instruction}]",
    "    mov r11, [rdi + {flags}]",
    "    xor esi, esi",
    "    xor edi, edi",
    "    xor r9d, r9d",
    "    xor r10d, r10d",
    "    mov cr3, r8",
    "    xor r8d, r8d",
    "    sysretq",
    // After an interrupt, and at the start: all of it.
    "2:  fxrstor64 [rdi + {vectors}]",
    "    mov rax, [rdi + {registers}]",
    "    mov [rcx + {frame}], rax",
    "    mov rax, [rdi + {instruction}]",
    "    mov [rcx + {frame} + 8], rax",
    "    mov rax, [rdi + {flags}]",
    "    mov [rcx + {frame} + 24], rax",
    "    mov rax, [rdi + {registers} + 4 * 8]",
    "    mov [rcx + {frame} + 32], rax",
    "    lea rsp, [rcx + {frame}]",
    "    mov rax, r8",
    "    mov rcx, [rdi + {registers} + 1 * 8]",
    "    mov rdx, [rdi + {registers} + 2 * 8]",
    "    mov rbx, [rdi + {registers} + 3 * 8]",
    "    mov rbp, [rdi + {registers} + 5 * 8]",
    "    mov rsi, [rdi + {registers} + 6 * 8]",
    "    mov r8, [rdi + {registers} + 8 * 8]",
    "    mov r9, [rdi + {registers} + 9 * 8]",
    "    mov r10, [rdi + {registers} + 10 * 8]",
    "    mov r11, [rdi + {registers} + 11 * 8]",
    "    mov r12, [rdi + {registers} + 12 * 8]",
    "    mov r13, [rdi + {registers} + 13 * 8]",
    "    mov r14, [rdi + {registers} + 14 * 8]",
    "    mov r15, [rdi + {registers} + 15 * 8]",
    "    mov rdi, [rdi + {registers} + 7 * 8]",
    "    mov cr3, rax",
    "    pop rax",
    "    iretq",
    // SYSCALL comes here: RCX the address after it, R11 the flags.
    ".p2align 4",
    "crossing_call:",
    "    swapgs",
    "    mov gs:[{user_stack}], rsp",
    "    mov rsp, gs:[{kernel_root}]",
    "    mov cr3, rsp",
    "    mov rsp, gs:[{kernel_stack}]",
    "    push rbx",
    "    mov rbx, [rsp + 16]",
    "    pop qword ptr [rbx + {registers} + 3 * 8]",
    "    mov [rbx + {registers} + 5 * 8], rbp",
    "    mov [rbx + {registers} + 12 * 8], r12",
    "    mov [rbx + {registers} + 13 * 8], r13",
    "    mov [rbx + {registers} + 14 * 8], r14",
    "    mov [rbx + {registers} + 15 * 8], r15",
    "    mov [rbx + {instruction}], rcx",
    "    mov [rbx + {flags}], r11",
    "    mov r12, gs:[{user_stack}]",
    "    mov [rbx + {registers} + 4 * 8], r12",
    "    mov qword ptr [rbx + {is_whole}], 0",
    "    mov rbx, [rsp]",
    "    mov qword ptr [rbx], {call}",
    "    mov [rbx + {gate}], rax",
    "    mov [rbx + {arguments}], rdi",
    "    mov [rbx + {arguments} + 8], rsi",
    "    mov [rbx + {arguments} + 16], rdx",
    "    mov [rbx + {arguments} + 24], r10",
    "    mov [rbx + {arguments} + 32], r8",
    "    mov [rbx + {arguments} + 40], r9",
    "    mov rax, gs:[{kernel_gs}]",
    "    mov rbx, gs:[{kernel_fs}]",
    "    swapgs",
    "    mov rdx, rax",
    "    shr rdx, 32",
    "    mov ecx, {gs_base}",
    "    wrmsr",
    "    mov rax, rbx",
    "    mov rdx, rbx",
    "    shr rdx, 32",
    "    mov ecx, {fs_base}",
    "    wrmsr",
    // Back on the thread's stack in the kernel, in the kernel's tables.
    "crossing_back:",
    "    fninit",
    "    ldmxcsr [rip + {control}]",
    "    pop rsi",
    "    pop rdi",
    "    pop r15",
    "    pop r14",
    "    pop r13",
    "    pop r12",
    "    pop rbp",
    "    pop rbx",
    "    ret",
    ".popsection",
    registers = const offset_of!(DomainContext, registers),
    vectors = const offset_of!(DomainContext, vectors),
    instruction = const offset_of!(DomainContext, instruction),
    flags = const offset_of!(DomainContext, flags),
    is_whole = const offset_of!(DomainContext, is_whole),
    kernel_root = const offset_of!(Area, kernel_root),
    kernel_stack = const offset_of!(Area, kernel_stack),
    user_stack = const offset_of!(Area, user_stack),
    kernel_gs = const offset_of!(Area, kernel_gs),
    kernel_fs = const offset_of!(Area, kernel_fs),
    frame = const offset_of!(Area, frame),
    gate = const offset_of!(Exit, gate),
    arguments = const offset_of!(Exit, arguments),
    call = const CALL,
    gs_base = const GS_BASE,
    fs_base = const FS_BASE,
    clear = sym CLEAR_VECTORS,
    control = sym VECTOR_CONTROL,
);

unsafe extern "C" {
    fn crossing_enter(context: *mut DomainContext, exit: *mut (), root: u64, area: *mut Area);
    static crossing_call: u8;
    static crossing_back: u8;
}

fn write(register: u32, value: u64) {
    // SAFETY: the callers write registers that every x86-64 processor has, with values that `prepare` explains.
    unsafe { Msr::new(register).write(value) };
}

/// Prepares the calling processor, whose FS base is `kernel_fs`.
///
/// # Safety
/// The area is this processor's alone, lives for ever and is mapped in every domain at the same address; the descriptors
/// of `processor_tables` are loaded.
pub(crate) unsafe fn prepare(area: *mut Area, kernel_fs: u64) {
    // SAFETY: by the caller's contract.
    unsafe {
        (*area).kernel_root = domains::kernel_root();
        (*area).kernel_fs = kernel_fs;
        select(area, USER_CODE, USER_DATA);
    }
    write(KERNEL_GS_BASE, area.expose_provenance() as u64);
    // SYSRET takes the selectors 8 and 16 above the upper half; SYSCALL this one and 8 above the lower.
    write(STAR, u64::from(KERNEL_DATA) << 48 | u64::from(KERNEL_CODE) << 32);
    write(LSTAR, (&raw const crossing_call).addr() as u64);
    write(SFMASK, CLEARED_FLAGS);
    // SYSENTER faults.
    write(SYSENTER_CS, 0);
    // SAFETY: reads a register that long mode needs.
    let efer = unsafe { Msr::new(EFER).read() };
    write(EFER, efer | EFER_SYSCALL);
}

/// Sets the selectors with which IRET enters a domain.
///
/// # Safety
/// The area is this processor's, and interrupts are off.
unsafe fn select(area: *mut Area, code: u16, data: u16) {
    // SAFETY: by the caller's contract.
    unsafe {
        (*area).frame[2] = u64::from(code);
        (*area).frame[5] = u64::from(data);
    }
}

/// Sets the GS base that the calling processor has in the kernel.
///
/// # Safety
/// The area is this processor's.
pub(crate) unsafe fn set_kernel_gs(area: *mut Area, base: u64) {
    // SAFETY: by the caller's contract; no thread is in a domain yet.
    unsafe { (*area).kernel_gs = base };
}

/// Runs the calling thread in a domain until it leaves it.
#[inline(always)]
pub(crate) fn enter(domain: DomainId, context: &mut DomainContext) -> DomainExit {
    if context.instruction >= USER_END {
        return DomainExit::Fault(no_address(context));
    }
    context.flags = context.flags & DomainContext::OWN_FLAGS | FIXED_FLAGS;
    let mut exit = MaybeUninit::<Exit>::uninit();
    interrupts::disable();
    let (number, area) = processors::own_number_and_area();
    let root = domains::arrive(domain, number);
    let privileged = domains::is_privileged(domain);
    if privileged {
        // SYSRET leads to ring 3 alone: the way is always that by IRET.
        context.is_whole = 1;
        // SAFETY: this processor's area, and interrupts are off until the thread is in the domain, and again before the
        // selectors are set back.
        unsafe { select(area, DOMAIN_CODE, KERNEL_DATA) };
    }
    // SAFETY: interrupts are off, so this stays on the processor whose area it is until the thread is in the domain;
    // and then until `crossing_back`, because a thread in a domain is not moved. The root's tables have what the way
    // back needs. Both references live as long.
    unsafe { crossing_enter(context, exit.as_mut_ptr().cast(), root, area) };
    if privileged {
        // SAFETY: as above.
        unsafe { select(area, USER_CODE, USER_DATA) };
    }
    domains::leave(number);
    interrupts::enable();
    let exit = exit.as_ptr();
    // SAFETY: `crossing_call` has filled in the kind, gate and arguments; or `leave` the kind, and the fault if it is of
    // a kind that has one.
    unsafe {
        match (*exit).kind {
            CALL => DomainExit::Call { gate: (*exit).gate, arguments: (*exit).arguments },
            MISSING => DomainExit::Missing((*exit).fault),
            FAULT => DomainExit::Fault((*exit).fault),
            _ => DomainExit::Interrupt,
        }
    }
}

/// The fault of a thread whose next instruction has an address that no domain has.
fn no_address(context: &DomainContext) -> Fault {
    let instruction = context.instruction as usize;
    Fault { kind: FaultKind::Memory, instruction, address: instruction, stack: context.stack() }
}

/// Makes an interrupt of a thread in a domain, with the kernel's tables and bases set again, return to
/// [`enter`]: with its registers kept in its context, and the fault if there was one, and whether a page was missing.
pub(crate) fn leave(frame: &mut Frame, vectors: &[u8; 512], fault: Option<(Fault, bool)>) {
    // SAFETY: this processor's area, whose stack pointer `crossing_enter` has stored: the thread was in a domain. On
    // that stack are the addresses of exit and context, which live until `enter` returns, and nobody else uses.
    let (stack, exit, context) = unsafe {
        let stack = (*processors::own_area()).kernel_stack;
        let [exit, context] = *ptr::with_exposed_provenance::<[usize; 2]>(stack as usize);
        let exit = ptr::with_exposed_provenance_mut::<Exit>(exit);
        (stack, exit, &mut *ptr::with_exposed_provenance_mut::<DomainContext>(context))
    };
    context.vectors = *vectors;
    context.registers = frame.registers();
    context.instruction = frame.rip;
    context.flags = frame.rflags;
    context.is_whole = 1;
    // SAFETY: as above; whole fields of what is not yet initialised are written.
    unsafe {
        match fault {
            None => (&raw mut (*exit).kind).write(INTERRUPT),
            Some((fault, is_missing)) => {
                (&raw mut (*exit).kind).write(if is_missing { MISSING } else { FAULT });
                (&raw mut (*exit).fault).write(fault);
            }
        }
    }
    frame.rip = (&raw const crossing_back).addr() as u64;
    frame.cs = u64::from(KERNEL_CODE);
    frame.ss = u64::from(KERNEL_DATA);
    frame.rsp = stack;
    // Interrupts stay off until `enter` enables them.
    frame.rflags = 2;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_domain_sets_no_flag_that_is_not_its_own() {
        let all = DomainContext::OWN_FLAGS | FIXED_FLAGS;
        for (flag, bit) in [("TF", 8), ("NT", 14), ("RF", 16), ("VM", 17), ("VIF", 19), ("VIP", 20), ("IOPL", 12)] {
            assert_eq!(all >> bit & 1, 0, "{flag}");
        }
        assert_eq!(all >> 12 & 3, 0);
        assert_eq!(all >> 9 & 1, 1);
        for bit in [8, 9, 10, 12, 13, 14, 16, 18] {
            assert_eq!(CLEARED_FLAGS >> bit & 1, 1, "bit {bit}");
        }
    }

    #[test]
    fn the_clear_vector_state_is_that_of_a_new_thread() {
        assert_eq!(CLEAR_VECTORS.0, DomainContext::start(0, 0, 0).vectors);
    }
}
