//! The bus's registers through the kernel: the configuration space, and the windows that devices lie in.
//!
//! The machine gives the ports of the configuration space, then its place in memory if it has one, then the
//! windows. What cannot be reached reads as all ones, as where no device answers.

use alloc::vec::Vec;

use pci::msix::Memory;
use pci::{Address, Bar, ConfigurationPorts, ConfigurationSpace, Function, Span, bars};
use sip::Status;
use sip::hardware::{Hardware, IoPortRange, IoRange, RangeKind, Registers};

/// Registers that are compared to tell the configuration space in memory from a window: the header of the host.
const HEADER: core::ops::Range<u16> = 0..0x40;
const HOST: Address = Address { bus: 0, slot: 0, function: 0 };

/// The configuration space.
pub enum Space {
    /// Behind a pair of ports.
    Ports(ConfigurationPorts<IoPortRange>),
    /// In memory.
    Memory(Registers),
}

impl Space {
    fn is_there(&mut self) -> bool {
        self.read(HOST, 0) != u32::MAX
    }

    fn is_same_as(&mut self, other: &mut Space) -> bool {
        HEADER.step_by(4).all(|offset| self.read(HOST, offset) == other.read(HOST, offset))
    }
}

impl ConfigurationSpace for Space {
    fn read(&mut self, address: Address, offset: u16) -> u32 {
        match self {
            Space::Ports(ports) => {
                ports.selector().write(address.port_selector(offset));
                ports.register().read()
            }
            Space::Memory(memory) => memory.read32(address.memory_offset() + u64::from(offset)).unwrap_or(u32::MAX),
        }
    }

    fn write(&mut self, address: Address, offset: u16, value: u32) {
        match self {
            Space::Ports(ports) => {
                ports.selector().write(address.port_selector(offset));
                ports.register().write(value);
            }
            Space::Memory(memory) => {
                // What cannot be written does not read as it should afterwards.
                let _ = memory.write32(address.memory_offset() + u64::from(offset), value);
            }
        }
    }
}

/// The memory that devices may lie in: ranges of the bus, with their index there.
pub struct Windows(Vec<(usize, Registers)>);

/// The bus's ranges, told apart.
pub fn split(hardware: &Hardware) -> Result<(Space, Windows), Status> {
    let mut windows = Vec::new();
    let mut ports = None;
    for index in 0..hardware.range_count() {
        let range = hardware.range(index)?;
        match range.kind() {
            RangeKind::Ports => ports = Some(IoPortRange::try_from(range)?.mapped()?),
            RangeKind::Memory => windows.push((index, range)),
        }
    }
    let mut space = Space::Ports(ports.ok_or(Status::NotFound)?);
    if let Some((_, first)) = windows.first() {
        let mut in_memory = Space::Memory(first.clone());
        // Some machines have it in memory only.
        if in_memory.is_there() && (!space.is_there() || in_memory.is_same_as(&mut space)) {
            space = in_memory;
            windows.remove(0);
        }
    }
    if space.is_there() { Ok((space, Windows(windows))) } else { Err(Status::DeviceError) }
}

impl Windows {
    /// Where they lie.
    pub fn spans(&self) -> Vec<Span> {
        self.0.iter().map(|(_, range)| Span { base: range.base(), bytes: range.bytes() }).collect()
    }

    /// Which range of the bus a span lies in, and how far in.
    pub fn place_of(&self, span: Span) -> Option<(usize, u64)> {
        let (index, range) = self.find(span)?;
        Some((*index, span.base - range.base()))
    }

    fn find(&self, span: Span) -> Option<&(usize, Registers)> {
        self.0.iter().find(|(_, range)| Span { base: range.base(), bytes: range.bytes() }.contains(span))
    }

    /// What a function answers to whose driver may be at work, so that nobody may ask how large it is: each of its
    /// address registers, as if it reached to the end of its window.
    pub fn bars_in_use(&self, space: &mut Space, function: &Function) -> Vec<Bar> {
        let mut found = bars::read(space, function);
        found.retain_mut(|bar| {
            let window = self.spans().into_iter().find(|window| window.contains(Span { base: bar.base, bytes: 1 }));
            bar.bytes = window.and_then(Span::end).map_or(0, |end| end - bar.base);
            bar.is_memory() && bar.bytes != 0
        });
        found
    }

    /// Reads a register of one byte.
    pub fn read8(&self, address: u64) -> u8 {
        let byte = Span { base: address, bytes: 1 };
        self.find(byte).and_then(|(_, range)| range.read8(address - range.base()).ok()).unwrap_or(u8::MAX)
    }

    /// Writes a register of one byte.
    pub fn write8(&self, address: u64, value: u8) {
        if let Some((_, range)) = self.find(Span { base: address, bytes: 1 }) {
            // What cannot be written does not read as it should afterwards.
            let _ = range.write8(address - range.base(), value);
        }
    }
}

impl Memory for Windows {
    fn write32(&mut self, address: u64, value: u32) -> bool {
        let found = self.find(Span { base: address, bytes: 4 });
        found.is_some_and(|(_, range)| range.write32(address - range.base(), value).is_ok())
    }
}
