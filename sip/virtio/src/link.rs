//! A device's common registers, over virtio-mmio or virtio-pci.
//!
//! Implements the transport of `virtio-drivers`. Its methods cannot return errors, so the first error is kept
//! until [`Link::error`] takes it; a register that cannot be read reads as zero meanwhile. Deliberately not
//! here: the initialization sequence (see [`Device`](crate::Device)).

use core::cell::Cell;

use layout::{Access, Map, Register, Writable};
use sip::Status;
use virtio_bus::{common, slot};
use virtio_drivers::transport::{DeviceStatus, DeviceType, InterruptStatus, Transport};
use virtio_drivers::{Error, PhysAddr};
use zerocopy::{FromBytes, Immutable, IntoBytes};

use crate::DeviceError;
use crate::device::Kind;
use crate::platform::{Platform, Registers};

/// Order of the ranges and interrupts that a bus publishes for a device on PCI.
mod pci {
    /// Ranges of a published device. Range 2, the interrupt status, is not used with MSI.
    pub const COMMON_RANGE: usize = 0;
    pub const DOORBELLS_RANGE: usize = 1;
    pub const DEVICE_RANGE: usize = 3;
    /// The doorbell of queue 0; its length is the distance between doorbells. If it is missing, all queues
    /// share one.
    pub const FIRST_DOORBELL_RANGE: usize = 4;
    /// The vector used for all interrupts.
    pub const VECTOR: u16 = 0;
}

/// Version of an MMIO slot with the registers of virtio 1.0 and later.
const MODERN_VERSION: u32 = 2;

#[derive(Clone)]
enum Way<R> {
    Mmio(R),
    Pci { common: R, device: R, doorbells: R, doorbell_bytes: u64 },
}

/// The first error not yet taken: later ones follow from it.
#[derive(Clone, Default)]
struct Noted(Cell<Option<DeviceError>>);

impl Noted {
    fn note(&self, error: DeviceError) {
        let first = self.0.take().unwrap_or(error);
        self.0.set(Some(first));
    }

    fn take<T: Default>(&self, outcome: Result<T, Status>) -> T {
        outcome.unwrap_or_else(|status| {
            self.note(DeviceError::Registers(status));
            T::default()
        })
    }
}

/// Registers whose errors are recorded.
struct Noting<'a, R> {
    registers: &'a R,
    noted: &'a Noted,
}

macro_rules! noted_accesses {
    ($($number:ident: $read:ident, $write:ident;)*) => {$(
        impl<R: Registers> Access<$number> for Noting<'_, R> {
            fn read(&self, offset: u64) -> $number {
                self.noted.take(self.registers.$read(offset))
            }

            fn write(&self, offset: u64, value: $number) {
                self.noted.take(self.registers.$write(offset, value));
            }
        }
    )*};
}

noted_accesses! {
    u8: read8, write8;
    u16: read16, write16;
    u32: read32, write32;
}

type Slot<'a, R> = slot::Registers<Noting<'a, R>>;
type Common<'a, R> = common::Registers<Noting<'a, R>>;

/// The common registers of one device.
#[derive(Clone)]
pub(crate) struct Link<R> {
    way: Way<R>,
    kind: Kind,
    /// Offset of the doorbell of the queue whose maximum size was read last.
    doorbell: u64,
    error: Noted,
}

impl<R: Registers> Link<R> {
    /// Identifies the device's ranges, and, over MMIO, checks that the device is of this kind.
    pub fn open<P: Platform<Registers = R>>(platform: &P, kind: Kind) -> Result<Link<R>, DeviceError> {
        let range = |index| platform.range(index).map_err(DeviceError::Registers);
        let count = platform.range_count();
        let way = match count {
            1 => Way::Mmio(range(0)?),
            _ if count > pci::DEVICE_RANGE => Way::Pci {
                common: range(pci::COMMON_RANGE)?,
                device: range(pci::DEVICE_RANGE)?,
                doorbells: range(pci::DOORBELLS_RANGE)?,
                doorbell_bytes: match count {
                    _ if count > pci::FIRST_DOORBELL_RANGE => range(pci::FIRST_DOORBELL_RANGE)?.bytes(),
                    _ => 0,
                },
            },
            _ => return Err(DeviceError::NoVirtioDevice),
        };
        let link = Link { way, kind, doorbell: 0, error: Noted::default() };
        if let Way::Mmio(registers) = &link.way {
            let slot = link.slot(registers);
            let (magic, version, found) = (slot.magic().read(), slot.version().read(), slot.device_id().read());
            link.error()?;
            match (magic, version) {
                (slot::MAGIC, MODERN_VERSION) if found == kind.number() => {}
                (slot::MAGIC, MODERN_VERSION) => return Err(DeviceError::OtherKind { wanted: kind.number(), found }),
                (slot::MAGIC, _) => return Err(DeviceError::OldInterface),
                _ => return Err(DeviceError::NoVirtioDevice),
            }
        }
        Ok(link)
    }

    fn common<'a>(&'a self, registers: &'a R) -> Common<'a, R> {
        Common::over(Noting { registers, noted: &self.error })
    }

    fn slot<'a>(&'a self, registers: &'a R) -> Slot<'a, R> {
        Slot::over(Noting { registers, noted: &self.error })
    }

    /// Returns and clears the first error since the last call.
    pub fn error(&self) -> Result<(), DeviceError> {
        self.error.0.take().map_or(Ok(()), Err)
    }

    /// Enables the configuration change interrupt.
    pub fn enable_configuration_interrupt(&mut self) {
        if let Way::Pci { common, .. } = &self.way {
            let common = self.common(common);
            common.configuration_vector().write(pci::VECTOR);
            if common.configuration_vector().read() != pci::VECTOR {
                self.error.note(DeviceError::NoInterrupt);
            }
        }
    }

    /// Returns whether the device reports the cause of an interrupt. An MSI carries none.
    pub fn tells_cause(&self) -> bool {
        matches!(self.way, Way::Mmio(_))
    }

    /// Reads a byte of the device's own configuration.
    pub fn configuration8(&self, offset: u64) -> u8 {
        let (registers, base) = self.configuration();
        self.error.take(registers.read8(base + offset))
    }

    /// Reads 16 bits of the device's own configuration.
    pub fn configuration16(&self, offset: u64) -> u16 {
        let (registers, base) = self.configuration();
        self.error.take(registers.read16(base + offset))
    }

    /// Reads 32 bits of the device's own configuration.
    pub fn configuration32(&self, offset: u64) -> u32 {
        let (registers, base) = self.configuration();
        self.error.take(registers.read32(base + offset))
    }

    /// Reads 64 bits of the device's own configuration, as two halves.
    pub fn configuration64(&self, offset: u64) -> u64 {
        u64::from(self.configuration32(offset)) | u64::from(self.configuration32(offset + 4)) << 32
    }

    /// Records an access that registers do not support.
    pub fn refuse(&self, status: Status) {
        self.error.note(DeviceError::Registers(status));
    }

    fn configuration(&self) -> (&R, u64) {
        match &self.way {
            Way::Mmio(registers) => (registers, <Slot<'_, R> as Map>::BYTES),
            Way::Pci { device, .. } => (device, 0),
        }
    }

    fn select(&self, queue: u16) {
        match &self.way {
            Way::Mmio(registers) => self.slot(registers).queue_select().write(queue.into()),
            Way::Pci { common, .. } => self.common(common).queue_select().write(queue),
        }
    }
}

/// Writes an address to the registers of its two halves.
fn write_address<A: Access<u32>, D: Writable>(
    low: &Register<'_, A, u32, D>,
    high: &Register<'_, A, u32, D>,
    address: PhysAddr,
) {
    low.write(address as u32);
    high.write((address >> 32) as u32);
}

impl<R: Registers> Transport for Link<R> {
    fn device_type(&self) -> DeviceType {
        self.kind.device_type()
    }

    fn read_device_features(&mut self) -> u64 {
        let half = |select| match &self.way {
            Way::Mmio(registers) => {
                let slot = self.slot(registers);
                slot.device_features_select().write(select);
                slot.device_features().read()
            }
            Way::Pci { common, .. } => {
                let common = self.common(common);
                common.device_features_select().write(select);
                common.device_features().read()
            }
        };
        u64::from(half(0)) | u64::from(half(1)) << 32
    }

    fn write_driver_features(&mut self, driver_features: u64) {
        for (select, half) in [(0, driver_features as u32), (1, (driver_features >> 32) as u32)] {
            match &self.way {
                Way::Mmio(registers) => {
                    let slot = self.slot(registers);
                    slot.driver_features_select().write(select);
                    slot.driver_features().write(half);
                }
                Way::Pci { common, .. } => {
                    let common = self.common(common);
                    common.driver_features_select().write(select);
                    common.driver_features().write(half);
                }
            }
        }
    }

    fn max_queue_size(&mut self, queue: u16) -> u32 {
        self.select(queue);
        match &self.way {
            Way::Mmio(registers) => self.slot(registers).queue_size_most().read(),
            Way::Pci { common, doorbell_bytes, .. } => {
                let common = self.common(common);
                let (size, doorbell) = (common.queue_size().read(), common.queue_doorbell().read());
                // The kernel refuses an offset out of range when the doorbell is rung.
                self.doorbell = u64::from(doorbell).saturating_mul(*doorbell_bytes);
                size.into()
            }
        }
    }

    fn notify(&mut self, queue: u16) {
        match &self.way {
            Way::Mmio(registers) => self.slot(registers).queue_notify().write(queue.into()),
            Way::Pci { doorbells, .. } => self.error.take(doorbells.write16(self.doorbell, queue)),
        }
    }

    fn get_status(&self) -> DeviceStatus {
        DeviceStatus::from_bits_retain(match &self.way {
            Way::Mmio(registers) => self.slot(registers).status().read(),
            Way::Pci { common, .. } => self.common(common).status().read().into(),
        })
    }

    fn set_status(&mut self, status: DeviceStatus) {
        match &self.way {
            Way::Mmio(registers) => self.slot(registers).status().write(status.bits()),
            Way::Pci { common, .. } => self.common(common).status().write(status.bits() as u8),
        }
    }

    /// Only the legacy interface needs it.
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
                let slot = self.slot(registers);
                slot.queue_size().write(size);
                write_address(&slot.queue_descriptors_low(), &slot.queue_descriptors_high(), descriptors);
                write_address(&slot.queue_driver_low(), &slot.queue_driver_high(), driver_area);
                write_address(&slot.queue_device_low(), &slot.queue_device_high(), device_area);
                slot.queue_ready().write(1);
            }
            Way::Pci { common, .. } => {
                let common = self.common(common);
                // A queue's size is at most 32768.
                common.queue_size().write(size as u16);
                common.queue_vector().write(pci::VECTOR);
                if common.queue_vector().read() != pci::VECTOR {
                    self.error.note(DeviceError::NoInterrupt);
                }
                write_address(&common.queue_descriptors_low(), &common.queue_descriptors_high(), descriptors);
                write_address(&common.queue_driver_low(), &common.queue_driver_high(), driver_area);
                write_address(&common.queue_device_low(), &common.queue_device_high(), device_area);
                common.queue_enable().write(1);
            }
        }
    }

    fn queue_unset(&mut self, queue: u16) {
        self.select(queue);
        match &self.way {
            Way::Mmio(registers) => self.slot(registers).queue_ready().write(0),
            // A queue of virtio-pci can be disabled only by a device reset.
            Way::Pci { .. } => {}
        }
    }

    fn queue_used(&mut self, queue: u16) -> bool {
        self.select(queue);
        match &self.way {
            Way::Mmio(registers) => self.slot(registers).queue_ready().read() != 0,
            Way::Pci { common, .. } => self.common(common).queue_enable().read() != 0,
        }
    }

    fn ack_interrupt(&mut self) -> InterruptStatus {
        InterruptStatus::from_bits_retain(match &self.way {
            Way::Mmio(registers) => {
                let slot = self.slot(registers);
                let pending = slot.interrupt_status().read();
                if pending != 0 {
                    slot.interrupt_acknowledge().write(pending);
                }
                pending
            }
            Way::Pci { .. } => InterruptStatus::all().bits(),
        })
    }

    fn read_config_generation(&self) -> u32 {
        match &self.way {
            Way::Mmio(registers) => self.slot(registers).generation().read(),
            Way::Pci { common, .. } => self.common(common).generation().read().into(),
        }
    }

    /// Drivers read their configuration through [`Device`](crate::Device), which bounds the retries.
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
