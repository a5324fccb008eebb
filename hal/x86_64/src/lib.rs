//! The machine that is a bare x86-64 PC, or what QEMU, Firecracker and others make of one.
//!
//! Key types: [`Bare`] (the machine), [`prepare`] (what makes one of the boot loader's hand-over).
//! Neighbours: the kernel calls it through [`hal_api::Machine`]; `boot/x86_64` is entered by the boot
//! loader and starts it. Deliberately not here: drivers, which are SIPs; any knowledge of SIPs.
//!
//! `docs/hal-x86-64.md` tells how it is made; `docs/soundness/hal-x86-64.md` why each `unsafe` holds.
//! `firmware`, `handover`, `hardware`, `marks` and `regions` decide; the others touch the machine.
#![no_std]

#[cfg(not(target_arch = "x86_64"))]
compile_error!("this machine is an x86-64 one");

extern crate alloc;
#[cfg(test)]
extern crate std;

mod clock;
mod entry;
mod firmware;
mod frames;
mod handover;
mod hardware;
mod interrupts;
mod layout;
mod lines;
mod local;
mod machine;
mod marks;
mod output;
mod paging;
mod power;
mod power_button;
mod processor_tables;
mod processors;
mod regions;
mod registers;
mod report;
mod trampoline;

pub use machine::{Bare, Prepared, grow_heap, prepare};
pub use marks::want as want_boot_marks;
pub use report::{Locate, kernel_panic, set_symbols};

/// Says a line on the debug output.
pub fn say(text: core::fmt::Arguments<'_>) {
    report::say(text);
}

/// Ends the machine after a failure to start.
pub fn end_failed(exit_status: u8) -> ! {
    machine::end_failed(exit_status)
}
