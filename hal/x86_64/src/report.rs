//! Reports of faults and panics of the kernel itself: kind, address, running SIP, back trace.

use core::fmt::Write;
use core::ptr;
use core::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

use crate::interrupts::{self, Frame};
use crate::output::Output;
use crate::{layout, machine, output, processors};

/// Exit status of a machine whose kernel failed.
const FAILED: u8 = 101;
/// Maximum length of a back trace.
const MAX_FRAMES: usize = 32;

/// Returns the name of the function that contains an address, and the offset from its start.
pub type Locate = fn(usize) -> Option<(&'static str, usize)>;

static LOCATE: AtomicPtr<()> = AtomicPtr::new(ptr::null_mut());
/// Number of reports begun: a fault within a report ends the machine without another.
static REPORTS: AtomicU32 = AtomicU32::new(0);

/// Sets the function that resolves addresses in reports.
pub fn set_symbols(locate: Locate) {
    LOCATE.store(locate as *mut (), Ordering::Release);
}

fn locate(address: usize) -> Option<(&'static str, usize)> {
    let stored = LOCATE.load(Ordering::Acquire);
    // SAFETY: null or a `Locate`, by `set_symbols`; a null pointer is `None` of such an option.
    let locate: Option<Locate> = unsafe { core::mem::transmute(stored) };
    locate?(address)
}

fn begin() -> bool {
    let first = REPORTS.fetch_add(1, Ordering::AcqRel) == 0;
    if first {
        processors::stop_others();
    }
    first
}

/// Reports an exception in the kernel, and ends the machine.
pub(crate) fn kernel_fault(frame: &Frame, address: usize) -> ! {
    if begin() {
        let mut output = Output;
        // Writing to the debug output cannot fail.
        let _ = writeln!(output, "\nkernel fault: {}, error code {:#x}", name(frame.vector), frame.error);
        if frame.vector == 14 {
            let _ = writeln!(output, "  address  {address:#x}");
        }
        line("at", frame.rip as usize);
        let _ = writeln!(output, "  stack    {:#x}", frame.rsp);
        describe_sip();
        trace(frame.rbp as usize, frame.rsp as usize);
    }
    machine::end_failed(FAILED)
}

/// Reports a kernel panic, and ends the machine.
pub fn kernel_panic(information: &core::panic::PanicInfo<'_>) -> ! {
    if begin() {
        let _ = writeln!(Output, "\nkernel panic: {information}");
        describe_sip();
        let (frame, stack): (usize, usize);
        // SAFETY: reads two registers.
        unsafe {
            core::arch::asm!("mov {}, rbp", "mov {}, rsp", out(reg) frame, out(reg) stack, options(nomem, nostack))
        };
        trace(frame, stack);
    }
    machine::end_failed(FAILED)
}

fn describe_sip() {
    let running = interrupts::entries().and_then(|entries| (entries.running)());
    let _ = match running {
        Some((name, process)) => writeln!(Output, "  running  {name}, process {process}"),
        None => writeln!(Output, "  running  no SIP"),
    };
}

fn line(what: &str, address: usize) {
    let _ = match locate(address) {
        Some((name, offset)) => writeln!(Output, "  {what:<8} {address:#x} {name}+{offset:#x}"),
        None if interrupts::entries().is_some_and(|entries| (entries.is_sip_code)(address)) => {
            writeln!(Output, "  {what:<8} {address:#x} in a program")
        }
        None if layout::is_kernel_code(address) => writeln!(Output, "  {what:<8} {address:#x} in the kernel"),
        None => writeln!(Output, "  {what:<8} {address:#x} outside the kernel"),
    };
}

/// Follows saved frame pointers upwards, as long as they stay on the stack.
fn trace(mut frame: usize, stack: usize) {
    /// Maximum size of a stack.
    const STACK_BYTES: usize = abi::limits::STACK_SLOT_BYTES;
    let _ = writeln!(Output, "  called from");
    let mut below = stack;
    for _ in 0..MAX_FRAMES {
        if frame < below || frame - stack > STACK_BYTES || !frame.is_multiple_of(8) {
            return;
        }
        // SAFETY: the frame pointer lies above the stack pointer, on the same stack by the bound, where
        // code built with frame pointers saves the caller's and the return address. If a page of it
        // is missing after all, the fault within the report ends the machine, which comes next anyway.
        let [next, from] = unsafe { ptr::with_exposed_provenance::<[usize; 2]>(frame).read() };
        if from == 0 {
            return;
        }
        line("", from);
        below = frame + 16;
        frame = next;
    }
}

fn name(vector: u64) -> &'static str {
    match vector {
        0 => "division error",
        1 => "debug exception",
        2 => "non-maskable interrupt",
        3 => "breakpoint",
        6 => "invalid instruction",
        7 => "no floating-point unit",
        8 => "double fault",
        10 => "invalid task state",
        11 => "missing segment",
        12 => "stack segment fault",
        13 => "general protection fault",
        14 => "page fault",
        16 | 19 => "floating-point exception",
        17 => "misaligned access",
        18 => "machine check",
        _ => "unknown exception",
    }
}

/// Writes one line.
pub(crate) fn say(text: core::fmt::Arguments<'_>) {
    let _ = Output.write_fmt(text);
    output::write(b"\n");
}
