//! Enumeration of functions.

use alloc::vec::Vec;

use crate::{Address, ConfigurationSpace, Span, register};

/// Maximum functions; a bus with more is broken.
pub const MAX_FUNCTIONS: usize = 512;

const SLOTS: u8 = 32;
const FUNCTIONS: u8 = 8;
const HEADER_DEVICE: u8 = 0;
const HEADER_BRIDGE: u8 = 1;
const MULTIPLE_FUNCTIONS: u8 = 0x80;
const MIB: u64 = 1 << 20;
/// Flag of 64-bit limits of a bridge's prefetchable memory.
const WIDE: u32 = 1;

/// A function of a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Function {
    /// Its address.
    pub address: Address,
    /// Vendor id.
    pub vendor: u16,
    /// Device id.
    pub device: u16,
    /// Subsystem vendor id; 0 for a bridge.
    pub subsystem_vendor: u16,
    /// Subsystem id; 0 for a bridge.
    pub subsystem: u16,
    /// Class, subclass and interface: 24 bits.
    pub class: u32,
    /// Revision.
    pub revision: u8,
    /// Bridge information, if it is a PCI-to-PCI bridge.
    pub bridge: Option<Bridge>,
    /// Index of the bridge upstream.
    pub behind: Option<usize>,
}

/// A PCI-to-PCI bridge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bridge {
    /// Secondary bus; 0 if unassigned.
    pub secondary: u8,
    /// Memory window, if any.
    pub memory: Option<Span>,
    /// Prefetchable memory window, if any.
    pub prefetchable: Option<Span>,
}

impl Function {
    /// Number of base address registers.
    pub fn bar_count(&self) -> u8 {
        if self.bridge.is_some() { 2 } else { 6 }
    }

    /// Whether it is a host bridge, which must not be touched.
    pub fn is_host(&self) -> bool {
        self.class >> 8 == 0x0600
    }
}

/// Enumerates bus 0 and the buses behind configured bridges; bridges come before the functions behind them.
pub fn enumerate(space: &mut impl ConfigurationSpace) -> Vec<Function> {
    let mut found = Vec::new();
    let mut seen = [false; 256];
    let mut buses = Vec::from([(0u8, None)]);
    while let Some((bus, behind)) = buses.pop() {
        if core::mem::replace(&mut seen[usize::from(bus)], true) {
            continue;
        }
        let first = found.len();
        scan_bus(space, bus, behind, &mut found);
        let bridges = (first..).zip(&found[first..]);
        // A secondary bus has a higher number (PCI-to-PCI Bridge Architecture 1.2, 12.1).
        let behind = bridges.filter_map(|(index, function): (usize, &Function)| {
            function.bridge.map(|bridge| bridge.secondary).filter(|&to| to > bus).map(|to| (to, Some(index)))
        });
        // A stack: the first is pushed last.
        let behind: Vec<_> = behind.collect();
        buses.extend(behind.into_iter().rev());
    }
    found
}

fn scan_bus(space: &mut impl ConfigurationSpace, bus: u8, behind: Option<usize>, found: &mut Vec<Function>) {
    for slot in 0..SLOTS {
        let mut functions = 1;
        let mut function = 0;
        while function < functions && found.len() < MAX_FUNCTIONS {
            let address = Address { bus, slot, function };
            if let Some((header, read)) = read_function(space, address, behind) {
                if function == 0 && header & MULTIPLE_FUNCTIONS != 0 {
                    functions = FUNCTIONS;
                }
                found.push(read);
            }
            function += 1;
        }
    }
}

fn read_function(
    space: &mut impl ConfigurationSpace,
    address: Address,
    behind: Option<usize>,
) -> Option<(u8, Function)> {
    let identity = space.read(address, register::IDENTITY);
    let (vendor, device) = (identity as u16, (identity >> 16) as u16);
    if matches!(vendor, 0 | u16::MAX) {
        return None;
    }
    let class = space.read(address, register::CLASS);
    let header = (space.read(address, register::HEADER) >> 16) as u8;
    let bridge = (header & !MULTIPLE_FUNCTIONS == HEADER_BRIDGE).then(|| read_bridge(space, address));
    let subsystem = match header & !MULTIPLE_FUNCTIONS {
        HEADER_DEVICE => space.read(address, register::SUBSYSTEM),
        _ => 0,
    };
    let function = Function {
        address,
        vendor,
        device,
        subsystem_vendor: subsystem as u16,
        subsystem: (subsystem >> 16) as u16,
        class: class >> 8,
        revision: class as u8,
        bridge,
        behind,
    };
    Some((header, function))
}

fn read_bridge(space: &mut impl ConfigurationSpace, address: Address) -> Bridge {
    let secondary = (space.read(address, register::BUSES) >> 8) as u8;
    let memory = space.read(address, register::BRIDGE_MEMORY);
    let ahead = space.read(address, register::BRIDGE_PREFETCHABLE);
    let (high_base, high_last) = match ahead & 0xf {
        WIDE => (
            space.read(address, register::BRIDGE_PREFETCHABLE + 4),
            space.read(address, register::BRIDGE_PREFETCHABLE + 8),
        ),
        _ => (0, 0),
    };
    Bridge { secondary, memory: window(memory, 0, 0), prefetchable: window(ahead, high_base, high_last) }
}

/// A bridge window: its limits are inclusive and in whole MiB (PCI-to-PCI Bridge Architecture 1.2, 3.2.5.8 to
/// 3.2.5.10).
fn window(limits: u32, high_base: u32, high_last: u32) -> Option<Span> {
    let base = u64::from(high_base) << 32 | u64::from(limits & 0xfff0) << 16;
    let last = u64::from(high_last) << 32 | u64::from(limits >> 20) << 20;
    let bytes = last.checked_sub(base)?.checked_add(MIB)?;
    (base != 0).then_some(Span { base, bytes })
}
