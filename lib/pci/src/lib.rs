//! The PCI bus, over an abstract configuration space.
//!
//! Key types: [`ConfigurationSpace`], [`Function`] and [`enumerate`], [`Bar`] (sized by [`bars`], placed by
//! [`Placement`]), [`capabilities`], [`msix::Table`], [`virtio::Structures`]. Devices are untrusted: everything here
//! ends after a bounded number of accesses, and contradictions are errors. (The crate `pci_types` reads registers by
//! unsafe functions, which a driver may not implement, and follows capability lists without bound.) Sections are those
//! of the PCI Local Bus Specification 3.0. Deliberately not here: drivers, and bus numbering, which is the firmware's.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod bars;
pub mod capabilities;
mod enumeration;
pub mod msix;
mod placement;
pub mod virtio;

use core::fmt;

pub use bars::{Bar, BarKind};
pub use enumeration::{Bridge, Function, MAX_FUNCTIONS, enumerate};
pub use placement::{Placement, Span};

/// Bus, device and function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Address {
    /// Bus.
    pub bus: u8,
    /// Device, 0 to 31.
    pub slot: u8,
    /// Function, 0 to 7.
    pub function: u8,
}

impl Address {
    /// Offset of the function's registers in memory-mapped configuration space (ECAM; PCI Express Base Specification,
    /// 7.2.2).
    pub fn memory_offset(self) -> u64 {
        u64::from(self.bus) << 20 | u64::from(self.slot) << 15 | u64::from(self.function) << 12
    }

    /// CONFIG_ADDRESS of a register (3.2.2.3.2). Offsets are below 256.
    pub fn port_selector(self, offset: u16) -> u32 {
        let (bus, slot, function) = (u32::from(self.bus), u32::from(self.slot), u32::from(self.function));
        1 << 31 | bus << 16 | slot << 11 | function << 8 | u32::from(offset & 0xfc)
    }
}

impl fmt::Display for Address {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:02x}:{:02x}.{}", self.bus, self.slot, self.function)
    }
}

/// The configuration ports of a PC (3.2.2.3.2): CONFIG_ADDRESS and CONFIG_DATA.
#[layout::registers(bytes = 8)]
pub struct ConfigurationPorts {
    /// An [`Address::port_selector`].
    #[at(0)]
    pub selector: ReadWrite<u32>,
    /// The selected register.
    #[at(4)]
    pub register: ReadWrite<u32>,
}

/// Access to 32-bit configuration registers, at offsets that are multiples of 4 and below 256. Absent functions read as
/// all ones.
pub trait ConfigurationSpace {
    /// Reads a register.
    fn read(&mut self, address: Address, offset: u16) -> u32;
    /// Writes a register.
    fn write(&mut self, address: Address, offset: u16, value: u32);
}

/// Register offsets (6.1) and bits.
pub mod register {
    /// Device and vendor id.
    pub const IDENTITY: u16 = 0x00;
    /// Status (upper half, cleared by writing ones) and command.
    pub const COMMAND: u16 = 0x04;
    /// Class, subclass, interface and revision.
    pub const CLASS: u16 = 0x08;
    /// Includes the header type in bits 16 to 23.
    pub const HEADER: u16 = 0x0c;
    /// The first base address register.
    pub const BARS: u16 = 0x10;
    /// Bus numbers, of a bridge.
    pub const BUSES: u16 = 0x18;
    /// Memory window of a bridge.
    pub const BRIDGE_MEMORY: u16 = 0x20;
    /// Prefetchable window of a bridge; two more registers hold upper halves.
    pub const BRIDGE_PREFETCHABLE: u16 = 0x24;
    /// Subsystem, of a device.
    pub const SUBSYSTEM: u16 = 0x2c;
    /// Offset of the first capability.
    pub const CAPABILITIES: u16 = 0x34;

    /// I/O space enable.
    pub const COMMAND_PORTS: u16 = 1 << 0;
    /// Memory space enable.
    pub const COMMAND_MEMORY: u16 = 1 << 1;
    /// Bus master enable.
    pub const COMMAND_MASTER: u16 = 1 << 2;
    /// Interrupt disable (INTx).
    pub const COMMAND_NO_PIN: u16 = 1 << 10;
}

/// Reads the command register.
pub fn command(space: &mut impl ConfigurationSpace, address: Address) -> u16 {
    space.read(address, register::COMMAND) as u16
}

/// Writes the command register, without changing the status register beside it.
pub fn set_command(space: &mut impl ConfigurationSpace, address: Address, command: u16) {
    space.write(address, register::COMMAND, command.into());
}
