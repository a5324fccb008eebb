//! Interrupts at an exact instruction, and the cycle counter: what the host's processor would do by its own time.
//!
//! *Stepping*: [`begin`] sets the trap flag when the machine's own code is left; the handler counts the instructions of
//! programs and kernel, and interrupts at the last one. Instructions of the host's libraries are passed, but not
//! counted: they differ from host to host. *Cycle counter*: the host traps `rdtsc`, and the handler answers with virtual
//! time. Neighbours: `contexts` keeps the depth of each processor. Deliberately not here: what an interrupt does.

use std::arch::asm;
use std::cell::Cell;
use std::fs;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};

use crate::place::{MAX_INSTRUCTION_BYTES, Place, synchronizes};
use hal_api::KernelEntries;
use hal_hosted::shared::{Handler, install_one, interrupt_kernel_at, interrupt_sip_at, is_host_text, on_fault};

/// The trap flag.
const TRAP: u64 = 1 << 8;
/// `si_code` of a trap after an instruction.
const TRAP_TRACE: libc::c_int = 2;
const RDTSC: [u8; 2] = [0x0f, 0x31];
const RDTSCP: [u8; 3] = [0x0f, 0x01, 0xf9];
/// Virtual cycles in a nanosecond.
const CYCLES_PER_NS: u64 = 2;

/// How deep the current processor is in the machine's own code; 0: in a program or the kernel.
static DEPTH: AtomicUsize = AtomicUsize::new(0);
/// Instructions left until the interrupt; 0: none is wanted.
static LEFT: AtomicU32 = AtomicU32::new(0);
/// Instructions left by which processors synchronize, from the last of which on [`LEFT`] counts.
static SYNCHRONIZATIONS: AtomicU32 = AtomicU32::new(0);
/// Whether nothing counts between the end of a call and an instruction of a program.
static SKIPS_ENDS: AtomicBool = AtomicBool::new(false);
/// Whether that is so at this moment.
static IS_AT_END: AtomicBool = AtomicBool::new(false);
/// Whether only instructions of the kernel count.
static IN_KERNEL: AtomicBool = AtomicBool::new(false);
/// Instructions that may pass uncounted; then no interrupt is wanted any more.
static PASSED_OVER: AtomicU32 = AtomicU32::new(0);
static NOW_NS: AtomicU64 = AtomicU64::new(0);
static IN_PROGRAM: AtomicBool = AtomicBool::new(false);
static AT: AtomicU64 = AtomicU64::new(0);
static ENTRIES: OnceLock<KernelEntries> = OnceLock::new();
/// The code of this executable, in which the kernel is.
static OWN_TEXT: OnceLock<(usize, usize)> = OnceLock::new();

thread_local! {
    /// Whether this host thread runs the processors: the others of a test program do not.
    static IS_MACHINE: Cell<bool> = const { Cell::new(false) };
}

/// Where code was interrupted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Interrupted {
    /// Whether it was a program's.
    pub(crate) in_program: bool,
    /// The address, of the kernel relative to the start of its code.
    pub(crate) at: u64,
}

/// Installs the handlers and makes the host trap `rdtsc`, on the calling thread.
pub(crate) fn start(entries: KernelEntries) {
    IS_MACHINE.set(true);
    ENTRIES.get_or_init(|| entries);
    OWN_TEXT.get_or_init(own_text);
    for (signal, handler) in [(libc::SIGTRAP, on_trap as Handler), (libc::SIGSEGV, on_segment as Handler)] {
        // SAFETY: both touch atomics and the interrupted context alone, which they leave as it is, move over one instruction,
        // or redirect to a trampoline; what is not theirs they pass on.
        unsafe { install_one(signal, handler) };
    }
    // SAFETY: PR_SET_TSC takes an integer and touches no memory.
    let answer = unsafe { libc::prctl(libc::PR_SET_TSC, libc::PR_TSC_SIGSEGV) };
    assert!(answer == 0, "the host does not trap the cycle counter: {}", std::io::Error::last_os_error());
}

/// Finds the executable's code. Must run before images are mapped.
fn own_text() -> (usize, usize) {
    let here = own_text as *const () as usize;
    let listing = fs::read_to_string("/proc/self/maps").unwrap_or_default();
    let ranges = listing.lines().filter_map(|line| {
        let (first, end) = line.split_whitespace().next()?.split_once('-')?;
        Some((usize::from_str_radix(first, 16).ok()?, usize::from_str_radix(end, 16).ok()?))
    });
    ranges.into_iter().find(|(first, end)| (*first..*end).contains(&here)).unwrap_or((here, here))
}

/// Sets the virtual time that the cycle counter shows.
pub(crate) fn set_now(now_ns: u64) {
    NOW_NS.store(now_ns, Ordering::Relaxed);
}

pub(crate) fn depth() -> usize {
    DEPTH.load(Ordering::Relaxed)
}

pub(crate) fn set_depth(depth: usize) {
    DEPTH.store(depth, Ordering::Relaxed);
}

/// Wants an interrupt at a place, counted from when the machine's own code is left. There is none if too many
/// instructions pass uncounted before.
pub(crate) fn begin(place: Place) {
    let Place { synchronizations, instructions, in_kernel, skips_ends, max_passed_over } = place;
    SYNCHRONIZATIONS.store(synchronizations, Ordering::Relaxed);
    IN_KERNEL.store(in_kernel, Ordering::Relaxed);
    SKIPS_ENDS.store(skips_ends, Ordering::Relaxed);
    IS_AT_END.store(skips_ends, Ordering::Relaxed);
    PASSED_OVER.store(max_passed_over, Ordering::Relaxed);
    LEFT.store(instructions.max(1), Ordering::Relaxed);
}

/// Returns whether instructions of the kernel are counted from this one on.
fn is_counted(instruction: usize, end: usize) -> bool {
    if IS_AT_END.load(Ordering::Relaxed) {
        return false;
    }
    let left = SYNCHRONIZATIONS.load(Ordering::Relaxed);
    if left == 0 {
        return true;
    }
    let bytes = end.saturating_sub(instruction).min(MAX_INSTRUCTION_BYTES);
    // SAFETY: the bytes from the instruction on are in the executable's code, which ends at `end`, is readable and never
    // changes.
    let code = unsafe { std::slice::from_raw_parts(std::ptr::with_exposed_provenance::<u8>(instruction), bytes) };
    let left = left - u32::from(synchronizes(code));
    SYNCHRONIZATIONS.store(left, Ordering::Relaxed);
    left == 0
}

/// Passes an instruction over, and gives up after too many.
fn pass_over() {
    let left = PASSED_OVER.load(Ordering::Relaxed);
    if left <= 1 {
        LEFT.store(0, Ordering::Relaxed);
    }
    PASSED_OVER.store(left.saturating_sub(1), Ordering::Relaxed);
}

/// Sees the end of a call.
pub(crate) fn call_ended() {
    IS_AT_END.store(SKIPS_ENDS.load(Ordering::Relaxed), Ordering::Relaxed);
}

/// Returns whether an interrupt is wanted that has not come yet.
pub(crate) fn is_wanted() -> bool {
    LEFT.load(Ordering::Relaxed) != 0
}

/// Returns where the interrupt came.
pub(crate) fn interrupted() -> Interrupted {
    Interrupted { in_program: IN_PROGRAM.load(Ordering::Relaxed), at: AT.load(Ordering::Relaxed) }
}

/// The machine's own code runs as long as it lives: nothing is interrupted in it, and it is not stepped through.
pub(crate) struct Inside(());

impl Inside {
    #[inline(always)]
    pub(crate) fn enter() -> Inside {
        if LEFT.load(Ordering::Relaxed) != 0 {
            change_trap_flag(false);
        }
        DEPTH.store(DEPTH.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        Inside(())
    }
}

impl Drop for Inside {
    #[inline(always)]
    fn drop(&mut self) {
        let depth = DEPTH.load(Ordering::Relaxed) - 1;
        DEPTH.store(depth, Ordering::Relaxed);
        if depth == 0 && LEFT.load(Ordering::Relaxed) != 0 {
            change_trap_flag(true);
        }
    }
}

#[inline(always)]
fn change_trap_flag(set: bool) {
    let (keep, add) = (!TRAP, if set { TRAP } else { 0 });
    // SAFETY: pushes and pops the flags on the stack, changing the trap flag alone; traps are handled by `on_trap`.
    unsafe {
        asm!(
            "pushfq",
            "and qword ptr [rsp], {keep}",
            "or qword ptr [rsp], {add}",
            "popfq",
            keep = in(reg) keep,
            add = in(reg) add,
        );
    }
}

extern "C" fn on_trap(signal: libc::c_int, information: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: the host passes a siginfo that lives until the handler returns.
    let code = unsafe { (*information).si_code };
    let (Some(entries), true) = (ENTRIES.get(), IS_MACHINE.get() && code == TRAP_TRACE) else {
        // SAFETY: all three are what the host has passed.
        return unsafe { on_fault(signal, information, context) };
    };
    // SAFETY: the host passes a ucontext that lives, with no other reference to it, until the handler returns.
    let registers = unsafe { &mut (*context.cast::<libc::ucontext_t>()).uc_mcontext.gregs };
    let left = LEFT.load(Ordering::Relaxed);
    if left == 0 {
        registers[libc::REG_EFL as usize] &= !(TRAP as i64);
        return;
    }
    let instruction = registers[libc::REG_RIP as usize] as usize;
    let in_program = (entries.is_sip_code)(instruction);
    let own = OWN_TEXT.get().copied().unwrap_or_default();
    if DEPTH.load(Ordering::Relaxed) != 0 || !in_program && !(own.0..own.1).contains(&instruction) {
        return;
    }
    if in_program {
        IS_AT_END.store(false, Ordering::Relaxed);
    }
    let is_passed_over = if in_program { IN_KERNEL.load(Ordering::Relaxed) } else { !is_counted(instruction, own.1) };
    if is_passed_over {
        return pass_over();
    }
    if left > 1 {
        LEFT.store(left - 1, Ordering::Relaxed);
        return;
    }
    // SAFETY: the registers are those of the code that the trap interrupted, which keeps nothing below its red zone.
    if !in_program && !unsafe { interrupt_kernel_at(registers) } {
        // Too little of the stack is left; the next instruction may do.
        return;
    }
    LEFT.store(0, Ordering::Relaxed);
    registers[libc::REG_EFL as usize] &= !(TRAP as i64);
    IN_PROGRAM.store(in_program, Ordering::Relaxed);
    AT.store((if in_program { instruction } else { instruction - own.0 }) as u64, Ordering::Relaxed);
    if in_program {
        // SAFETY: the registers are those of the program's code that the trap interrupted on this processor.
        unsafe { interrupt_sip_at(entries, registers) };
    }
}

extern "C" fn on_segment(signal: libc::c_int, information: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: as in `on_trap`.
    let registers = unsafe { &mut (*context.cast::<libc::ucontext_t>()).uc_mcontext.gregs };
    let instruction = registers[libc::REG_RIP as usize] as usize;
    if IS_MACHINE.get()
        && let Some(bytes) = cycle_counter_at(instruction)
    {
        let cycles = NOW_NS.load(Ordering::Relaxed).wrapping_mul(CYCLES_PER_NS);
        registers[libc::REG_RAX as usize] = (cycles & 0xffff_ffff) as i64;
        registers[libc::REG_RDX as usize] = (cycles >> 32) as i64;
        if bytes == RDTSCP.len() {
            registers[libc::REG_RCX as usize] = 0;
        }
        registers[libc::REG_RIP as usize] += bytes as i64;
        return;
    }
    // SAFETY: all three are what the host has passed.
    unsafe { on_fault(signal, information, context) };
    // SAFETY: as above; the handler called has ended its use of them.
    let registers = unsafe { &mut (*context.cast::<libc::ucontext_t>()).uc_mcontext.gregs };
    if registers[libc::REG_EFL as usize] as u64 & TRAP == 0 {
        // The program that was stepped through has ended.
        LEFT.store(0, Ordering::Relaxed);
    }
}

/// Returns the length of the instruction at an address of the host process's code if it reads the cycle counter.
fn cycle_counter_at(instruction: usize) -> Option<usize> {
    if !is_host_text(instruction) {
        return None;
    }
    // SAFETY: the instruction lies in the process's code, which is readable, and no code ends within three bytes of an
    // instruction that faults for its memory: the last pages of a library's code are padded.
    let bytes = unsafe { *std::ptr::with_exposed_provenance::<[u8; 3]>(instruction) };
    match bytes {
        RDTSCP => Some(RDTSCP.len()),
        [first, second, _] if [first, second] == RDTSC => Some(RDTSC.len()),
        _ => None,
    }
}
