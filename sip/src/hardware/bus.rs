//! What the driver of a bus does: it finds devices and offers them to other drivers.
//!
//! A device is published with ranges and interrupts that are parts of the bus's own. When its driver closes it
//! or ends, the device comes back ([`Bus::next_released`]); once the bus has made sure that the device reaches
//! no memory any more, it says so ([`Bus::ready`]), and only then may blocks that the driver had pinned be
//! used for something else. All of it needs the manifest's `bus` permission.

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

/// Which of a bus's devices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DeviceNumber(u64);

/// What a device writes where to interrupt (MSI).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    /// Address to write to; 0 for an interrupt that is a line of its own.
    pub address: u64,
    /// What to write.
    pub data: u32,
}

/// An interrupt allocated for a device that interrupts by messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessageInterrupt {
    /// Its index among the bus's interrupts, for [`Publication::add_interrupt`].
    pub interrupt: usize,
    /// What the device is to write where.
    pub message: Message,
}

impl Bus {
    /// Drives an open device as a bus.
    pub fn new(hardware: Hardware) -> Bus {
        Bus { hardware }
    }

    /// The bus as a device.
    pub fn hardware(&self) -> &Hardware {
        &self.hardware
    }

    /// A new interrupt for a device of the bus. `Exhausted` if the machine has no more; `NotPermitted` without the
    /// permission. Interrupts that are in no publication when the bus ends are given out again when it is
    /// driven again.
    pub fn allocate_interrupt(&self) -> Result<MessageInterrupt, Status> {
        let interrupt = kernel::interrupt_allocate(self.hardware.handle())? as usize;
        let message = Message { address: thread_block::message_word(0), data: thread_block::message_word(1) as u32 };
        Ok(MessageInterrupt { interrupt, message })
    }

    /// Begins to offer a device under this name. `Busy` if another bus, the machine or this run of the bus
    /// offers one of that name; `Exhausted` if the kernel knows too many devices.
    pub fn publish(&self, name: &str) -> Result<Publication, Status> {
        let length = thread_block::put_bytes(name.as_bytes())?;
        let number = kernel::publication_create(self.hardware.handle(), length)?;
        // All of the answer at once: a vector that grows may call the kernel.
        let words: [u64; limits::MESSAGE_WORDS] = core::array::from_fn(thread_block::message_word);
        let [is_adopted, count, messages @ ..] = words;
        let adopted = (is_adopted != 0).then(|| {
            let messages = messages.chunks_exact(2).take(usize::try_from(count).unwrap_or(usize::MAX));
            messages.map(|words| Message { address: words[0], data: words[1] as u32 }).collect()
        });
        Ok(Publication { bus: self.hardware.clone(), number, adopted })
    }

    /// Waits for a device whose driver closed it or ended. It is to be silenced and then declared
    /// [`ready`](Bus::ready).
    pub fn next_released(&self, deadline: Deadline) -> Result<DeviceNumber, Status> {
        kernel::publication_released(self.hardware.handle(), deadline.as_ns()).map(DeviceNumber)
    }

    /// Says that a device which was given up reaches no memory any more: it can be opened again.
    pub fn ready(&self, device: DeviceNumber) -> Result<(), Status> {
        kernel::publication_ready(self.hardware.handle(), device.0).map(|_| ())
    }
}

/// A device that is being offered: its ranges and interrupts are added, then it is [opened](Publication::open) to
/// drivers.
#[derive(Debug)]
pub struct Publication {
    bus: Hardware,
    number: u64,
    adopted: Option<Vec<Message>>,
}

impl Publication {
    /// Which device of the bus it will be.
    pub fn number(&self) -> DeviceNumber {
        DeviceNumber(self.number)
    }

    /// The messages of its interrupts, if the bus offered this device before it was restarted: a driver may be
    /// using it, so it must be left alone. Its ranges are added again, in the same order, which proves that it
    /// is the same device; its interrupts stay as they are.
    pub fn adopted(&self) -> Option<&[Message]> {
        self.adopted.as_deref()
    }

    /// Adds `bytes` bytes from `offset` of a range of the bus: the index that the driver will know it by.
    pub fn add_range(&self, range: usize, offset: u64, bytes: u64) -> Result<usize, Status> {
        let bus = self.bus.handle();
        kernel::publication_add_range(bus, self.number, range as u64, offset, bytes).map(|index| index as usize)
    }

    /// Adds an interrupt of the bus, by its index there: the index that the driver will know it by.
    pub fn add_interrupt(&self, interrupt: usize) -> Result<usize, Status> {
        let bus = self.bus.handle();
        kernel::publication_add_interrupt(bus, self.number, interrupt as u64).map(|index| index as usize)
    }

    /// Lets drivers open it from now on.
    pub fn open(self) -> Result<DeviceNumber, Status> {
        kernel::publication_open(self.bus.handle(), self.number)?;
        Ok(self.number())
    }
}
