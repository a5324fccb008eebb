//! The PCI bus, over whatever reaches its configuration space.
//!
//! Key types: [`ConfigurationSpace`], [`Function`] and [`enumerate`], [`Bar`] (what a function answers to, sized
//! and placed by [`bars`] and [`Placement`]), [`capabilities`], [`msix::Table`], [`virtio::Structures`]. What a device
//! says is a claim: everything here ends after a bounded number of accesses, and what contradicts itself is an
//! error. (The crate `pci_types` reads registers by unsafe functions, which a driver may not implement, and
//! follows lists of capabilities without end.) Sections are those of the PCI Local Bus Specification 3.0.
//! Deliberately not here: drivers, and the assignment of bus numbers, which is the firmware's.
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

/// Which function of which device on which bus.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Address {
    /// The bus.
    pub bus: u8,
    /// The device, 0 to 31.
    pub slot: u8,
    /// The function, 0 to 7.
    pub function: u8,
}

impl Address {
    /// Offset of the function's first register where the configuration space lies in memory (PCI Express Base
    /// Specification, 7.2.2).
    pub fn memory_offset(self) -> u64 {
        u64::from(self.bus) << 20 | u64::from(self.slot) << 15 | u64::from(self.function) << 12
    }

    /// What selects a register through the ports (3.2.2.3.2). Offsets are below 256.
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

/// The ports through which a PC reaches the configuration space (3.2.2.3.2): one selects, the other is what it selected.
#[layout::registers(bytes = 8)]
pub struct ConfigurationPorts {
    /// An [`Address::port_selector`].
    #[at(0)]
    pub selector: ReadWrite<u32>,
    /// The selected register.
    #[at(4)]
    pub register: ReadWrite<u32>,
}

/// Access to configuration registers of 32 bits, at offsets that are multiples of 4 and below 256. Where no
/// function answers, all bits read as 1.
pub trait ConfigurationSpace {
    /// Reads one.
    fn read(&mut self, address: Address, offset: u16) -> u32;
    /// Writes one.
    fn write(&mut self, address: Address, offset: u16, value: u32);
}

/// Offsets of registers (6.1), and bits of them.
pub mod register {
    /// Device and vendor.
    pub const IDENTITY: u16 = 0x00;
    /// Status (upper half, cleared by writing ones) and command.
    pub const COMMAND: u16 = 0x04;
    /// Class, subclass, interface and revision.
    pub const CLASS: u16 = 0x08;
    /// Among others, the header type in bits 16 to 23.
    pub const HEADER: u16 = 0x0c;
    /// The first base address register.
    pub const BARS: u16 = 0x10;
    /// Bus numbers, of a bridge.
    pub const BUSES: u16 = 0x18;
    /// Memory behind a bridge.
    pub const BRIDGE_MEMORY: u16 = 0x20;
    /// Memory behind a bridge that may be read ahead; two more registers hold upper halves.
    pub const BRIDGE_PREFETCHABLE: u16 = 0x24;
    /// Subsystem, of a device.
    pub const SUBSYSTEM: u16 = 0x2c;
    /// Offset of the first capability.
    pub const CAPABILITIES: u16 = 0x34;

    /// The function answers to I/O ports.
    pub const COMMAND_PORTS: u16 = 1 << 0;
    /// The function answers to memory addresses.
    pub const COMMAND_MEMORY: u16 = 1 << 1;
    /// The function may reach memory by itself.
    pub const COMMAND_MASTER: u16 = 1 << 2;
    /// The function does not use its interrupt pin.
    pub const COMMAND_NO_PIN: u16 = 1 << 10;
}

/// Reads the command register.
pub fn command(space: &mut impl ConfigurationSpace, address: Address) -> u16 {
    space.read(address, register::COMMAND) as u16
}

/// Writes the command register. The status register beside it stays as it is.
pub fn set_command(space: &mut impl ConfigurationSpace, address: Address, command: u16) {
    space.write(address, register::COMMAND, command.into());
}
