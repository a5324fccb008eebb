//! The device's registers, over virtio-mmio or virtio-pci, with fault injection.

use std::boxed::Box;
use std::sync::Arc;
use std::vec::Vec;

use sip::Status;

use super::Behaviour;
use super::arena::Arena;
use super::faults::Faults;
use super::rings::Ring;

const VERSION_1: u64 = 1 << 32;
const DRIVER_OK: u32 = 4;
const FEATURES_OK: u32 = 8;
const NEEDS_RESET: u32 = 64;
const QUEUE_SIZE_MAX: u16 = 256;
const MAX_QUEUES: u64 = 4;
const DOORBELL_BYTES: u64 = 4;

/// Transport of the device's registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// One range as of virtio-mmio.
    Mmio,
    /// Ranges as a PCI bus publishes them.
    Pci,
}

/// A register, independent of the transport.
#[derive(Clone, Copy)]
enum Register {
    Magic,
    Version,
    DeviceId,
    DeviceFeatures,
    DeviceFeaturesSelect,
    DriverFeatures,
    DriverFeaturesSelect,
    QueueSelect,
    QueueSizeMax,
    QueueSize,
    QueueEnable,
    QueueDoorbell,
    Notify,
    InterruptStatus,
    InterruptAcknowledge,
    Status,
    /// Address of the descriptors (0), driver area (1) or device area (2); true for the upper half.
    Address(usize, bool),
    ConfigGeneration,
    Vector,
    Configuration(u64),
}

pub(super) struct RegisterFile {
    behaviour: Box<dyn Behaviour>,
    arena: Arc<Arena>,
    way: Way,
    faults: Faults,
    deaf: bool,
    restless: bool,
    status: u32,
    device_features_select: u32,
    driver_features_select: u32,
    driver_features: u64,
    queue_select: u16,
    interrupt: u32,
    generation: u32,
    vector: u16,
    rings: Vec<Ring>,
}

impl RegisterFile {
    pub fn new(behaviour: Box<dyn Behaviour>, arena: Arc<Arena>, way: Way, faults: Faults) -> RegisterFile {
        let rings = (0..behaviour.queues()).map(|_| Ring::default()).collect();
        let mut file = RegisterFile {
            behaviour,
            arena,
            way,
            faults,
            deaf: false,
            restless: false,
            status: 0,
            device_features_select: 0,
            driver_features_select: 0,
            driver_features: 0,
            queue_select: 0,
            interrupt: 0,
            generation: 0,
            vector: 0,
            rings,
        };
        file.reset();
        file
    }

    pub fn behaviour(&mut self) -> &mut dyn Behaviour {
        &mut *self.behaviour
    }

    pub fn set_faults(&mut self, faults: Faults) {
        self.faults = faults;
    }

    /// Sets whether it ignores register writes.
    pub fn set_deaf(&mut self, deaf: bool) {
        self.deaf = deaf;
    }

    /// Sets whether the configuration generation changes with each read.
    pub fn set_restless(&mut self, restless: bool) {
        self.restless = restless;
    }

    pub fn run(&mut self) {
        if self.status & DRIVER_OK == 0 {
            return;
        }
        if self.faults.strikes() {
            match self.faults.numbers().below(4) {
                0 => self.status |= NEEDS_RESET,
                1 => self.generation = self.generation.wrapping_add(1),
                2 => self.interrupt = self.faults.numbers().number() as u32,
                // It processes nothing.
                _ => return,
            }
        }
        for (index, ring) in self.rings.iter_mut().enumerate() {
            if ring.run(index as u16, &mut *self.behaviour, &self.arena, &mut self.faults) {
                self.interrupt |= 1;
            }
        }
    }

    pub fn read(&mut self, range: usize, offset: u64, bytes: u64) -> Result<u32, Status> {
        let register = self.register(range, offset, bytes)?;
        let value = self.value(register, bytes);
        if !self.faults.strikes() {
            return Ok(value);
        }
        match self.faults.numbers().below(8) {
            0 => Err(Status::DeviceError),
            1 | 2 => Ok(value ^ 1 << self.faults.numbers().below(32)),
            _ => Ok(self.faults.numbers().number() as u32),
        }
    }

    pub fn write(&mut self, range: usize, offset: u64, bytes: u64, value: u32) -> Result<(), Status> {
        let register = self.register(range, offset, bytes)?;
        if self.faults.strikes() {
            match self.faults.numbers().below(4) {
                0 => return Err(Status::DeviceError),
                // The write is ignored, even a reset.
                1 => return Ok(()),
                _ => {}
            }
        }
        if !self.deaf {
            self.set(register, value);
        }
        Ok(())
    }

    fn ring(&mut self) -> Option<&mut Ring> {
        self.rings.get_mut(usize::from(self.queue_select))
    }

    fn value(&mut self, register: Register, bytes: u64) -> u32 {
        match register {
            Register::Magic => 0x7472_6976,
            Register::Version => 2,
            Register::DeviceId => self.behaviour.kind().number(),
            Register::DeviceFeatures => {
                let features = self.behaviour.features() | VERSION_1;
                if self.device_features_select == 0 { features as u32 } else { (features >> 32) as u32 }
            }
            Register::QueueSizeMax => self.ring().map_or(0, |_| QUEUE_SIZE_MAX.into()),
            Register::QueueEnable => self.ring().is_some_and(|ring| ring.enabled).into(),
            Register::QueueDoorbell => self.queue_select.into(),
            Register::InterruptStatus => self.interrupt,
            Register::Status => self.status,
            Register::ConfigGeneration => {
                self.generation = self.generation.wrapping_add(self.restless.into()) & 0xff;
                self.generation
            }
            Register::Vector => self.vector.into(),
            Register::Configuration(offset) => {
                let configuration = self.behaviour.configuration();
                let byte = |index: u64| configuration.get((offset + index) as usize).copied().unwrap_or(0);
                (0..bytes).fold(0, |value, index| value | u32::from(byte(index)) << (8 * index))
            }
            _ => 0,
        }
    }

    fn set(&mut self, register: Register, value: u32) {
        match register {
            Register::DeviceFeaturesSelect => self.device_features_select = value,
            Register::DriverFeaturesSelect => self.driver_features_select = value,
            Register::DriverFeatures => {
                let shift = if self.driver_features_select == 0 { 0 } else { 32 };
                self.driver_features = self.driver_features & !(0xffff_ffff << shift) | u64::from(value) << shift;
            }
            Register::QueueSelect => self.queue_select = value as u16,
            // Over PCI one register holds both the maximum and the driver's choice.
            Register::QueueSize | Register::QueueSizeMax => {
                if let Some(ring) = self.ring() {
                    ring.size = (value as u16).min(QUEUE_SIZE_MAX);
                }
            }
            Register::QueueEnable => {
                if let Some(ring) = self.ring() {
                    ring.enabled = value != 0;
                }
            }
            Register::InterruptAcknowledge => self.interrupt &= !value,
            Register::Vector => self.vector = value as u16,
            Register::Status if value == 0 => self.reset(),
            Register::Status => self.set_status(value),
            Register::Address(which, upper) => {
                if let Some(ring) = self.ring() {
                    let address = match which {
                        0 => &mut ring.descriptors,
                        1 => &mut ring.driver,
                        _ => &mut ring.device,
                    };
                    let shift = if upper { 32 } else { 0 };
                    *address = *address & !(0xffff_ffff << shift) | u64::from(value) << shift;
                }
            }
            _ => {}
        }
    }

    fn set_status(&mut self, value: u32) {
        let known = self.behaviour.features() | VERSION_1;
        let acceptable = self.driver_features & !known == 0 && self.driver_features & VERSION_1 != 0;
        self.status = if acceptable { value } else { value & !FEATURES_OK };
    }

    fn reset(&mut self) {
        self.status = 0;
        self.interrupt = 0;
        self.driver_features = 0;
        for ring in &mut self.rings {
            *ring = Ring::default();
            ring.size = QUEUE_SIZE_MAX;
        }
    }

    fn register(&self, range: usize, offset: u64, bytes: u64) -> Result<Register, Status> {
        if !offset.is_multiple_of(bytes) {
            return Err(Status::BadArgument);
        }
        let found = match (self.way, range) {
            (Way::Mmio, 0) if (0x100..0x200).contains(&offset) => Some(Register::Configuration(offset - 0x100)),
            (Way::Mmio, 0) if bytes == 4 => mmio_register(offset),
            (Way::Pci, 0) => pci_register(offset, bytes),
            (Way::Pci, 1) if bytes == 2 && offset < range_bytes(Way::Pci, 1) => Some(Register::Notify),
            (Way::Pci, 3) if offset < range_bytes(Way::Pci, 3) => Some(Register::Configuration(offset)),
            _ => None,
        };
        found.ok_or(Status::BadArgument)
    }
}

/// Returns the length of a register range in bytes.
pub(super) fn range_bytes(way: Way, range: usize) -> u64 {
    match (way, range) {
        (Way::Mmio, _) => 512,
        (Way::Pci, 0) => 56,
        (Way::Pci, 1) => MAX_QUEUES * DOORBELL_BYTES,
        (Way::Pci, 4) => DOORBELL_BYTES,
        (Way::Pci, _) => 64,
    }
}

fn mmio_register(offset: u64) -> Option<Register> {
    Some(match offset {
        0x00 => Register::Magic,
        0x04 => Register::Version,
        0x08 => Register::DeviceId,
        0x10 => Register::DeviceFeatures,
        0x14 => Register::DeviceFeaturesSelect,
        0x20 => Register::DriverFeatures,
        0x24 => Register::DriverFeaturesSelect,
        0x30 => Register::QueueSelect,
        0x34 => Register::QueueSizeMax,
        0x38 => Register::QueueSize,
        0x44 => Register::QueueEnable,
        0x50 => Register::Notify,
        0x60 => Register::InterruptStatus,
        0x64 => Register::InterruptAcknowledge,
        0x70 => Register::Status,
        0x80 | 0x84 | 0x90 | 0x94 | 0xa0 | 0xa4 => {
            Register::Address(((offset - 0x80) / 0x10) as usize, offset & 4 != 0)
        }
        0xfc => Register::ConfigGeneration,
        _ => return None,
    })
}

fn pci_register(offset: u64, bytes: u64) -> Option<Register> {
    Some(match (offset, bytes) {
        (0, 4) => Register::DeviceFeaturesSelect,
        (4, 4) => Register::DeviceFeatures,
        (8, 4) => Register::DriverFeaturesSelect,
        (12, 4) => Register::DriverFeatures,
        (16 | 26, 2) => Register::Vector,
        (20, 1) => Register::Status,
        (21, 1) => Register::ConfigGeneration,
        (22, 2) => Register::QueueSelect,
        (24, 2) => Register::QueueSizeMax,
        (28, 2) => Register::QueueEnable,
        (30, 2) => Register::QueueDoorbell,
        (32..56, 4) => Register::Address(((offset - 32) / 8) as usize, offset & 4 != 0),
        _ => return None,
    })
}
