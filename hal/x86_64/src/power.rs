//! Power-off and restart.

use core::arch::asm;
use core::ptr;
use core::sync::atomic::{AtomicBool, Ordering};

use x86_64::instructions::port::Port;

use crate::firmware::{Firmware, Register};
use crate::{clock, output, processors};

/// I/O port of QEMU's exit device.
const EXIT_PORT: u16 = 0x501;
const EXIT_VALUE: u32 = 0x10;
const KEYBOARD_COMMAND: u16 = 0x64;
const KEYBOARD_RESET: u8 = 0xfe;
/// Time given to each method to take effect.
const TIMEOUT_NS: u64 = 50_000_000;

/// Last byte on QEMU's debug port: the machine is reset because of a restart.
const STARTS_ANEW: u8 = 2;

static ENDING: AtomicBool = AtomicBool::new(false);

fn write(register: Register, value: u16) {
    match register {
        // SAFETY: port and value are the firmware's own for this purpose.
        Register::Port(port) => unsafe { Port::<u16>::new(port).write(value) },
        // SAFETY: likewise; `machine` has mapped it as a device's.
        Register::Memory(address) => unsafe {
            ptr::with_exposed_provenance_mut::<u8>(address as usize).write_volatile(value as u8);
        },
    }
    clock::wait_ns(TIMEOUT_NS);
}

fn end_others() {
    x86_64::instructions::interrupts::disable();
    if ENDING.swap(true, Ordering::AcqRel) {
        // Another processor is ending the machine already.
        processors::halt();
    }
    processors::stop_others();
}

/// Powers the machine off. Under QEMU with a debug port the last byte written there is the exit status.
pub(crate) fn off(firmware: &Firmware, exit_status: u8) -> ! {
    end_others();
    if output::has_debug_port() {
        output::debug_byte(exit_status);
        // SAFETY: QEMU's exit device is at this port if there is a debug port.
        unsafe { Port::<u32>::new(EXIT_PORT).write(EXIT_VALUE) };
    }
    if let Some((register, value)) = firmware.off {
        write(register, value);
    }
    output::write(b"the machine may be switched off now\n");
    processors::halt()
}

/// Powers off a machine whose firmware has not been read yet.
pub(crate) fn off_unknown(exit_status: u8) -> ! {
    x86_64::instructions::interrupts::disable();
    if output::has_debug_port() {
        output::debug_byte(exit_status);
        // SAFETY: as in `off`.
        unsafe { Port::<u32>::new(EXIT_PORT).write(EXIT_VALUE) };
    }
    processors::halt()
}

/// Restarts the machine.
pub(crate) fn restart(firmware: &Firmware) -> ! {
    end_others();
    if output::has_debug_port() {
        output::debug_byte(STARTS_ANEW);
    }
    if let Some((register, value)) = firmware.reset {
        match register {
            // SAFETY: port and value are the firmware's own for this purpose.
            Register::Port(port) => unsafe { Port::<u8>::new(port).write(value) },
            Register::Memory(_) => write(register, value.into()),
        }
        clock::wait_ns(TIMEOUT_NS);
    }
    // SAFETY: the keyboard controller resets the processor at this command.
    unsafe { Port::<u8>::new(KEYBOARD_COMMAND).write(KEYBOARD_RESET) };
    clock::wait_ns(TIMEOUT_NS);
    let none = [0u8; 10];
    // SAFETY: with an empty interrupt table the breakpoint cannot be delivered, nor the faults that
    // follow, and the triple fault resets the processor: nothing after this runs.
    unsafe { asm!("lidt [{}]", "int3", in(reg) &none, options(noreturn)) }
}
