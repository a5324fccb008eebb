//! The operations of a bus driver: it finds devices and publishes them for other drivers.
//!
//! A device is published with ranges and interrupts that are parts of the bus's own. When its driver closes it
//! or ends, the device is released to the bus ([`Bus::next_released`]); once the bus has quiesced the device, so that it
//! does no more DMA, it reports that ([`Bus::ready`]), and only then are blocks that the driver had pinned
//! reused. All of it needs the manifest's `bus` permission.

use alloc::vec::Vec;

use abi::limits;

use super::Hardware;
use crate::raw::value as kernel;
use crate::{Deadline, Status, thread_block};

/// A bus that this program drives.
#[derive(Clone, Debug)]
pub struct Bus {
    hardware: Hardware,
}

/// Identifies a device of a bus.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DeviceNumber(u64);

/// Address and data of a message-signalled interrupt (MSI).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    /// Address to write to; 0 for an interrupt with a line of its own.
    pub address: u64,
    /// Value to write.
    pub data: u32,
}

/// An interrupt allocated for a device that uses MSI.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessageInterrupt {
    /// Its index among the bus's interrupts, for [`Publication::add_interrupt`].
    pub interrupt: usize,
    /// The message that the device has to write.
    pub message: Message,
}

impl Bus {
    /// Drives an open device as a bus.
    pub fn new(hardware: Hardware) -> Bus {
        Bus { hardware }
    }

    /// Returns the bus as a device.
    pub fn hardware(&self) -> &Hardware {
        &self.hardware
    }

    /// Allocates an interrupt for a device of the bus. `Exhausted` if the machine has no more; `NotPermitted` without the
    /// permission. Interrupts that are in no publication when the bus driver ends are reused when the bus is driven
    /// again.
    pub fn allocate_interrupt(&self) -> Result<MessageInterrupt, Status> {
        let interrupt = kernel::interrupt_allocate(self.hardware.handle())? as usize;
        let message = Message { address: thread_block::message_word(0), data: thread_block::message_word(1) as u32 };
        Ok(MessageInterrupt { interrupt, message })
    }

    /// Begins to publish a device under this name. `Busy` if another bus, the machine or this run of the bus driver
    /// has published that name; `Exhausted` if the kernel's device table is full.
    pub fn publish(&self, name: &str) -> Result<Publication, Status> {
        let length = thread_block::put_bytes(name.as_bytes())?;
        let number = kernel::publication_create(self.hardware.handle(), length)?;
        // Copied at once: a growing vector may make ABI calls.
        let words: [u64; limits::MESSAGE_WORDS] = core::array::from_fn(thread_block::message_word);
        let [is_adopted, count, messages @ ..] = words;
        let adopted = (is_adopted != 0).then(|| {
            let messages = messages.chunks_exact(2).take(usize::try_from(count).unwrap_or(usize::MAX));
            messages.map(|words| Message { address: words[0], data: words[1] as u32 }).collect()
        });
        Ok(Publication { bus: self.hardware.clone(), number, adopted })
    }

    /// Waits for a device whose driver closed it or ended. The bus has to quiesce it and then declare it
    /// [`ready`](Bus::ready).
    pub fn next_released(&self, deadline: Deadline) -> Result<DeviceNumber, Status> {
        kernel::publication_released(self.hardware.handle(), deadline.as_ns()).map(DeviceNumber)
    }

    /// Reports that a released device does no more DMA: it can be opened again.
    pub fn ready(&self, device: DeviceNumber) -> Result<(), Status> {
        kernel::publication_ready(self.hardware.handle(), device.0).map(|_| ())
    }
}

/// A device being published: its ranges and interrupts are added, then it is [opened](Publication::open) to
/// drivers.
#[derive(Debug)]
pub struct Publication {
    bus: Hardware,
    number: u64,
    adopted: Option<Vec<Message>>,
}

impl Publication {
    /// Returns the number that the device will have on the bus.
    pub fn number(&self) -> DeviceNumber {
        DeviceNumber(self.number)
    }

    /// Returns the messages of its interrupts if the device was published before the bus driver restarted: a driver may
    /// be using it, so it must not be reset. Its ranges have to be added again, in the same order, to prove that it is
    /// the same device; its interrupts stay as they are.
    pub fn adopted(&self) -> Option<&[Message]> {
        self.adopted.as_deref()
    }

    /// Adds `bytes` bytes from `offset` of a range of the bus. Returns the range's index for the driver.
    pub fn add_range(&self, range: usize, offset: u64, bytes: u64) -> Result<usize, Status> {
        let bus = self.bus.handle();
        kernel::publication_add_range(bus, self.number, range as u64, offset, bytes).map(|index| index as usize)
    }

    /// Adds an interrupt of the bus, by its index there. Returns its index for the driver.
    pub fn add_interrupt(&self, interrupt: usize) -> Result<usize, Status> {
        let bus = self.bus.handle();
        kernel::publication_add_interrupt(bus, self.number, interrupt as u64).map(|index| index as usize)
    }

    /// Allows drivers to open it from now on.
    pub fn open(self) -> Result<DeviceNumber, Status> {
        kernel::publication_open(self.bus.handle(), self.number)?;
        Ok(self.number())
    }
}
