//! Signals: the timer, interrupts from other processors, and faults.
//!
//! A handler decides by the interrupted instruction's address: SIP code is redirected to a trampoline; the
//! kernel continues (after a tick) or ends with a message (after a fault). Neighbours: `trampoline`,
//! `processor` (which has the threads). Deliberately not here: anything that takes a lock or
//! allocates; a handler may have interrupted the kernel or the allocator anywhere.

use std::fmt::{self, Write};
use std::io;
use std::mem::{self, MaybeUninit};
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use abi::limits::{STACK_GUARD_BYTES, STACK_RESERVE_BYTES};
use abi::stack;
use hal_api::{Fault, FaultKind, KernelEntries};

use crate::processor::Processors;
use crate::trampoline::{self, RED_ZONE_BYTES};
use crate::{entries, host_text, output, power_button, processor, simulated, terminal};

/// Signal of a processor's timer.
pub(crate) const TIMER: libc::c_int = libc::SIGVTALRM;
/// Signal of `Machine::interrupt`.
pub(crate) const INTERRUPT: libc::c_int = libc::SIGUSR1;

/// Timeout for writing the report of a fault in the kernel to standard error.
const REPORT_LIMIT: Duration = Duration::from_secs(1);

const FAULTS: [libc::c_int; 5] = [libc::SIGSEGV, libc::SIGBUS, libc::SIGILL, libc::SIGFPE, libc::SIGTRAP];

/// Minimum bytes between a redirected thread's stack pointer and the guard.
const ROOM_BYTES: usize = STACK_RESERVE_BYTES / 2;

/// Direction, trap, alignment check and nested task flag: all must be clear when the kernel is entered.
const FLAGS_CLEARED: i64 = 1 << 10 | 1 << 8 | 1 << 18 | 1 << 14;

/// Length of the instruction `syscall`.
pub(crate) const SYSCALL_BYTES: usize = 2;

/// Vector of a general protection fault.
pub(crate) const TRAP_PROTECTION: i64 = 13;

/// A signal handler, with the information and the context that the host passes.
pub type Handler = unsafe extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void);

/// Installs the handlers, for the whole process. Safe to call again.
pub(crate) fn install() {
    for signal in [TIMER, INTERRUPT] {
        // SAFETY: it touches atomics and the interrupted context, which it leaves as it is or redirects to a trampoline.
        unsafe { install_one(signal, on_tick) };
    }
    install_faults();
    // SAFETY: as above.
    unsafe { install_one(libc::SIGSYS, on_refused_call) };
}

/// Installs the handlers of faults alone.
pub(crate) fn install_faults() {
    for signal in FAULTS {
        // SAFETY: as for the others in `install`; it may also end the process.
        unsafe { install_one(signal, on_fault) };
    }
}

/// Installs a handler, on the signal stack and with the interrupts of processors blocked.
///
/// # Safety
/// The handler is async-signal-safe, and returns to whatever it interrupts with valid registers.
pub unsafe fn install_one(signal: libc::c_int, handler: Handler) {
    // SAFETY: all-zero bytes are a valid sigaction: default handler, empty mask, no flags.
    let mut action: libc::sigaction = unsafe { mem::zeroed() };
    action.sa_sigaction = handler as usize;
    action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_RESTART;
    // SAFETY: the mask is a live sigset, and `action` a live sigaction whose handler has the signature
    // that SA_SIGINFO asks for and is async-signal-safe.
    let answer = unsafe {
        // A tick inside another handler would see that handler's instruction and be lost.
        libc::sigaddset(&mut action.sa_mask, TIMER);
        libc::sigaddset(&mut action.sa_mask, INTERRUPT);
        libc::sigaction(signal, &action, ptr::null_mut())
    };
    assert!(answer == 0, "the host refused a handler for signal {signal}: {}", io::Error::last_os_error());
}

/// The interrupted thread's registers, as sigreturn will restore them.
struct Struck<'a> {
    registers: &'a mut [libc::greg_t; 23],
}

impl Struck<'_> {
    fn instruction(&self) -> usize {
        self.registers[libc::REG_RIP as usize] as usize
    }

    fn stack(&self) -> usize {
        self.registers[libc::REG_RSP as usize] as usize
    }

    fn resume_at(&mut self, instruction: usize, stack: usize) {
        self.registers[libc::REG_RIP as usize] = instruction as libc::greg_t;
        self.registers[libc::REG_RSP as usize] = stack as libc::greg_t;
    }
}

extern "C" fn on_tick(signal: libc::c_int, _information: *mut libc::siginfo_t, context: *mut libc::c_void) {
    let (Some(entries), true) = (entries::get(), processor::is_current_thread()) else { return };
    let _errno = KeptErrno::new();
    if simulated::interrupt(entries) | power_button::interrupt(entries) {
        Processors::wake_current();
    }
    processor::note_interrupt();
    let reschedule = (entries.tick)(signal == TIMER);
    // SAFETY: the host passes a ucontext that lives, with no other reference to it, until the handler returns.
    let context = unsafe { &mut *context.cast::<libc::ucontext_t>() };
    let mut struck = Struck { registers: &mut context.uc_mcontext.gregs };
    if reschedule && (entries.is_sip_code)(struck.instruction()) {
        interrupt_sip(entries, &mut struck);
    }
}

/// Redirects the thread whose registers these are, interrupted in a SIP's code, as the timer does.
///
/// # Safety
/// The registers are those of the thread that runs on the calling processor, and nothing below its red zone is in use.
pub unsafe fn interrupt_sip_at(entries: &KernelEntries, registers: &mut [libc::greg_t; 23]) {
    interrupt_sip(entries, &mut Struck { registers });
}

/// Redirects a context that was interrupted in the kernel to the interrupt trampoline, on its own stack, which lies in a
/// slot of stacks with a guard; false if that has not enough room left.
///
/// # Safety
/// The stack pointer among the registers is that of the interrupted context, and nothing below its red zone is in use.
pub unsafe fn interrupt_kernel_at(registers: &mut [libc::greg_t; 23]) -> bool {
    let mut struck = Struck { registers };
    let stack = struck.stack();
    if stack % stack::USUAL_BYTES < STACK_GUARD_BYTES + ROOM_BYTES / 2 {
        return false;
    }
    let frame = stack - RED_ZONE_BYTES - size_of::<usize>();
    // SAFETY: the word lies below the red zone of the interrupted stack, and above its guard (checked).
    unsafe { ptr::with_exposed_provenance_mut::<usize>(frame).write_unaligned(struck.instruction()) };
    struck.resume_at(trampoline::interrupt(), frame);
    true
}

/// Redirects the interrupted thread to the interrupt trampoline, on its own stack, or, if that has no
/// room left, to the kernel's fault entry.
fn interrupt_sip(entries: &KernelEntries, struck: &mut Struck<'_>) {
    let top = (entries.stack_top)();
    if top == 0 {
        // No thread runs: the kernel is switching between two, and its flag is set.
        return;
    }
    let start = stack::start(top - 1);
    let stack = struck.stack();
    if stack < start + STACK_GUARD_BYTES + ROOM_BYTES || stack > start + stack::bytes_at(start) {
        let fault = Fault { kind: FaultKind::Memory, instruction: struck.instruction(), address: start, stack };
        end_sip(struck, top, fault);
        return;
    }
    let frame = stack - RED_ZONE_BYTES - size_of::<usize>();
    // SAFETY: the word lies in the interrupted thread's own stack slot, below its red zone and above its
    // guard (checked), so it is unused; the slot is mapped and writable. It may be unaligned,
    // like the interrupted code's stack pointer.
    unsafe { ptr::with_exposed_provenance_mut::<usize>(frame).write_unaligned(struck.instruction()) };
    struck.resume_at(trampoline::interrupt(), frame);
}

/// Handles a fault: one in a SIP's code ends it, any other the process.
///
/// # Safety
/// Called by the host, or by a handler with what the host has passed to it.
pub unsafe extern "C" fn on_fault(signal: libc::c_int, information: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: the host passes a ucontext that lives, with no other reference to it, until the handler returns.
    let context = unsafe { &mut *context.cast::<libc::ucontext_t>() };
    // SAFETY: the host passes a siginfo that lives until the handler returns, and `si_addr` is its
    // address field for these signals.
    let address = unsafe { (*information).si_addr() }.addr();
    let trap = context.uc_mcontext.gregs[libc::REG_TRAPNO as usize];
    let mut struck = Struck { registers: &mut context.uc_mcontext.gregs };
    let _errno = KeptErrno::new();
    if let (Some(entries), true) = (entries::get(), processor::is_current_thread()) {
        let top = (entries.stack_top)();
        let instruction = struck.instruction();
        let in_sip_code = (entries.is_sip_code)(instruction);
        let overflowed = signal == libc::SIGSEGV && (entries.overflowed_at_entry)(instruction, address);
        if top != 0 && (in_sip_code || overflowed || !host_text::contains(instruction)) {
            let kind = fault_kind(signal, trap, instruction, in_sip_code);
            let address = if kind == FaultKind::Memory { address } else { 0 };
            let stack = struck.stack();
            end_sip(&mut struck, top, Fault { kind, instruction, address, stack });
            return;
        }
    }
    report_kernel_fault(signal, struck.instruction(), address);
    default_action(signal);
}

/// Handles a call that `confinement` does not allow. A SIP that makes one ends; elsewhere it fails with EPERM, which is
/// reported the first time.
extern "C" fn on_refused_call(_signal: libc::c_int, _information: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: the host passes a ucontext that lives, with no other reference to it, until the handler returns.
    let context = unsafe { &mut *context.cast::<libc::ucontext_t>() };
    let mut struck = Struck { registers: &mut context.uc_mcontext.gregs };
    let _errno = KeptErrno::new();
    let instruction = struck.instruction().wrapping_sub(SYSCALL_BYTES);
    if let (Some(entries), true) = (entries::get(), processor::is_current_thread()) {
        let top = (entries.stack_top)();
        if top != 0 && (entries.is_sip_code)(instruction) {
            let stack = struck.stack();
            end_sip(&mut struck, top, Fault { kind: FaultKind::HostCall, instruction, address: 0, stack });
            return;
        }
    }
    let call = &mut struck.registers[libc::REG_RAX as usize];
    report_refused_call(*call, instruction);
    *call = -libc::greg_t::from(libc::EPERM);
}

/// Reports a denied call of the machine, once per system call number.
fn report_refused_call(call: libc::greg_t, instruction: usize) {
    static REPORTED: [AtomicU64; 8] = [const { AtomicU64::new(0) }; 8];
    let number = usize::try_from(call).unwrap_or(0);
    let bit = 1 << (number % 64);
    if REPORTED[number / 64 % REPORTED.len()].fetch_or(bit, Ordering::Relaxed) & bit != 0 {
        return;
    }
    let mut line = Line::default();
    // A line that is too long is cut: there is nowhere else to report its rest.
    let _ = writeln!(
        line,
        "singularity: the host's system call {call} (at {instruction:#x}) is none that this machine needs, and was refused; \
         please report it, and start it with --unconfined if something does not work"
    );
    output::standard_error().write_within(line.bytes(), REPORT_LIMIT);
}

/// Redirects the interrupted thread to the kernel's fault entry, on its own stack: below its frames, which the kernel
/// looks at, or if there is no room for it, at its top.
fn end_sip(struck: &mut Struck<'_>, top: usize, fault: Fault) {
    let has_room = (stack::start(top - 1) + STACK_RESERVE_BYTES + RED_ZONE_BYTES..=top).contains(&fault.stack);
    let above = if has_room { fault.stack - RED_ZONE_BYTES } else { top };
    let record = (above - size_of::<Fault>()) & !0xf;
    // SAFETY: the record lies in the interrupted thread's own stack slot, which is mapped and writable above its guard
    // (checked, or at its top); the thread will never read what it overwrites, because it only continues in
    // the fault entry, which does not return. 16-byte alignment is enough for a `Fault`.
    unsafe { ptr::with_exposed_provenance_mut::<Fault>(record).write(fault) };
    struck.registers[libc::REG_RDI as usize] = record as libc::greg_t;
    struck.registers[libc::REG_EFL as usize] &= !FLAGS_CLEARED;
    struck.resume_at(trampoline::fault(), record);
}

fn fault_kind(signal: libc::c_int, trap: i64, instruction: usize, in_sip_code: bool) -> FaultKind {
    match signal {
        libc::SIGILL => FaultKind::Instruction,
        libc::SIGFPE => FaultKind::Arithmetic,
        libc::SIGTRAP => FaultKind::Trap,
        // A protection fault comes from a privileged instruction or from a non-canonical address.
        libc::SIGSEGV if trap == TRAP_PROTECTION && in_sip_code && is_privileged(instruction) => FaultKind::Instruction,
        _ => FaultKind::Memory,
    }
}

/// Returns whether the instruction's first byte is that of a privileged instruction:
/// HLT, CLI, STI, IN, OUT and their string forms.
fn is_privileged(instruction: usize) -> bool {
    // SAFETY: the processor has just fetched this byte to execute it, from sealed code that is never
    // unmapped.
    let first = unsafe { ptr::with_exposed_provenance::<u8>(instruction).read_volatile() };
    matches!(first, 0xf4 | 0xfa | 0xfb | 0xe4..=0xe7 | 0xec..=0xef | 0x6c..=0x6f)
}

/// The thread's errno, restored on drop.
struct KeptErrno(libc::c_int);

impl KeptErrno {
    fn new() -> Self {
        // SAFETY: the host returns the address of this thread's errno, which lives as long as the thread.
        Self(unsafe { *libc::__errno_location() })
    }
}

impl Drop for KeptErrno {
    fn drop(&mut self) {
        // SAFETY: as in `new`; a handler ends on the thread on which it began.
        unsafe { *libc::__errno_location() = self.0 };
    }
}

fn report_kernel_fault(signal: libc::c_int, instruction: usize, address: usize) {
    terminal::restore();
    let name = match signal {
        libc::SIGSEGV => "SIGSEGV",
        libc::SIGBUS => "SIGBUS",
        libc::SIGILL => "SIGILL",
        libc::SIGFPE => "SIGFPE",
        _ => "SIGTRAP",
    };
    let mut line = Line::default();
    // `install` is in the same program: relative to its address the instruction can be found in the
    // program's symbols, wherever the host has loaded it.
    let anchor = install as *const () as usize;
    // A line that is too long is cut: there is nowhere else to report its rest.
    let _ = writeln!(
        line,
        "singularity: a fault in the kernel itself ({name}) at instruction {instruction:#x} (hal_hosted::signal::install \
         is at {anchor:#x}), address {address:#x}; this is a bug, please report it"
    );
    output::standard_error().write_within(line.bytes(), REPORT_LIMIT);
}

/// Restores the default action, so that the host ends the process as usual for this signal when the handler returns.
fn default_action(signal: libc::c_int) {
    let mut set = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: the set is writable memory that sigemptyset initialises before it is used; all these calls
    // are async-signal-safe.
    unsafe {
        libc::signal(signal, libc::SIG_DFL);
        libc::sigemptyset(set.as_mut_ptr());
        libc::sigaddset(set.as_mut_ptr(), signal);
        libc::raise(signal);
        libc::pthread_sigmask(libc::SIG_UNBLOCK, set.as_ptr(), ptr::null_mut());
    }
}

/// A fixed-size text buffer: formats without allocating.
struct Line {
    bytes: [u8; 320],
    used: usize,
}

impl Default for Line {
    fn default() -> Self {
        Self { bytes: [0; 320], used: 0 }
    }
}

impl Line {
    fn bytes(&self) -> &[u8] {
        &self.bytes[..self.used]
    }
}

impl Write for Line {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let room = &mut self.bytes[self.used..];
        let bytes = text.len().min(room.len());
        room[..bytes].copy_from_slice(&text.as_bytes()[..bytes]);
        self.used += bytes;
        if bytes == text.len() { Ok(()) } else { Err(fmt::Error) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_line_is_cut() {
        let mut line = Line::default();
        assert!(line.write_str(&"x".repeat(500)).is_err());
        assert_eq!(line.bytes().len(), 320);
    }
}
