//! Device interrupt lines: inputs of the I/O APICs (82093AA; ACPI 6.5, 5.2.12.3) and MSI.
//!
//! Lines 0 to 15 are the ISA lines, as the firmware routes them; 16 to 63 the global
//! inputs (GSIs) of these numbers; 64 and up are for MSI. All interrupt the boot processor.
//! A level-triggered line is masked when it fires, because it stays asserted until its driver
//! has serviced the device.

use core::ptr;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};

use hal_api::InterruptMessage;

use crate::firmware::{BUS_LINES, Firmware};
use crate::interrupts::{LINES, TIMER};

/// Number of lines that are inputs of I/O APICs.
const INPUTS: u32 = 64;
/// Number of all lines.
pub(crate) const COUNT: u32 = (TIMER - LINES) as u32;

const SELECT: usize = 0;
const WINDOW: usize = 0x10;
const VERSION: u32 = 1;
const REDIRECTIONS: u32 = 0x10;
const MASKED: u32 = 1 << 16;
const LEVEL: u32 = 1 << 15;
const LOW: u32 = 1 << 13;
/// Address to which devices write MSIs (Intel SDM volume 3, 11.11.1).
const MESSAGE_BASE: u64 = 0xfee0_0000;

struct Input {
    /// Address of its I/O APIC's registers; 0: no such input.
    controller: AtomicUsize,
    /// Index of its first register.
    register: AtomicU32,
    /// Lower word of its redirection entry.
    entry: AtomicU32,
}

static TABLE: [Input; INPUTS as usize] =
    [const { Input { controller: AtomicUsize::new(0), register: AtomicU32::new(0), entry: AtomicU32::new(0) } };
        INPUTS as usize];
/// Bit set of the level-triggered inputs.
static LEVELS: AtomicU64 = AtomicU64::new(0);
static NEXT_MESSAGE: AtomicU32 = AtomicU32::new(INPUTS);
/// Spinlock of the I/O APICs' register select: held for a few instructions with interrupts off.
static SELECTING: AtomicBool = AtomicBool::new(false);
static DESTINATION: AtomicU32 = AtomicU32::new(0);

/// Finds the inputs and masks them all.
///
/// # Safety
/// The I/O APICs listed by the firmware are mapped as devices.
pub(crate) unsafe fn start(firmware: &Firmware, destination: u32) {
    DESTINATION.store(destination, Ordering::Relaxed);
    for controller in &firmware.controllers[..firmware.controller_count] {
        let address = controller.address as usize;
        let inputs = (read(address, VERSION) >> 16 & 0xff) + 1;
        for number in 0..inputs {
            let register = REDIRECTIONS + 2 * number;
            write(address, register, MASKED);
            let global = controller.first_input + number;
            place(global, firmware, address, register);
        }
    }
}

/// Assigns an input to the line or lines that the firmware routes to it.
fn place(global: u32, firmware: &Firmware, address: usize, register: u32) {
    let of_bus = firmware.lines.iter().enumerate().filter(|(_, line)| line.input == global);
    for (number, line) in of_bus {
        let entry = if line.level { LEVEL } else { 0 } | if line.low { LOW } else { 0 };
        set(number as u32, address, register, entry);
    }
    if global >= BUS_LINES as u32 && global < INPUTS {
        set(global, address, register, LEVEL);
    }
}

fn set(line: u32, address: usize, register: u32, entry: u32) {
    let Some(input) = TABLE.get(line as usize) else { return };
    input.register.store(register, Ordering::Relaxed);
    input.entry.store(entry | (u32::from(LINES) + line), Ordering::Relaxed);
    input.controller.store(address, Ordering::Release);
    if entry & LEVEL != 0 {
        LEVELS.fetch_or(1 << line, Ordering::Relaxed);
    }
}

/// Masks or unmasks a line. Has no effect on an MSI line.
pub(crate) fn mask(line: u32, masked: bool) {
    let Some(input) = TABLE.get(line as usize) else { return };
    let address = input.controller.load(Ordering::Acquire);
    if address == 0 {
        return;
    }
    let register = input.register.load(Ordering::Relaxed);
    let entry = input.entry.load(Ordering::Relaxed) | if masked { MASKED } else { 0 };
    x86_64::instructions::interrupts::without_interrupts(|| {
        write(address, register + 1, DESTINATION.load(Ordering::Relaxed) << 24);
        write(address, register, entry);
    });
}

/// Masks a level-triggered line that has fired. Called in interrupt context.
pub(crate) fn struck(line: u32) {
    if line < INPUTS && LEVELS.load(Ordering::Relaxed) >> line & 1 == 1 {
        mask(line, true);
    }
}

/// Allocates an MSI line.
pub(crate) fn take_message() -> Option<InterruptMessage> {
    let more = |next: u32| (next < COUNT).then_some(next + 1);
    let line = NEXT_MESSAGE.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).ok()?;
    let address = MESSAGE_BASE | u64::from(DESTINATION.load(Ordering::Relaxed)) << 12;
    Some(InterruptMessage { line, address, data: u32::from(LINES) + line })
}

fn selected<R>(action: impl FnOnce() -> R) -> R {
    while SELECTING.swap(true, Ordering::Acquire) {
        core::hint::spin_loop();
    }
    let answer = action();
    SELECTING.store(false, Ordering::Release);
    answer
}

fn read(address: usize, register: u32) -> u32 {
    // SAFETY: the registers are mapped as a device's (`start`).
    selected(|| unsafe {
        ptr::with_exposed_provenance_mut::<u32>(address + SELECT).write_volatile(register);
        ptr::with_exposed_provenance::<u32>(address + WINDOW).read_volatile()
    })
}

fn write(address: usize, register: u32, value: u32) {
    // SAFETY: as above; the entries written route interrupts to vectors that have handlers.
    selected(|| unsafe {
        ptr::with_exposed_provenance_mut::<u32>(address + SELECT).write_volatile(register);
        ptr::with_exposed_provenance_mut::<u32>(address + WINDOW).write_volatile(value);
    });
}

/// Masks the two legacy controllers (8259): their lines arrive at the I/O APICs too.
pub(crate) fn silence_old_controllers() {
    use x86_64::instructions::port::Port;
    // SAFETY: writing all ones to the mask registers of the 8259s only masks their inputs.
    unsafe {
        Port::<u8>::new(0x21).write(0xff);
        Port::<u8>::new(0xa1).write(0xff);
    }
}
