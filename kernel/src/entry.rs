//! Entry points of SIPs and the machine into the kernel.
//!
//! A SIP calls through [`abi::AbiTable`] and stays on its own stack. Entry first checks that the stack has room for the
//! kernel; exit checks whether the thread must end or yield. The stack may end right below the return address, so that
//! the registers an entry saves before its check hit the guard: a fault there is the SIP's ([`overflowed_at_entry`]),
//! as the kernel holds nothing yet. The machine enters through [`hal_api::KernelEntries`].

use abi::limits::{STACK_GUARD_BYTES, STACK_RESERVE_BYTES};
use abi::{AbiReturn, AbiTable, EpitaphKind, TABLE_ID};
use alloc::format;
use hal_api::{Fault, FaultKind, KernelEntries};

use crate::lifecycle::Place;
use crate::machine::machine;
use crate::preempt::{PENDING_RESCHEDULE, PENDING_TIMER};
use crate::process::Epitaph;
use crate::{
    arch, cpu, deferred, device, handlers, hardware, installed, latency, lifecycle, memory, program, record, recorder,
    replay, sched, thread,
};

macro_rules! define_entries {
    ($(group $group:literal { $(#[doc = $doc:literal] fn $name:ident($($argument:ident),*) -> $value:literal;)* })*) => {
        $($(
            // Not again inside its measured twin.
            #[inline(never)]
            extern "C" fn $name($($argument: u64),*) -> AbiReturn {
                arch::require_stack!(0, stack_used_up);
                leave(Number::$name, handlers::$name($($argument),*).into())
            }
        )*)*

        /// The functions by number, for calls from domains. They are the entries, so that each handler has one caller
        /// and is inlined there; but for the one that asks for the caller's stack, which is another in a domain.
        static FUNCTIONS: &[fn([u64; 6]) -> AbiReturn; abi::FUNCTIONS.len()] = &{
            let mut functions: [fn([u64; 6]) -> AbiReturn; abi::FUNCTIONS.len()] = [$($(|arguments| {
                let mut _rest = arguments.into_iter();
                $(let $argument = _rest.next().unwrap_or(0);)*
                $name($($argument),*)
            },)*)*];
            functions[Number::stack_left as usize] = stack_left_in_domain;
            functions
        };

        static TABLE: AbiTable = AbiTable { id: TABLE_ID, $($($name,)*)* };

        /// Numbers of the functions.
        #[allow(non_camel_case_types, reason = "named as the functions are")]
        enum Number { $($($name,)*)* }

        /// The same functions, measured. They leave the others enough stack, so that none ends between the two
        /// readings.
        mod measured {
            use super::*;

            $($(
                pub(super) extern "C" fn $name($($argument: u64),*) -> AbiReturn {
                    arch::require_stack!(MEASURED_FRAME_BYTES, stack_used_up);
                    latency::begin(&cpu::current().stretch, Number::$name as usize);
                    let answer = super::$name($($argument),*);
                    latency::end(&cpu::current().stretch);
                    answer
                }
            )*)*
        }

        /// The same functions, recorded, with stack left as for the measured ones.
        mod recorded {
            use super::*;

            $($(
                pub(super) extern "C" fn $name($($argument: u64),*) -> AbiReturn {
                    arch::require_stack!(RECORDED_FRAME_BYTES, stack_used_up);
                    record::begin(Number::$name as usize, &[$($argument),*]);
                    let answer = super::$name($($argument),*);
                    record::end(Number::$name as usize, &[$($argument),*], answer);
                    answer
                }
            )*)*
        }

        static RECORDED: AbiTable = AbiTable { id: TABLE_ID, $($($name: recorded::$name,)*)* };

        /// The same functions, answered by a recording.
        mod replayed {
            use super::*;

            $($(
                pub(super) extern "C" fn $name($($argument: u64),*) -> AbiReturn {
                    arch::require_stack!(RECORDED_FRAME_BYTES, replay::stack_used_up);
                    replay::call(Number::$name as usize, &[$($argument),*])
                }
            )*)*
        }

        static REPLAYED: AbiTable = AbiTable { id: TABLE_ID, $($($name: replayed::$name,)*)* };

        static MEASURED: AbiTable = AbiTable { id: TABLE_ID, $($($name: measured::$name,)*)* };

        /// Whether an entry begins less than [`MAX_PROLOGUE_BYTES`] before this instruction.
        fn is_prologue(instruction: usize) -> bool {
            let holds = |entry: *const ()| instruction.wrapping_sub(entry.addr()) < MAX_PROLOGUE_BYTES;
            $($(holds($name as *const ()) || holds(measured::$name as *const ()) || recorder::CAN_RECORD && holds(recorded::$name as *const ()) ||)*)* false
        }

        /// The same of a replay's entries, which a machine without replays need not have.
        fn is_replayed_prologue(instruction: usize) -> bool {
            let holds = |entry: *const ()| instruction.wrapping_sub(entry.addr()) < MAX_PROLOGUE_BYTES;
            $($(holds(replayed::$name as *const ()) ||)*)* false
        }
    };
}

/// Upper bound of a recorded entry's frame, and of the functions that it calls before the handler.
const RECORDED_FRAME_BYTES: usize = 512;
/// Upper bound of a measured entry's frame.
const MEASURED_FRAME_BYTES: usize = 256;

abi::for_each_function!(define_entries);

/// Ends a call.
#[inline(always)]
fn leave(function: Number, answer: AbiReturn) -> AbiReturn {
    if arch::cpu_pending() != 0 {
        // By way of it, so that the usual path saves no register for the answer.
        return deferred::service_after_call(function as u32, answer);
    }
    answer
}

fn stack_left_in_domain(_: [u64; 6]) -> AbiReturn {
    leave(Number::stack_left, handlers::stack_left_in_domain().into())
}

/// Address of the table, for thread blocks.
pub fn table_address() -> usize {
    let table = match (recorder::is_on(), latency::is_on()) {
        (true, _) => &RECORDED,
        (false, true) => &MEASURED,
        (false, false) => &TABLE,
    };
    core::ptr::from_ref(table).addr()
}

/// Calls the function with this number, which a thread in a domain claims; `None` if there is none.
#[inline(always)]
pub fn call(number: u64, arguments: [u64; 6]) -> Option<AbiReturn> {
    let number = usize::try_from(number).ok()?;
    let function = FUNCTIONS.get(number)?;
    Some(match (recorder::is_on(), latency::is_on()) {
        (false, false) => function(arguments),
        (false, true) => call_measured(number, *function, arguments),
        (true, _) => call_recorded(number, *function, arguments),
    })
}

#[cold]
fn call_recorded(number: usize, function: fn([u64; 6]) -> AbiReturn, arguments: [u64; 6]) -> AbiReturn {
    let count = abi::FUNCTIONS.get(number).map_or(0, |function| function.arguments.len());
    let own = &arguments[..count.min(arguments.len())];
    record::begin(number, own);
    let answer = function(arguments);
    record::end(number, own, answer);
    answer
}

#[cold]
fn call_measured(number: usize, function: fn([u64; 6]) -> AbiReturn, arguments: [u64; 6]) -> AbiReturn {
    latency::begin(&cpu::current().stretch, number);
    let answer = function(arguments);
    latency::end(&cpu::current().stretch);
    answer
}

/// Number of functions.
pub fn function_count() -> usize {
    FUNCTIONS.len()
}

/// What a replay needs of the entries.
pub fn replay_hooks() -> replay::Hooks {
    replay::Hooks {
        table_address: core::ptr::from_ref(&REPLAYED).addr(),
        is_sip_code,
        is_overflow_at_entry: is_replays_overflow_at_entry,
        describe_fault: describe_replays_fault,
        used_up_at_call,
    }
}

/// Entry points for the machine.
pub fn machine_entries() -> KernelEntries {
    KernelEntries {
        is_sip_code,
        overflowed_at_entry,
        tick,
        interrupt,
        fault,
        stack_top,
        fired: hardware::fired,
        running,
        device_complete: device::complete,
    }
}

fn describe_replays_fault(thread_block: usize, fault: &Fault) -> Epitaph {
    let in_reserve = fault.address.wrapping_sub(memory::stack_start(thread_block)) < STACK_RESERVE_BYTES;
    match fault.kind {
        FaultKind::Memory if in_reserve && is_replayed_prologue(fault.instruction) => used_up_at_call(),
        _ => describe_fault(thread_block, fault),
    }
}

/// Whether an address lies in the guard of the stack with this thread block.
fn is_guard(thread_block: usize, address: usize) -> bool {
    thread_block != 0 && address.wrapping_sub(memory::stack_start(thread_block)) < STACK_GUARD_BYTES
}

fn is_replays_overflow_at_entry(thread_block: usize, instruction: usize, address: usize) -> bool {
    is_guard(thread_block, address) && is_replayed_prologue(instruction)
}

extern "C" fn is_sip_code(instruction: usize) -> bool {
    program::is_image_address(instruction)
}

/// Bytes at the start of an entry's code that contain all its pushes before the check. A test decodes them all.
const MAX_PROLOGUE_BYTES: usize = 48;

extern "C" fn overflowed_at_entry(instruction: usize, address: usize) -> bool {
    is_guard(stack_top(), address) && is_prologue(instruction)
}

extern "C" fn tick(timer: bool) -> bool {
    let flag = if timer { PENDING_TIMER } else { PENDING_RESCHEDULE };
    arch::cpu_set_pending(flag);
    if timer {
        sched::account_sample();
    }
    true
}

extern "C" fn interrupt() {
    deferred::service_pending();
}

fn running() -> Option<(&'static str, u64)> {
    let process = cpu::this().current()?.owner()?;
    let program = process.program.get()?;
    Some((&program.manifest.name, process.id.load(core::sync::atomic::Ordering::Relaxed)))
}

extern "C" fn stack_top() -> usize {
    cpu::this().current().map_or(0, |thread| thread.block_address())
}

/// Ends the SIP of the calling thread, whose code has faulted.
pub extern "C" fn fault(fault: &Fault) -> ! {
    let thread = cpu::current();
    if let Some(process) = thread.owner() {
        lifecycle::end_at(process, describe_fault(thread.sip_block_address(), fault), Place::of_fault(fault));
    }
    lifecycle::end_current_thread()
}

/// The epitaph of a SIP whose thread with this thread block has faulted.
fn describe_fault(thread_block: usize, fault: &Fault) -> Epitaph {
    let at = match installed::locate(fault.instruction) {
        Some((name, offset)) => format!("{name}+{offset:#x}"),
        None => format!("address {:#x}, which is no code", fault.instruction),
    };
    let told = installed::fault_at(fault.instruction);
    let at = match told {
        Some((function, _)) => format!("{at} in {function}"),
        None => at,
    };
    let in_slot = fault.address.wrapping_sub(memory::stack_start(thread_block)) < STACK_RESERVE_BYTES;
    match fault.kind {
        FaultKind::Memory if in_slot && is_prologue(fault.instruction) => used_up_at_call(),
        FaultKind::Memory if in_slot => Epitaph::new(EpitaphKind::StackOverflow, format!("used up its stack at {at}")),
        // Code that is proven to keep to its window: what lies behind the window's pages is out of bounds.
        FaultKind::Memory
            if let Some((_, trap)) = told
                && machine().layout().windows.contains(fault.address) =>
        {
            Epitaph::new(EpitaphKind::Faulted, format!("trap: {trap} at {at}"))
        }
        FaultKind::Memory if fault.instruction == fault.address => {
            Epitaph::new(EpitaphKind::Faulted, format!("jumped to {at}"))
        }
        FaultKind::Memory => {
            Epitaph::new(EpitaphKind::Faulted, format!("accessed address {:#x} at {at}", fault.address))
        }
        FaultKind::Instruction | FaultKind::Arithmetic if let Some((_, trap)) = told => {
            Epitaph::new(EpitaphKind::Faulted, format!("trap: {trap} at {at}"))
        }
        FaultKind::Instruction => Epitaph::new(EpitaphKind::Faulted, format!("executed a bad instruction at {at}")),
        FaultKind::Arithmetic => Epitaph::new(EpitaphKind::Faulted, format!("divided by zero at {at}")),
        FaultKind::OutOfMemory => {
            Epitaph::new(EpitaphKind::Faulted, format!("needed memory for its stack at {at}, and none was left"))
        }
        FaultKind::HostCall => Epitaph::new(EpitaphKind::Faulted, format!("made a system call of the host at {at}")),
        FaultKind::DomainEnded => {
            Epitaph::new(EpitaphKind::Faulted, format!("its hardware domain ended; its last call was from {at}"))
        }
        FaultKind::Trap => Epitaph::new(EpitaphKind::Faulted, format!("hit a breakpoint at {at}")),
    }
}

/// The SIP ends, so nothing on the stack is needed, and no kernel frame is on it.
#[unsafe(naked)]
extern "C" fn stack_used_up() -> ! {
    arch::restart_stack!(end_overflowed, thread::STACK_OFFSET)
}

/// Ends the SIP of the calling thread, which has called with its stack used up.
pub extern "C" fn end_overflowed() -> ! {
    let thread = cpu::current();
    if let Some(process) = thread.owner() {
        lifecycle::end_at(process, used_up_at_call(), Place::overflowed(thread));
    }
    lifecycle::end_current_thread()
}

/// The epitaph of a SIP that has called with its stack used up.
fn used_up_at_call() -> Epitaph {
    Epitaph::new(EpitaphKind::StackOverflow, "called the kernel with its stack used up")
}
