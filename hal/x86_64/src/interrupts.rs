//! Interrupts and exceptions, from the entry stubs to the kernel's entries.
//!
//! The interrupted instruction's address decides, as on the hosted machine: SIP code is
//! redirected to a trampoline on its own stack; the kernel continues, with a flag that it checks
//! before it leaves; a fault of the kernel itself ends the machine with a report. Deliberately not here:
//! anything that takes a lock or allocates, because the kernel may be interrupted anywhere.

use core::arch::global_asm;
use core::mem::offset_of;
use core::ptr;
use core::sync::atomic::{AtomicPtr, Ordering};

use abi::limits::{STACK_GUARD_BYTES, STACK_RESERVE_BYTES};
use abi::stack;
use hal_api::{Fault, FaultKind, KernelEntries};
use x86_64::registers::control::Cr2;

use crate::crossing::{self, Area, FS_BASE, GS_BASE, KERNEL_CODE};
use crate::frames::For;
use crate::trampoline::{self, RED_ZONE_BYTES};
use crate::{layout, lines, local, paging, power_button, processors, report};

/// First vector of the lines; below are the processor's exceptions and spurious interrupts of the legacy
/// interrupt controllers.
pub(crate) const LINES: u8 = 0x30;
/// The local timer.
pub(crate) const TIMER: u8 = 0xf0;
/// `Machine::interrupt`.
pub(crate) const INTERRUPT: u8 = 0xf1;
/// TLB shootdown: the processor invalidates address translations.
pub(crate) const FORGET: u8 = 0xf2;
/// `Machine::wake`.
pub(crate) const WAKE: u8 = 0xf3;
/// Stops the processor because the machine ends.
pub(crate) const STOP: u8 = 0xf4;
/// Spurious vector of the local APIC.
pub(crate) const SPURIOUS: u8 = 0xff;

const GENERAL_PROTECTION: u64 = 13;
const PAGE_FAULT: u64 = 14;
/// Error code of an exception that a descriptor caused: it is in the interrupt table.
const SELECTOR_IN_IDT: u64 = 2;
/// Page fault error code: the page was present.
const FAULT_PRESENT: u64 = 1;

/// Minimum bytes between a redirected thread's stack pointer and the guard.
const ROOM_BYTES: usize = STACK_RESERVE_BYTES / 2;
/// Direction, trap, nested task, alignment check flag: all must be clear when the kernel is entered.
const FLAGS_CLEARED: u64 = 1 << 10 | 1 << 8 | 1 << 14 | 1 << 18;

/// Frame pushed by the stubs and the processor, lowest address first.
#[repr(C)]
pub(crate) struct Frame {
    pub r15: u64,
    pub r14: u64,
    pub r13: u64,
    pub r12: u64,
    pub r11: u64,
    pub r10: u64,
    pub r9: u64,
    pub r8: u64,
    pub rdi: u64,
    pub rsi: u64,
    pub rbp: u64,
    pub rbx: u64,
    pub rdx: u64,
    pub rcx: u64,
    pub rax: u64,
    pub vector: u64,
    pub error: u64,
    pub rip: u64,
    pub cs: u64,
    pub rflags: u64,
    pub rsp: u64,
    pub ss: u64,
}

global_asm!(
    ".pushsection .text.crossing, \"ax\"",
    ".p2align 4",
    ".globl interrupt_stubs",
    "interrupt_stubs:",
    ".set vector, 0",
    ".rept 256",
    ".p2align 4",
    // For these the processor pushes an error code (Intel SDM volume 3, table 6-1).
    ".if (vector == 8) || ((vector >= 10) && (vector <= 14)) || (vector == 17) || (vector == 21) || (vector == 29) || (vector == 30)",
    ".else",
    "    push 0",
    ".endif",
    "    push vector",
    ".if (vector == 2) || (vector == 8) || (vector == 18)",
    "    jmp interrupt_unmasked",
    ".else",
    "    jmp interrupt_common",
    ".endif",
    ".set vector, vector + 1",
    ".endr",
    ".p2align 4",
    // These may come while a domain's tables are loaded and the kernel's code runs. They end the machine.
    "interrupt_unmasked:",
    "    push rax",
    "    lea rax, [rip + {root}]",
    "    mov cr3, rax",
    "    pop rax",
    "interrupt_common:",
    "    push rax",
    "    push rcx",
    "    push rdx",
    "    push rbx",
    "    push rbp",
    "    push rsi",
    "    push rdi",
    "    push r8",
    "    push r9",
    "    push r10",
    "    push r11",
    "    push r12",
    "    push r13",
    "    push r14",
    "    push r15",
    "    cmp word ptr [rsp + {cs}], {kernel_code}",
    "    je 2f",
    // From a domain: see `crossing`.
    "    swapgs",
    "    mov rax, gs:[{kernel_root}]",
    "    mov cr3, rax",
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
    "2:  cld",
    "    mov rbp, rsp",
    "    mov rdi, rsp",
    "    sub rsp, 512",
    "    and rsp, -16",
    "    fxsave64 [rsp]",
    "    mov rsi, rsp",
    "    call {handler}",
    "    fxrstor64 [rsp]",
    "    mov rsp, rbp",
    "    pop r15",
    "    pop r14",
    "    pop r13",
    "    pop r12",
    "    pop r11",
    "    pop r10",
    "    pop r9",
    "    pop r8",
    "    pop rdi",
    "    pop rsi",
    "    pop rbp",
    "    pop rbx",
    "    pop rdx",
    "    pop rcx",
    "    pop rax",
    "    add rsp, 16",
    "    iretq",
    ".popsection",
    handler = sym on_interrupt,
    root = sym paging::ROOT,
    cs = const offset_of!(Frame, cs),
    kernel_code = const KERNEL_CODE,
    kernel_root = const offset_of!(Area, kernel_root),
    kernel_gs = const offset_of!(Area, kernel_gs),
    kernel_fs = const offset_of!(Area, kernel_fs),
    gs_base = const GS_BASE,
    fs_base = const FS_BASE,
);

unsafe extern "C" {
    static interrupt_stubs: u8;
}

/// Returns the address of a vector's stub.
pub(crate) fn stub(vector: u8) -> usize {
    (&raw const interrupt_stubs).addr() + usize::from(vector) * 16
}

static ENTRIES: AtomicPtr<KernelEntries> = AtomicPtr::new(ptr::null_mut());

/// Publishes the kernel's entries, for ever.
pub(crate) fn publish(entries: &'static KernelEntries) {
    ENTRIES.store(ptr::from_ref(entries).cast_mut(), Ordering::Release);
}

/// Returns the kernel's entries, once processors run.
pub(crate) fn entries() -> Option<&'static KernelEntries> {
    // SAFETY: null, or from `publish`: a reference that lives for ever and is never written through.
    unsafe { ENTRIES.load(Ordering::Acquire).as_ref() }
}

impl Frame {
    /// Whether it interrupted code in a domain: in ring 3, or in ring 0 with a selector that only domains have.
    fn is_from_domain(&self) -> bool {
        self.cs as u16 != KERNEL_CODE
    }

    /// Returns the general registers in the order of their numbers.
    pub(crate) fn registers(&self) -> [u64; 16] {
        [
            self.rax, self.rcx, self.rdx, self.rbx, self.rsp, self.rbp, self.rsi, self.rdi, self.r8, self.r9, self.r10,
            self.r11, self.r12, self.r13, self.r14, self.r15,
        ]
    }
}

extern "C" fn on_interrupt(frame: &mut Frame, vectors: &[u8; 512]) {
    if frame.is_from_domain() {
        in_domain(frame, vectors);
        return;
    }
    match frame.vector {
        PAGE_FAULT => page_fault(frame),
        0..32 => exception(frame, 0),
        vector => external(frame, vector as u8),
    }
}

/// Handles an interrupt or exception in a domain, which the thread leaves.
fn in_domain(frame: &mut Frame, vectors: &[u8; 512]) {
    let fault = match frame.vector {
        2 | 8 | 18 => report::kernel_fault(frame, 0),
        0..32 => Some(fault_in_domain(frame)),
        vector => {
            external(frame, vector as u8);
            None
        }
    };
    crossing::leave(frame, vectors, fault);
}

/// Describes an exception in a domain; returns also whether a page was missing.
fn fault_in_domain(frame: &Frame) -> (Fault, bool) {
    let in_image = entries().is_some_and(|entries| (entries.is_sip_code)(frame.rip as usize));
    let kind = match (frame.vector, frame.error) {
        // INT3 and INTO of a domain are refused by their gates.
        (GENERAL_PROTECTION, error) if error & SELECTOR_IN_IDT != 0 => match error >> 3 {
            3 | 4 => FaultKind::Trap,
            _ => FaultKind::Instruction,
        },
        _ => fault_kind(frame, in_image),
    };
    let is_page_fault = frame.vector == PAGE_FAULT;
    let address = if is_page_fault { Cr2::read_raw() as usize } else { 0 };
    let fault = Fault { kind, instruction: frame.rip as usize, address, stack: frame.rsp as usize };
    (fault, is_page_fault && frame.error & FAULT_PRESENT == 0)
}

fn external(frame: &mut Frame, vector: u8) {
    match vector {
        TIMER => {
            local::end_of_interrupt();
            if processors::timer_struck() {
                tick(frame, true);
            }
        }
        INTERRUPT => {
            local::end_of_interrupt();
            processors::keep_awake();
            tick(frame, false);
        }
        WAKE => local::end_of_interrupt(),
        FORGET => {
            processors::forget_own_translations();
            local::end_of_interrupt();
        }
        STOP => processors::halt(),
        LINES..TIMER => {
            let line = u32::from(vector - LINES);
            lines::struck(line);
            let is_told = power_button::is_told(line);
            local::end_of_interrupt();
            if let Some(entries) = entries().filter(|_| is_told) {
                (entries.fired)(line);
                processors::keep_awake();
                tick(frame, false);
            }
        }
        // Spurious, or from a legacy controller: needs no end of interrupt.
        _ => {}
    }
}

fn tick(frame: &mut Frame, timer: bool) {
    let Some(entries) = entries() else { return };
    if (entries.tick)(timer) && !frame.is_from_domain() && (entries.is_sip_code)(frame.rip as usize) {
        interrupt_sip(entries, frame);
    }
}

/// Redirects the interrupted thread to the interrupt trampoline, on its own stack, or, if that has no
/// room left, to the kernel's fault entry.
fn interrupt_sip(entries: &KernelEntries, frame: &mut Frame) {
    let top = (entries.stack_top)();
    if top == 0 {
        // No thread runs: the kernel is switching between two, and its flag is set.
        return;
    }
    let lowest = stack::start(top - 1);
    let stack = frame.rsp as usize;
    if stack < lowest + STACK_GUARD_BYTES + ROOM_BYTES || stack > lowest + stack::bytes_at(lowest) {
        end_sip(frame, top, FaultKind::Memory, lowest);
        return;
    }
    let place = stack - RED_ZONE_BYTES - size_of::<usize>();
    // SAFETY: the word lies in the interrupted thread's own stack slot, below its red zone and above its
    // guard (checked), so it is unused; a missing page is mapped by the page fault handler,
    // which has a stack of its own. It may be unaligned, like the interrupted code's stack pointer.
    unsafe { ptr::with_exposed_provenance_mut::<u64>(place).write_unaligned(frame.rip) };
    frame.rip = trampoline::interrupt() as u64;
    frame.rsp = place as u64;
}

fn page_fault(frame: &mut Frame) {
    let address = Cr2::read_raw() as usize;
    if frame.error & FAULT_PRESENT == 0 && paging::is_stack(address) {
        let in_sip = entries().filter(|entries| (entries.is_sip_code)(frame.rip as usize));
        let who = if in_sip.is_some() { For::Sip } else { For::Kernel };
        if paging::grow_stack(address, who).is_ok() {
            return;
        }
        if let Some(entries) = in_sip {
            let top = (entries.stack_top)();
            end_sip(frame, top, FaultKind::OutOfMemory, address);
            return;
        }
    }
    exception(frame, address);
}

/// Handles an exception that cannot be resolved: ends the SIP if it is the SIP's, else the machine.
fn exception(frame: &mut Frame, address: usize) {
    if let Some(entries) = entries() {
        let top = (entries.stack_top)();
        let instruction = frame.rip as usize;
        let in_sip = (entries.is_sip_code)(instruction);
        let overflowed = frame.vector == PAGE_FAULT && (entries.overflowed_at_entry)(instruction, address);
        let one_of_sip = !matches!(frame.vector, 2 | 8 | 18);
        if top != 0 && one_of_sip && (in_sip || overflowed || !layout::is_kernel_code(instruction)) {
            end_sip(frame, top, fault_kind(frame, in_sip), address);
            return;
        }
    }
    report::kernel_fault(frame, address);
}

/// Redirects the interrupted thread to the kernel's fault entry, on its own stack: below its frames, which the kernel
/// looks at, or if there is no room for it, or no memory, at its top.
fn end_sip(frame: &mut Frame, top: usize, kind: FaultKind, address: usize) {
    let record_below = |above: usize| (above - size_of::<Fault>()) & !0xf;
    let stack = frame.rsp as usize;
    let has_room = (stack::start(top - 1) + STACK_RESERVE_BYTES + RED_ZONE_BYTES..=top).contains(&stack);
    let record = Some(stack).filter(|_| has_room && kind != FaultKind::OutOfMemory);
    let record = record.map(|stack| record_below(stack - RED_ZONE_BYTES)).filter(|&record| is_mapped(record));
    let record = record.unwrap_or_else(|| record_below(top));
    let address = if matches!(kind, FaultKind::Memory | FaultKind::OutOfMemory) { address } else { 0 };
    let fault = Fault { kind, instruction: frame.rip as usize, address, stack: frame.rsp as usize };
    // SAFETY: the record lies in the interrupted thread's own stack slot, above its guard, in pages that are mapped
    // (both checked); or at its top, beside its thread block, whose page is mapped. The thread will never read what it overwrites, because it only
    // goes on into the fault entry, which does not return. 16-byte alignment is enough for a `Fault`.
    unsafe { ptr::with_exposed_provenance_mut::<Fault>(record).write(fault) };
    frame.rdi = record as u64;
    frame.rflags &= !FLAGS_CLEARED;
    frame.rip = trampoline::fault() as u64;
    frame.rsp = record as u64;
}

/// Maps the pages of a fault record in a stack slot, since the handler of page faults must not fault itself.
fn is_mapped(record: usize) -> bool {
    let ends = [record, record + size_of::<Fault>() - 1];
    ends.iter().all(|&address| paging::grow_stack(address, For::Kernel).is_ok())
}

fn fault_kind(frame: &Frame, in_sip: bool) -> FaultKind {
    match frame.vector {
        0 | 16 | 19 => FaultKind::Arithmetic,
        1 | 3 => FaultKind::Trap,
        5..=7 => FaultKind::Instruction,
        // A protection fault comes from a privileged instruction or from a non-canonical address.
        13 if in_sip && is_privileged(frame.rip as usize) => FaultKind::Instruction,
        _ => FaultKind::Memory,
    }
}

/// Returns whether the instruction's first byte is that of a privileged instruction.
fn is_privileged(instruction: usize) -> bool {
    // SAFETY: the processor has just fetched this byte to execute it, from sealed code that is never
    // unmapped.
    let first = unsafe { ptr::with_exposed_provenance::<u8>(instruction).read_volatile() };
    matches!(first, 0xf4 | 0xfa | 0xfb | 0xe4..=0xe7 | 0xec..=0xef | 0x6c..=0x6f)
}
