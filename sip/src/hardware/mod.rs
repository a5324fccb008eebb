//! Devices as registers, interrupts and DMA memory.
//!
//! Key types: [`Hardware`] (an open device), [`Registers`], [`IoPortRange`] and [`IoMemoryRange`] (registers as a manifest
//! declares them), [`Interrupt`], [`DmaBlock`]; [`bus`] for bus drivers. The manifest or the bus determines which registers
//! and interrupts a device has; the kernel checks every access. Deliberately not here: the meaning of registers.

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

/// Timeout of [`Hardware::open`] for a device that is still busy from its last driver, in milliseconds.
const OPEN_WITHIN_MS: u64 = 2_000;
const OPEN_AGAIN_AFTER_MS: u64 = 5;

/// An open device. A clone is the same device, which is closed when the last of its clones, registers,
/// interrupts and DMA blocks is dropped.
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
        // This value owns the handle, so the kernel cannot refuse it.
        let _ = kernel::device_close(self.handle);
    }
}

impl Hardware {
    /// Opens the device at `index` of the manifest's device list. Retries for up to 2 seconds while the device is busy,
    /// because its bus has not yet quiesced it after its last driver.
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

    /// Returns the number of its register ranges.
    pub fn range_count(&self) -> usize {
        self.open.ranges
    }

    /// Returns the number of its interrupts when it was opened. A bus has more once it has allocated some.
    pub fn interrupt_count(&self) -> usize {
        self.open.interrupts
    }

    /// Returns a range of its registers: those of the manifest's `ports` first, then those of `memory`, or in the
    /// order in which its bus added them. `NotFound` past the last.
    pub fn range(&self, range: usize) -> Result<Registers, Status> {
        let bytes = kernel::range_describe(self.open.handle, range as u64)?;
        let memory = thread_block::message_word(0) != 0;
        let kind = if memory { RangeKind::Memory } else { RangeKind::Ports };
        let base = thread_block::message_word(1);
        Ok(Registers { hardware: self.clone(), range: range as u64, kind, base, bytes })
    }

    /// Returns one of its interrupts. `NotFound` past the last.
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

/// Address space of a range of registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RangeKind {
    /// I/O ports.
    Ports,
    /// Memory-mapped (MMIO).
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
        /// in the range or is not aligned to its size.
        pub fn $read(&self, offset: u64) -> Result<$number, Status> {
            // The kernel returns no more bits than were asked for.
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
    /// Returns their address space.
    pub fn kind(&self) -> RangeKind {
        self.kind
    }

    /// Returns the first port or physical address.
    pub fn base(&self) -> u64 {
        self.base
    }

    /// Returns the number of ports or bytes.
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
    /// Waits until the interrupt has fired, and returns how often it did since the last wait, at least 1. The first
    /// wait enables it, and each one that blocks acknowledges what came before: with a level-triggered line, service the
    /// device before waiting again.
    ///
    /// `TimedOut` at the deadline; `DeviceError` from then on if the kernel masked the line because of an interrupt
    /// storm: the driver has to end and be restarted.
    pub fn wait(&self, deadline: Deadline) -> Result<u64, Status> {
        kernel::interrupt_wait(self.hardware.handle(), self.interrupt, deadline.as_ns())
    }
}
