//! The capability list of a function (6.7).

use alloc::vec::Vec;

use crate::{Address, ConfigurationSpace, register};

/// MSI-X.
pub const MSIX: u8 = 0x11;
/// Vendor-specific.
pub const VENDOR: u8 = 0x09;

const STATUS_HAS_LIST: u32 = 1 << 20;
/// Capabilities follow the header and have at least 4 bytes.
const FIRST: u16 = 0x40;
const MAX_CAPABILITIES: usize = (256 - FIRST as usize) / 4;

/// A capability.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capability {
    /// Capability id.
    pub id: u8,
    /// Offset of its registers.
    pub offset: u16,
    /// Its first register: two bytes of its own, the next one's offset, and the id.
    pub head: u32,
}

/// All capabilities, in list order. A cyclic or out-of-bounds list ends there.
pub fn list(space: &mut impl ConfigurationSpace, address: Address) -> Vec<Capability> {
    let mut found: Vec<Capability> = Vec::new();
    if space.read(address, register::COMMAND) & STATUS_HAS_LIST == 0 {
        return found;
    }
    let mut offset = space.read(address, register::CAPABILITIES) as u16 & 0xfc;
    while offset >= FIRST && found.len() < MAX_CAPABILITIES && !found.iter().any(|known| known.offset == offset) {
        let head = space.read(address, offset);
        if head == u32::MAX {
            break;
        }
        found.push(Capability { id: head as u8, offset, head });
        offset = (head >> 8) as u16 & 0xfc;
    }
    found
}

/// Reads a register of a capability by its offset; all ones beyond the configuration space.
pub fn read(space: &mut impl ConfigurationSpace, address: Address, capability: &Capability, offset: u16) -> u32 {
    match capability.offset + offset {
        register @ 0..=0xfc => space.read(address, register),
        _ => u32::MAX,
    }
}
