//! Devices as registers, interrupts and memory that the device reaches by itself.
//!
//! Key types: [`Hardware`] (an open device), [`Registers`], [`IoPortRange`] and [`IoMemoryRange`] (registers as what a
//! manifest declares them), [`Interrupt`], [`DmaBlock`]; [`bus`] for the drivers of buses. Which registers and interrupts a device has, its manifest says or its bus; the kernel
//! checks every access. Deliberately not here: what the registers mean.

pub mod bus;
mod dma;
mod ranges;

pub use dma::{DmaBlock, Pinnable};
pub use ranges::{DeclaredRange, IoMemoryRange, IoPortRange, IoRange};
#[doc(hidden)]
pub use ranges::{declared_range, map_bytes};

use alloc::sync::Arc;

use crate::raw::value as kernel;
use crate::{Deadline, Status, thread_block, time};

/// How long [`Hardware::open`] waits for a device that its last driver has just given up, in milliseconds.
const OPEN_WITHIN_MS: u64 = 2_000;
const OPEN_AGAIN_AFTER_MS: u64 = 5;

/// An open device. A clone is the same device, which is closed when the last of its clones, registers,
/// interrupts and blocks is dropped.
#[derive(Clone, Debug)]
pub struct Hardware {
    open: Arc<Open>,
}

#[derive(Debug)]
struct Open {
    handle: u64,
    ranges: usize,
    interrupts: usize,
}

impl Drop for Open {
    fn drop(&mut self) {
        // The handle is this value's own, so it cannot be refused.
        let _ = kernel::device_close(self.handle);
    }
}

impl Hardware {
    /// Opens the device at `index` of the manifest's device list. A device that is busy, because its bus has
    /// not yet silenced it after its last driver, is waited for up to 2 seconds.
    pub fn open(index: usize) -> Result<Hardware, Status> {
        let deadline = Deadline::after_ms(OPEN_WITHIN_MS);
        loop {
            match kernel::device_open(index as u64) {
                Ok(handle) => return Hardware::describe(handle),
                Err(Status::Busy) if !deadline.has_passed() => {
                    time::sleep_until(Deadline::after_ms(OPEN_AGAIN_AFTER_MS));
                }
                Err(status) => return Err(status),
            }
        }
    }

    fn describe(handle: u64) -> Result<Hardware, Status> {
        let mut open = Open { handle, ranges: 0, interrupts: 0 };
        kernel::device_describe(handle)?;
        open.ranges = thread_block::message_word(5) as usize;
        open.interrupts = thread_block::message_word(6) as usize;
        Ok(Hardware { open: Arc::new(open) })
    }

    /// How many ranges of registers it has.
    pub fn range_count(&self) -> usize {
        self.open.ranges
    }

    /// How many interrupts it has. A bus has more once it has allocated some.
    pub fn interrupt_count(&self) -> usize {
        self.open.interrupts
    }

    /// A range of its registers: those of the manifest's `ports` first, then those of `memory`, or in the
    /// order in which its bus gave them. `NotFound` if it has not so many.
    pub fn range(&self, range: usize) -> Result<Registers, Status> {
        let bytes = kernel::range_describe(self.open.handle, range as u64)?;
        let memory = thread_block::message_word(0) != 0;
        let kind = if memory { RangeKind::Memory } else { RangeKind::Ports };
        let base = thread_block::message_word(1);
        Ok(Registers { hardware: self.clone(), range: range as u64, kind, base, bytes })
    }

    /// One of its interrupts. `NotFound` if it has not so many.
    pub fn interrupt(&self, interrupt: usize) -> Result<Interrupt, Status> {
        if interrupt < self.open.interrupts {
            Ok(Interrupt { hardware: self.clone(), interrupt: interrupt as u64 })
        } else {
            Err(Status::NotFound)
        }
    }

    pub(crate) fn handle(&self) -> u64 {
        self.open.handle
    }
}

/// Where the registers of a range lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RangeKind {
    /// I/O ports.
    Ports,
    /// Memory of the device's.
    Memory,
}

/// A range of a device's registers.
#[derive(Clone, Debug)]
pub struct Registers {
    hardware: Hardware,
    range: u64,
    kind: RangeKind,
    base: u64,
    bytes: u64,
}

macro_rules! accesses {
    ($($read:ident, $write:ident: $number:ident, $bits:literal;)*) => {$(
        #[doc = concat!("Reads the ", $bits, "-bit register at this byte offset. `BadArgument` if it does not lie")]
        /// in the range or is not at a multiple of its size.
        pub fn $read(&self, offset: u64) -> Result<$number, Status> {
            // The kernel answers with no more bits than were asked for.
            kernel::register_read(self.handle(), self.range, offset, size_of::<$number>() as u64)
                .map(|value| value as $number)
        }

        #[doc = concat!("Writes the ", $bits, "-bit register at this byte offset; errors as for reading.")]
        pub fn $write(&self, offset: u64, value: $number) -> Result<(), Status> {
            let width = size_of::<$number>() as u64;
            kernel::register_write(self.handle(), self.range, offset, width, u64::from(value)).map(|_| ())
        }
    )*};
}

impl Registers {
    /// Which address space they lie in.
    pub fn kind(&self) -> RangeKind {
        self.kind
    }

    /// The first port or physical address.
    pub fn base(&self) -> u64 {
        self.base
    }

    /// How many ports or bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    fn handle(&self) -> u64 {
        self.hardware.handle()
    }

    accesses! {
        read8, write8: u8, "8";
        read16, write16: u16, "16";
        read32, write32: u32, "32";
        read64, write64: u64, "64";
    }
}

/// An interrupt of a device.
#[derive(Clone, Debug)]
pub struct Interrupt {
    hardware: Hardware,
    interrupt: u64,
}

impl Interrupt {
    /// Waits until the interrupt has fired: how often it did since the last wait, at least once. The first
    /// wait enables it, and each one that has to wait acknowledges what came before: of a line that the
    /// device holds until it is served, serve the device before waiting again.
    ///
    /// `TimedOut` at the deadline; `DeviceError` from then on if the kernel silenced the line because it
    /// fired without end: the driver is to end, and to be started again.
    pub fn wait(&self, deadline: Deadline) -> Result<u64, Status> {
        kernel::interrupt_wait(self.hardware.handle(), self.interrupt, deadline.as_ns())
    }
}
