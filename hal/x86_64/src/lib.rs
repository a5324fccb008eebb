//! The machine that is a bare x86-64 PC, or a virtual one of QEMU, Firecracker and others.
//!
//! Key types: [`Bare`] (the machine), [`prepare`] (builds one from the boot loader's information).
//! Neighbours: the kernel calls it through [`hal_api::Machine`]; `boot/x86_64` is entered by the boot
//! loader and starts it. Deliberately not here: drivers, which are SIPs; any knowledge of SIPs.
//!
//! See `docs/hal-x86-64.md` for its design, and `docs/soundness/hal-x86-64.md` for its `unsafe` code.
//! `firmware`, `handover`, `hardware`, `marks` and `regions` are logic; the others touch the machine.
#![no_std]

#[cfg(not(target_arch = "x86_64"))]
compile_error!("this machine is an x86-64 one");

extern crate alloc;
#[cfg(test)]
extern crate std;

mod clock;
mod crossing;
mod domains;
mod entry;
mod firmware;
mod frames;
mod gates;
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
mod protection;
#[cfg(feature = "recording")]
mod recording;
mod regions;
mod registers;
mod report;
mod trampoline;

pub use machine::{Bare, Prepared, grow_heap, prepare};
pub use marks::want as want_boot_marks;
pub use report::{Locate, kernel_panic, set_symbols};

/// Writes a line to the debug output.
pub fn say(text: core::fmt::Arguments<'_>) {
    report::say(text);
}

/// Powers the machine off after a failed start.
pub fn end_failed(exit_status: u8) -> ! {
    machine::end_failed(exit_status)
}
