//! The power button of ACPI: the interrupt of the device `power-button`, which says that the machine is asked to end.
//!
//! A PC has it as a bit of its event registers (ACPI 6.5, 4.8.3.1.1); a machine without those, as an event of a device
//! that its AML describes (5.6.9), which QEMU's microvm has. Neighbours: `firmware` finds it, `interrupts` asks whether a
//! line that has struck is a press. Deliberately not here: what comes of a press, which the service manager decides.

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

/// Where the button is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Button {
    /// In the event registers: status at one port, enable bits at another.
    Fixed {
        /// The port of the status.
        status: u16,
        /// The port of the enable bits.
        enable: u16,
        /// The line that interrupts.
        line: u32,
    },
    /// Behind an event device.
    Event {
        /// Physical address of the register that says which events came; reading it clears them.
        selector: u64,
        /// The line that interrupts.
        line: u32,
    },
}

impl Button {
    /// The ports that are its own, from the first to behind the last.
    pub(crate) fn ports(self) -> Option<(u64, u64)> {
        match self {
            Button::Fixed { status, enable, .. } => Some((status.into(), u64::from(enable) + 2)),
            Button::Event { .. } => None,
        }
    }
}

/// The button's line, and the port or address that says whether it was pressed. Of a button in event registers the
/// address is 0.
static LINE: AtomicU32 = AtomicU32::new(NONE);
static STATUS_PORT: AtomicU32 = AtomicU32::new(0);
static SELECTOR: AtomicUsize = AtomicUsize::new(0);

/// Lets the button interrupt; what the kernel is told of it. A press from before is forgotten.
pub(crate) fn start(button: Button) -> Option<Hardware> {
    let line = match button {
        Button::Fixed { status, enable, line } => {
            STATUS_PORT.store(status.into(), Ordering::Relaxed);
            // SAFETY: the ports are those of the firmware's tables for this purpose. Writing a bit of the status clears
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

/// Whether a line that has struck is to be told of: it is another than the button's, or the button was pressed. In
/// interrupt context.
pub(crate) fn is_told(line: u32) -> bool {
    line != LINE.load(Ordering::Acquire) || take_press()
}

fn take_press() -> bool {
    let selector = SELECTOR.load(Ordering::Relaxed);
    if selector != 0 {
        // SAFETY: `start` has mapped it as a device's before there was a line.
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
