//! The list of a function's capabilities (6.7).

use alloc::vec::Vec;

use crate::{Address, ConfigurationSpace, register};

/// Message-signalled interrupts, the extended kind.
pub const MSIX: u8 = 0x11;
/// The vendor's own.
pub const VENDOR: u8 = 0x09;

const STATUS_HAS_LIST: u32 = 1 << 20;
/// Capabilities begin behind the header and are at least 4 bytes long.
const FIRST: u16 = 0x40;
const MOST: usize = (256 - FIRST as usize) / 4;

/// A capability.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capability {
    /// What it is.
    pub id: u8,
    /// Where its registers begin.
    pub offset: u16,
    /// Its first register: two bytes of its own, the next one's offset, and its id.
    pub head: u32,
}

/// All capabilities, in the order of the list. A list that runs in a circle or leads out of its place ends there.
pub fn list(space: &mut impl ConfigurationSpace, address: Address) -> Vec<Capability> {
    let mut found: Vec<Capability> = Vec::new();
    if space.read(address, register::COMMAND) & STATUS_HAS_LIST == 0 {
        return found;
    }
    let mut offset = space.read(address, register::CAPABILITIES) as u16 & 0xfc;
    while offset >= FIRST && found.len() < MOST && !found.iter().any(|known| known.offset == offset) {
        let head = space.read(address, offset);
        if head == u32::MAX {
            break;
        }
        found.push(Capability { id: head as u8, offset, head });
        offset = (head >> 8) as u16 & 0xfc;
    }
    found
}

/// A register of a capability, by its offset in it; all ones where that lies behind the configuration space.
pub fn read(space: &mut impl ConfigurationSpace, address: Address, capability: &Capability, offset: u16) -> u32 {
    match capability.offset + offset {
        register @ 0..=0xfc => space.read(address, register),
        _ => u32::MAX,
    }
}
