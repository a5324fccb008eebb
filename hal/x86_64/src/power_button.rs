//! The ACPI power button, as the interrupt of the device `power-button`: a request to shut down.
//!
//! A PC has it as a bit of its event registers (ACPI 6.5, 4.8.3.1.1); a machine without those, such as QEMU's microvm,
//! as an event of a generic event device in its AML (5.6.9). Neighbours: `firmware` finds it, `interrupts` queries
//! whether an interrupt was a press. Deliberately not here: the reaction to a press, which is the service manager's.

use alloc::string::String;
use alloc::vec::Vec;
use core::ptr;
use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use hal_api::Hardware;
use x86_64::instructions::port::Port;

use crate::frames::FRAME_BYTES;
use crate::paging::{self, Access, PageSize};

/// The device's name.
const NAME: &str = "power-button";
/// The button's bit in the event registers of a PC, and in the selector of QEMU's event device.
const FIXED_BIT: u16 = 1 << 8;
const EVENT_BIT: u32 = 1 << 1;
/// No line.
const NONE: u32 = u32::MAX;

/// Location of the button.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Button {
    /// In the event registers: status at one port, enable bits at another.
    Fixed {
        /// I/O port of the status.
        status: u16,
        /// I/O port of the enable bits.
        enable: u16,
        /// Interrupt line.
        line: u32,
    },
    /// Behind a generic event device.
    Event {
        /// Physical address of the register with the pending events; reading it clears them.
        selector: u64,
        /// Interrupt line.
        line: u32,
    },
}

impl Button {
    /// Returns its I/O ports, from the first to the one after the last.
    pub(crate) fn ports(self) -> Option<(u64, u64)> {
        match self {
            Button::Fixed { status, enable, .. } => Some((status.into(), u64::from(enable) + 2)),
            Button::Event { .. } => None,
        }
    }
}

/// The button's line, and the port or address of its status. For a button in event registers the
/// address is 0.
static LINE: AtomicU32 = AtomicU32::new(NONE);
static STATUS_PORT: AtomicU32 = AtomicU32::new(0);
static SELECTOR: AtomicUsize = AtomicUsize::new(0);

/// Enables the button's interrupt and returns its device for the kernel. An earlier press is cleared.
pub(crate) fn start(button: Button) -> Option<Hardware> {
    let line = match button {
        Button::Fixed { status, enable, line } => {
            STATUS_PORT.store(status.into(), Ordering::Relaxed);
            // SAFETY: the firmware's tables give these ports for this purpose. Writing a bit of the status clears
            // it; of the events, the button alone is enabled.
            unsafe {
                Port::<u16>::new(status).write(FIXED_BIT);
                Port::<u16>::new(enable).write(FIXED_BIT);
            }
            line
        }
        Button::Event { selector, line } => {
            let page = selector & !(FRAME_BYTES as u64 - 1);
            paging::map_identity(page, page + FRAME_BYTES as u64, Access::Device, PageSize::Small).ok()?;
            SELECTOR.store(selector as usize, Ordering::Relaxed);
            line
        }
    };
    LINE.store(line, Ordering::Release);
    Some(Hardware { name: String::from(NAME), ranges: Vec::new(), interrupts: Vec::from([line]) })
}

/// Returns whether an interrupt has to be reported: it is on another line than the button's, or the button was pressed.
/// Called in interrupt context.
pub(crate) fn is_told(line: u32) -> bool {
    line != LINE.load(Ordering::Acquire) || take_press()
}

fn take_press() -> bool {
    let selector = SELECTOR.load(Ordering::Relaxed);
    if selector != 0 {
        // SAFETY: `start` mapped it as a device's before the line was set.
        let events = unsafe { ptr::with_exposed_provenance::<u32>(selector).read_volatile() };
        return events & EVENT_BIT != 0;
    }
    let port = STATUS_PORT.load(Ordering::Relaxed) as u16;
    // SAFETY: as in `start`.
    unsafe {
        let pressed = Port::<u16>::new(port).read() & FIXED_BIT != 0;
        if pressed {
            Port::<u16>::new(port).write(FIXED_BIT);
        }
        pressed
    }
}
