//! A device's common registers, over virtio-mmio or virtio-pci.
//!
//! Implements the transport of `virtio-drivers`. Its methods cannot fail there, so the first failure is kept
//! until it is asked for ([`Link::trouble`]); a register that fails reads as zero meanwhile. Deliberately not
//! here: the order of starting a device (see [`Device`](crate::Device)).

use core::cell::Cell;

use sip::Status;
use virtio_drivers::transport::{DeviceStatus, DeviceType, InterruptStatus, Transport};
use virtio_drivers::{Error, PhysAddr};
use zerocopy::{FromBytes, Immutable, IntoBytes};

use crate::Trouble;
use crate::device::Kind;
use crate::platform::{Platform, Registers};

/// Registers of virtio-mmio, as byte offsets (virtio 1.2, section 4.2.2).
mod mmio {
    pub const MAGIC: u64 = 0x00;
    pub const VERSION: u64 = 0x04;
    pub const DEVICE_ID: u64 = 0x08;
    pub const DEVICE_FEATURES: u64 = 0x10;
    pub const DEVICE_FEATURES_SELECT: u64 = 0x14;
    pub const DRIVER_FEATURES: u64 = 0x20;
    pub const DRIVER_FEATURES_SELECT: u64 = 0x24;
    pub const QUEUE_SELECT: u64 = 0x30;
    pub const QUEUE_SIZE_MAX: u64 = 0x34;
    pub const QUEUE_SIZE: u64 = 0x38;
    pub const QUEUE_READY: u64 = 0x44;
    pub const QUEUE_NOTIFY: u64 = 0x50;
    pub const INTERRUPT_STATUS: u64 = 0x60;
    pub const INTERRUPT_ACKNOWLEDGE: u64 = 0x64;
    pub const STATUS: u64 = 0x70;
    pub const QUEUE_DESCRIPTORS: u64 = 0x80;
    pub const QUEUE_DRIVER: u64 = 0x90;
    pub const QUEUE_DEVICE: u64 = 0xa0;
    pub const CONFIG_GENERATION: u64 = 0xfc;
    pub const CONFIG: u64 = 0x100;

    pub const MAGIC_VALUE: u32 = 0x7472_6976;
    pub const MODERN_VERSION: u32 = 2;
}

/// Registers of the common configuration of virtio-pci, as byte offsets (virtio 1.2, section 4.1.4.3).
mod pci {
    pub const DEVICE_FEATURES_SELECT: u64 = 0;
    pub const DEVICE_FEATURES: u64 = 4;
    pub const DRIVER_FEATURES_SELECT: u64 = 8;
    pub const DRIVER_FEATURES: u64 = 12;
    pub const CONFIG_VECTOR: u64 = 16;
    pub const STATUS: u64 = 20;
    pub const CONFIG_GENERATION: u64 = 21;
    pub const QUEUE_SELECT: u64 = 22;
    pub const QUEUE_SIZE: u64 = 24;
    pub const QUEUE_VECTOR: u64 = 26;
    pub const QUEUE_ENABLE: u64 = 28;
    pub const QUEUE_DOORBELL: u64 = 30;
    pub const QUEUE_DESCRIPTORS: u64 = 32;
    pub const QUEUE_DRIVER: u64 = 40;
    pub const QUEUE_DEVICE: u64 = 48;

    /// Ranges of a published device. That of the interrupt status, 2, is of no use with messages.
    pub const COMMON_RANGE: usize = 0;
    pub const DOORBELLS_RANGE: usize = 1;
    pub const DEVICE_RANGE: usize = 3;
    /// The first doorbell: its length is the distance from one to the next. Where it is missing there is
    /// one for all queues.
    pub const FIRST_DOORBELL_RANGE: usize = 4;
    /// The interrupt that is used for everything.
    pub const VECTOR: u16 = 0;
}

#[derive(Clone)]
enum Way<R> {
    Mmio(R),
    Pci { common: R, device: R, doorbells: R, doorbell_bytes: u64 },
}

/// The common registers of one device.
#[derive(Clone)]
pub(crate) struct Link<R> {
    way: Way<R>,
    kind: Kind,
    /// Where the doorbell of the queue lies that was asked for last.
    doorbell: u64,
    trouble: Cell<Option<Trouble>>,
}

impl<R: Registers> Link<R> {
    /// Looks at what ranges the device has, and whether it is of this kind.
    pub fn open<P: Platform<Registers = R>>(platform: &P, kind: Kind) -> Result<Link<R>, Trouble> {
        let range = |index| platform.range(index).map_err(Trouble::Registers);
        let count = platform.range_count();
        let way = match count {
            1 => {
                let registers = range(0)?;
                check_mmio(&registers, kind)?;
                Way::Mmio(registers)
            }
            _ if count > pci::DEVICE_RANGE => Way::Pci {
                common: range(pci::COMMON_RANGE)?,
                device: range(pci::DEVICE_RANGE)?,
                doorbells: range(pci::DOORBELLS_RANGE)?,
                doorbell_bytes: match count {
                    _ if count > pci::FIRST_DOORBELL_RANGE => range(pci::FIRST_DOORBELL_RANGE)?.bytes(),
                    _ => 0,
                },
            },
            _ => return Err(Trouble::NoVirtioDevice),
        };
        Ok(Link { way, kind, doorbell: 0, trouble: Cell::new(None) })
    }

    /// What has gone wrong since the last time, if anything.
    pub fn trouble(&self) -> Result<(), Trouble> {
        self.trouble.take().map_or(Ok(()), Err)
    }

    /// Makes the device interrupt also when its configuration changes.
    pub fn enable_configuration_interrupt(&mut self) {
        if let Way::Pci { common, .. } = &self.way {
            self.take(common.write16(pci::CONFIG_VECTOR, pci::VECTOR));
            if self.take(common.read16(pci::CONFIG_VECTOR)) != pci::VECTOR {
                self.note(Trouble::NoInterrupt);
            }
        }
    }

    /// Whether the device tells why it interrupts. A message says no more than that something happened.
    pub fn tells_cause(&self) -> bool {
        matches!(self.way, Way::Mmio(_))
    }

    /// Reads a byte of the device's own configuration.
    pub fn configuration8(&self, offset: u64) -> u8 {
        let (registers, base) = self.configuration();
        self.take(registers.read8(base + offset))
    }

    /// Reads 16 bits of the device's own configuration.
    pub fn configuration16(&self, offset: u64) -> u16 {
        let (registers, base) = self.configuration();
        self.take(registers.read16(base + offset))
    }

    /// Reads 32 bits of the device's own configuration.
    pub fn configuration32(&self, offset: u64) -> u32 {
        let (registers, base) = self.configuration();
        self.take(registers.read32(base + offset))
    }

    fn configuration(&self) -> (&R, u64) {
        match &self.way {
            Way::Mmio(registers) => (registers, mmio::CONFIG),
            Way::Pci { device, .. } => (device, 0),
        }
    }

    fn note(&self, trouble: Trouble) {
        // The first is the cause, the others follow from it.
        let first = self.trouble.take().unwrap_or(trouble);
        self.trouble.set(Some(first));
    }

    fn take<T: Default>(&self, outcome: Result<T, Status>) -> T {
        outcome.unwrap_or_else(|status| {
            self.note(Trouble::Registers(status));
            T::default()
        })
    }

    fn select(&self, queue: u16) {
        match &self.way {
            Way::Mmio(registers) => self.take(registers.write32(mmio::QUEUE_SELECT, queue.into())),
            Way::Pci { common, .. } => self.take(common.write16(pci::QUEUE_SELECT, queue)),
        }
    }

    /// Writes 64 bits as two halves: that is how every device takes them.
    fn write_address(&self, registers: &R, offset: u64, address: u64) {
        self.take(registers.write32(offset, address as u32));
        self.take(registers.write32(offset + 4, (address >> 32) as u32));
    }
}

fn check_mmio<R: Registers>(registers: &R, kind: Kind) -> Result<(), Trouble> {
    let read = |offset| registers.read32(offset).map_err(Trouble::Registers);
    if read(mmio::MAGIC)? != mmio::MAGIC_VALUE {
        return Err(Trouble::NoVirtioDevice);
    }
    if read(mmio::VERSION)? != mmio::MODERN_VERSION {
        return Err(Trouble::OldInterface);
    }
    let found = read(mmio::DEVICE_ID)?;
    if found != kind.number() {
        return Err(Trouble::OtherKind { wanted: kind.number(), found });
    }
    Ok(())
}

impl<R: Registers> Transport for Link<R> {
    fn device_type(&self) -> DeviceType {
        self.kind.device_type()
    }

    fn read_device_features(&mut self) -> u64 {
        let half = |select| match &self.way {
            Way::Mmio(registers) => {
                self.take(registers.write32(mmio::DEVICE_FEATURES_SELECT, select));
                self.take(registers.read32(mmio::DEVICE_FEATURES))
            }
            Way::Pci { common, .. } => {
                self.take(common.write32(pci::DEVICE_FEATURES_SELECT, select));
                self.take(common.read32(pci::DEVICE_FEATURES))
            }
        };
        u64::from(half(0)) | u64::from(half(1)) << 32
    }

    fn write_driver_features(&mut self, driver_features: u64) {
        for (select, half) in [(0, driver_features as u32), (1, (driver_features >> 32) as u32)] {
            match &self.way {
                Way::Mmio(registers) => {
                    self.take(registers.write32(mmio::DRIVER_FEATURES_SELECT, select));
                    self.take(registers.write32(mmio::DRIVER_FEATURES, half));
                }
                Way::Pci { common, .. } => {
                    self.take(common.write32(pci::DRIVER_FEATURES_SELECT, select));
                    self.take(common.write32(pci::DRIVER_FEATURES, half));
                }
            }
        }
    }

    fn max_queue_size(&mut self, queue: u16) -> u32 {
        self.select(queue);
        match &self.way {
            Way::Mmio(registers) => self.take(registers.read32(mmio::QUEUE_SIZE_MAX)),
            Way::Pci { common, doorbell_bytes, .. } => {
                let size = self.take(common.read16(pci::QUEUE_SIZE));
                let doorbell = self.take(common.read16(pci::QUEUE_DOORBELL));
                // One that the device does not have is refused when it is to ring.
                self.doorbell = u64::from(doorbell).saturating_mul(*doorbell_bytes);
                size.into()
            }
        }
    }

    fn notify(&mut self, queue: u16) {
        match &self.way {
            Way::Mmio(registers) => self.take(registers.write32(mmio::QUEUE_NOTIFY, queue.into())),
            Way::Pci { doorbells, .. } => self.take(doorbells.write16(self.doorbell, queue)),
        }
    }

    fn get_status(&self) -> DeviceStatus {
        DeviceStatus::from_bits_retain(match &self.way {
            Way::Mmio(registers) => self.take(registers.read32(mmio::STATUS)),
            Way::Pci { common, .. } => self.take(common.read8(pci::STATUS)).into(),
        })
    }

    fn set_status(&mut self, status: DeviceStatus) {
        match &self.way {
            Way::Mmio(registers) => self.take(registers.write32(mmio::STATUS, status.bits())),
            Way::Pci { common, .. } => self.take(common.write8(pci::STATUS, status.bits() as u8)),
        }
    }

    /// Only the interface of before virtio 1.0 asks for it.
    fn set_guest_page_size(&mut self, _guest_page_size: u32) {}

    fn requires_legacy_layout(&self) -> bool {
        false
    }

    fn queue_set(
        &mut self,
        queue: u16,
        size: u32,
        descriptors: PhysAddr,
        driver_area: PhysAddr,
        device_area: PhysAddr,
    ) {
        self.select(queue);
        match &self.way {
            Way::Mmio(registers) => {
                self.take(registers.write32(mmio::QUEUE_SIZE, size));
                self.write_address(registers, mmio::QUEUE_DESCRIPTORS, descriptors);
                self.write_address(registers, mmio::QUEUE_DRIVER, driver_area);
                self.write_address(registers, mmio::QUEUE_DEVICE, device_area);
                self.take(registers.write32(mmio::QUEUE_READY, 1));
            }
            Way::Pci { common, .. } => {
                // A queue's size is at most 32768.
                self.take(common.write16(pci::QUEUE_SIZE, size as u16));
                self.take(common.write16(pci::QUEUE_VECTOR, pci::VECTOR));
                if self.take(common.read16(pci::QUEUE_VECTOR)) != pci::VECTOR {
                    self.note(Trouble::NoInterrupt);
                }
                self.write_address(common, pci::QUEUE_DESCRIPTORS, descriptors);
                self.write_address(common, pci::QUEUE_DRIVER, driver_area);
                self.write_address(common, pci::QUEUE_DEVICE, device_area);
                self.take(common.write16(pci::QUEUE_ENABLE, 1));
            }
        }
    }

    fn queue_unset(&mut self, queue: u16) {
        self.select(queue);
        match &self.way {
            Way::Mmio(registers) => self.take(registers.write32(mmio::QUEUE_READY, 0)),
            // A queue of virtio-pci is only disabled by a reset of the device.
            Way::Pci { .. } => {}
        }
    }

    fn queue_used(&mut self, queue: u16) -> bool {
        self.select(queue);
        match &self.way {
            Way::Mmio(registers) => self.take(registers.read32(mmio::QUEUE_READY)) != 0,
            Way::Pci { common, .. } => self.take(common.read16(pci::QUEUE_ENABLE)) != 0,
        }
    }

    fn ack_interrupt(&mut self) -> InterruptStatus {
        InterruptStatus::from_bits_retain(match &self.way {
            Way::Mmio(registers) => {
                let pending = self.take(registers.read32(mmio::INTERRUPT_STATUS));
                if pending != 0 {
                    self.take(registers.write32(mmio::INTERRUPT_ACKNOWLEDGE, pending));
                }
                pending
            }
            Way::Pci { .. } => InterruptStatus::all().bits(),
        })
    }

    fn read_config_generation(&self) -> u32 {
        match &self.way {
            Way::Mmio(registers) => self.take(registers.read32(mmio::CONFIG_GENERATION)),
            Way::Pci { common, .. } => self.take(common.read8(pci::CONFIG_GENERATION)).into(),
        }
    }

    /// The drivers read their configuration through [`Device`](crate::Device), which gives up in the end.
    fn read_config_space<T: FromBytes + IntoBytes>(&self, _offset: usize) -> virtio_drivers::Result<T> {
        Err(Error::Unsupported)
    }

    fn write_config_space<T: IntoBytes + Immutable>(
        &mut self,
        _offset: usize,
        _value: T,
    ) -> virtio_drivers::Result<()> {
        Err(Error::Unsupported)
    }
}
