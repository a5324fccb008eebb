//! The bus's registers through the kernel: the configuration space, and the windows for devices.
//!
//! The machine provides the ports of the configuration space, then its memory-mapped range if there is one, then the
//! windows. Failed reads return all ones, as if no device answered.

use alloc::vec::Vec;

use pci::msix::Memory;
use pci::{Address, Bar, ConfigurationPorts, ConfigurationSpace, Function, Span, bars};
use sip::Status;
use sip::hardware::{Hardware, IoPortRange, IoRange, RangeKind, Registers};

/// Registers compared to distinguish a memory-mapped configuration space from a window: the host bridge's header.
const HEADER: core::ops::Range<u16> = 0..0x40;
const HOST: Address = Address { bus: 0, slot: 0, function: 0 };

/// The configuration space.
pub enum Space {
    /// Behind a pair of ports (0xcf8, 0xcfc).
    Ports(ConfigurationPorts<IoPortRange>),
    /// Memory-mapped (ECAM).
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
                // A failed write is noticed when the register is read back.
                let _ = memory.write32(address.memory_offset() + u64::from(offset), value);
            }
        }
    }
}

/// The windows for devices' memory: ranges of the bus, with their index.
pub struct Windows(Vec<(usize, Registers)>);

/// Classifies the bus's ranges.
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
        // Some machines have the memory-mapped space only.
        if in_memory.is_there() && (!space.is_there() || in_memory.is_same_as(&mut space)) {
            space = in_memory;
            windows.remove(0);
        }
    }
    if space.is_there() { Ok((space, Windows(windows))) } else { Err(Status::DeviceError) }
}

impl Windows {
    /// Returns their addresses.
    pub fn spans(&self) -> Vec<Span> {
        self.0.iter().map(|(_, range)| Span { base: range.base(), bytes: range.bytes() }).collect()
    }

    /// Returns the index of the bus's range that contains a span, and the offset.
    pub fn place_of(&self, span: Span) -> Option<(usize, u64)> {
        let (index, range) = self.find(span)?;
        Some((*index, span.base - range.base()))
    }

    fn find(&self, span: Span) -> Option<&(usize, Registers)> {
        self.0.iter().find(|(_, range)| Span { base: range.base(), bytes: range.bytes() }.contains(span))
    }

    /// Returns the memory BARs of a function whose driver may be running, so that they must not be sized: each
    /// is assumed to extend to the end of its window.
    pub fn bars_in_use(&self, space: &mut Space, function: &Function) -> Vec<Bar> {
        let mut found = bars::read(space, function);
        found.retain_mut(|bar| {
            let window = self.spans().into_iter().find(|window| window.contains(Span { base: bar.base, bytes: 1 }));
            bar.bytes = window.and_then(Span::end).map_or(0, |end| end - bar.base);
            bar.is_memory() && bar.bytes != 0
        });
        found
    }

    /// Reads an 8-bit register.
    pub fn read8(&self, address: u64) -> u8 {
        let byte = Span { base: address, bytes: 1 };
        self.find(byte).and_then(|(_, range)| range.read8(address - range.base()).ok()).unwrap_or(u8::MAX)
    }

    /// Writes an 8-bit register.
    pub fn write8(&self, address: u64, value: u8) {
        if let Some((_, range)) = self.find(Span { base: address, bytes: 1 }) {
            // A failed write is noticed when the register is read back.
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
