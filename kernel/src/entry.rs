//! Where SIPs and the machine enter the kernel.
//!
//! A SIP calls through [`abi::AbiTable`] and stays on its own stack. Entry checks that the stack has
//! room for the kernel, before anything is put on it; exit looks whether the thread is to end or to give
//! way. The machine enters through [`hal_api::KernelEntries`].

use abi::limits::{STACK_RESERVE_BYTES, STACK_SLOT_BYTES};
use abi::{ABI_VERSION, AbiReturn, AbiTable, EpitaphKind};
use alloc::format;
use hal_api::{Fault, FaultKind, KernelEntries};

use crate::process::Epitaph;
use crate::{arch, cpu, device, handlers, hardware, latency, process, program, sched, thread};

macro_rules! define_entries {
    ($(group $group:literal { $(#[doc = $doc:literal] fn $name:ident($($argument:ident),*) -> $value:literal;)* })*) => {
        $($(
            #[unsafe(naked)]
            extern "C" fn $name($($argument: u64),*) -> AbiReturn {
                arch::enter!(served::$name, stack_used_up)
            }
        )*)*

        static TABLE: AbiTable = AbiTable { version: ABI_VERSION as u64, $($($name,)*)* };

        /// The functions, with room on the stack.
        mod served {
            use super::*;

            $($(
                // Not a second time inside its measured twin.
                #[inline(never)]
                pub(super) extern "C" fn $name($($argument: u64),*) -> AbiReturn {
                    let answer = handlers::$name($($argument),*);
                    if arch::cpu_pending() != 0 {
                        sched::service_pending();
                    }
                    answer.into()
                }
            )*)*
        }

        /// The numbers of the functions.
        #[allow(non_camel_case_types, reason = "named as the functions are")]
        enum Number { $($($name,)*)* }

        /// The same functions, measured.
        mod measured {
            use super::*;

            $($(
                #[unsafe(naked)]
                pub(super) extern "C" fn $name($($argument: u64),*) -> AbiReturn {
                    arch::enter!(served_measured::$name, stack_used_up)
                }
            )*)*
        }

        mod served_measured {
            use super::*;

            $($(
                pub(super) extern "C" fn $name($($argument: u64),*) -> AbiReturn {
                    latency::begin(Number::$name as usize);
                    let answer = served::$name($($argument),*);
                    latency::end();
                    answer
                }
            )*)*
        }

        static MEASURED: AbiTable = AbiTable { version: ABI_VERSION as u64, $($($name: measured::$name,)*)* };
    };
}

abi::for_each_function!(define_entries);

/// Address of the table, for thread blocks.
pub fn table_address() -> usize {
    core::ptr::from_ref(if latency::is_on() { &MEASURED } else { &TABLE }).addr()
}

/// What the machine calls.
pub fn machine_entries() -> KernelEntries {
    KernelEntries {
        is_sip_code,
        tick,
        interrupt,
        fault,
        stack_top,
        fired: hardware::fired,
        running,
        device_complete: device::complete,
    }
}

extern "C" fn is_sip_code(instruction: usize) -> bool {
    program::is_image_address(instruction)
}

extern "C" fn tick(timer: bool) -> bool {
    let flag = if timer { cpu::PENDING_TIMER } else { cpu::PENDING_RESCHEDULE };
    cpu::this().pending.fetch_or(flag, core::sync::atomic::Ordering::Relaxed);
    if timer {
        sched::account_sample();
    }
    true
}

extern "C" fn interrupt() {
    sched::service_pending();
}

fn running() -> Option<(&'static str, u64)> {
    let process = cpu::this().current()?.owner()?;
    let program = process.program.get()?;
    Some((&program.manifest.name, process.id.load(core::sync::atomic::Ordering::Relaxed)))
}

extern "C" fn stack_top() -> usize {
    cpu::this().current().map_or(0, |thread| thread.block_address())
}

extern "C" fn fault(fault: &Fault) -> ! {
    let thread = cpu::current();
    if let Some(process) = thread.owner() {
        process::end(process, describe_fault(thread, fault));
    }
    thread::end_current()
}

fn describe_fault(thread: thread::ThreadRef, fault: &Fault) -> Epitaph {
    let slot = thread.block_address() & !(STACK_SLOT_BYTES - 1);
    let at = match program::locate(fault.instruction) {
        Some((name, offset)) => format!("{name}+{offset:#x}"),
        None => format!("address {:#x}, which is no code", fault.instruction),
    };
    let in_slot = fault.address.wrapping_sub(slot) < STACK_RESERVE_BYTES;
    match fault.kind {
        FaultKind::Memory if in_slot => Epitaph::new(EpitaphKind::StackOverflow, format!("used up its stack at {at}")),
        FaultKind::Memory if fault.instruction == fault.address => {
            Epitaph::new(EpitaphKind::Faulted, format!("jumped to {at}"))
        }
        FaultKind::Memory => {
            Epitaph::new(EpitaphKind::Faulted, format!("accessed address {:#x} at {at}", fault.address))
        }
        FaultKind::Instruction => Epitaph::new(EpitaphKind::Faulted, format!("executed a bad instruction at {at}")),
        FaultKind::Arithmetic => Epitaph::new(EpitaphKind::Faulted, format!("divided by zero at {at}")),
        FaultKind::OutOfMemory => {
            Epitaph::new(EpitaphKind::Faulted, format!("needed memory for its stack at {at}, and none was left"))
        }
        FaultKind::HostCall => Epitaph::new(EpitaphKind::Faulted, format!("made a system call of the host at {at}")),
        FaultKind::Trap => Epitaph::new(EpitaphKind::Faulted, format!("hit a breakpoint at {at}")),
    }
}

/// The SIP ends, so nothing on the stack is needed, and nothing of the kernel's is on it.
#[unsafe(naked)]
extern "C" fn stack_used_up() -> ! {
    arch::restart_stack!(end_overflowed)
}

extern "C" fn end_overflowed() -> ! {
    if let Some(process) = cpu::current().owner() {
        process::end(process, Epitaph::new(EpitaphKind::StackOverflow, "called the kernel with its stack used up"));
    }
    thread::end_current()
}
