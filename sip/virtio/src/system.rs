//! The platform of a program: `sip::hardware`.

use core::ptr::NonNull;

use sip::device::DeviceObject;
use sip::exheap::ExVec;
use sip::hardware::{DmaBlock, Hardware, Interrupt, Pinnable};
use sip::{Deadline, Status, adapter, time};

use crate::platform::{DeviceMemory, Platform, Registers};

/// An open device of a program.
#[derive(Clone, Debug)]
pub struct System {
    hardware: Hardware,
}

impl DeviceObject for System {
    fn open(index: usize) -> Result<System, Status> {
        Hardware::open(index).map(|hardware| System { hardware })
    }
}

impl System {
    /// Returns the one interrupt of a virtio device.
    ///
    /// # Errors
    /// `NotFound` if it has none.
    pub fn interrupt(&self) -> Result<Interrupt, Status> {
        self.hardware.interrupt(0)
    }

    /// Pins a block for DMA.
    ///
    /// # Errors
    /// As [`Hardware::begin_dma`]; the block is returned.
    pub fn pin<B: Pinnable>(&self, block: B) -> Result<DmaBlock<B>, (B, Status)> {
        self.hardware.begin_dma(block)
    }
}

impl Registers for sip::hardware::Registers {
    fn bytes(&self) -> u64 {
        self.bytes()
    }

    fn read8(&self, offset: u64) -> Result<u8, Status> {
        self.read8(offset)
    }

    fn read16(&self, offset: u64) -> Result<u16, Status> {
        self.read16(offset)
    }

    fn read32(&self, offset: u64) -> Result<u32, Status> {
        self.read32(offset)
    }

    fn write8(&self, offset: u64, value: u8) -> Result<(), Status> {
        self.write8(offset, value)
    }

    fn write16(&self, offset: u64, value: u16) -> Result<(), Status> {
        self.write16(offset, value)
    }

    fn write32(&self, offset: u64, value: u32) -> Result<(), Status> {
        self.write32(offset, value)
    }
}

// SAFETY: the block is pinned, has this value as its only owner and never moves in memory; a DmaBlock hands out no
// reference to its bytes; the kernel returned the device address for the whole block.
unsafe impl<B: Pinnable + Send> DeviceMemory for DmaBlock<B> {
    fn memory(&self) -> NonNull<[u8]> {
        DmaBlock::memory(self)
    }

    fn device_address(&self) -> u64 {
        DmaBlock::device_address(self)
    }
}

// SAFETY: the word is the thread's own, 0 at first; only an adapter may call `adapter::set_word`, and this
// crate is the only one.
unsafe impl Platform for System {
    type Registers = sip::hardware::Registers;
    type Memory = DmaBlock<ExVec<u8>>;

    fn range_count(&self) -> usize {
        self.hardware.range_count()
    }

    fn range(&self, index: usize) -> Result<sip::hardware::Registers, Status> {
        self.hardware.range(index)
    }

    fn allocate(&self, bytes: usize) -> Result<DmaBlock<ExVec<u8>>, Status> {
        self.pin(ExVec::new(bytes)?).map_err(|(_, status)| status)
    }

    fn now_ns(&self) -> u64 {
        time::monotonic()
    }

    fn pause(&self) {
        time::sleep_until(Deadline::after_ms(1));
    }

    fn word() -> u64 {
        adapter::word()
    }

    unsafe fn set_word(word: u64) {
        // SAFETY: passed on.
        unsafe { adapter::set_word(word) }
    }
}
