//! A slot for a virtio device in memory (4.2.2).

use core::fmt;

const MAGIC: u64 = 0x000;
const VERSION: u64 = 0x004;
const DEVICE_ID: u64 = 0x008;
const VENDOR_ID: u64 = 0x00c;
/// Offset of the device's status, a register of 32 bits.
pub const STATUS: u64 = 0x070;
/// Bytes up to where the registers of a kind of device begin; a slot has at least these.
pub const LEAST_BYTES: u64 = 0x100;

/// "virt", little endian.
const MAGIC_VALUE: u32 = 0x7472_6976;

/// Access to the slot's registers of 32 bits.
pub trait Registers {
    /// Reads one; what cannot be read has all bits set.
    fn read(&mut self, offset: u64) -> u32;
}

/// A device in a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Device {
    /// What kind it is.
    pub device_id: u32,
    /// Who made it.
    pub vendor_id: u32,
    /// How its registers lie: 1 (old) or 2.
    pub version: u32,
}

/// What a slot holds cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// No slot is there.
    NoSlot,
    /// Its registers lie in a way that no driver knows.
    Version(u32),
}

impl fmt::Display for Trouble {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Trouble::NoSlot => formatter.write_str("no virtio slot answers there"),
            Trouble::Version(version) => write!(formatter, "its version is {version}; 1 and 2 are known"),
        }
    }
}

/// Looks into a slot; `None` if it is empty.
pub fn probe(registers: &mut impl Registers) -> Result<Option<Device>, Trouble> {
    if registers.read(MAGIC) != MAGIC_VALUE {
        return Err(Trouble::NoSlot);
    }
    let version = registers.read(VERSION);
    let device_id = registers.read(DEVICE_ID);
    match (device_id, version) {
        (0, _) => Ok(None),
        (_, 1 | 2) => Ok(Some(Device { device_id, vendor_id: registers.read(VENDOR_ID), version })),
        _ => Err(Trouble::Version(version)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Words([u32; 4]);

    impl Registers for Words {
        fn read(&mut self, offset: u64) -> u32 {
            self.0[(offset / 4) as usize]
        }
    }

    #[test]
    fn slots_hold_a_device_or_nothing_or_are_none() {
        let device = Device { device_id: 2, vendor_id: 0x554d_4551, version: 2 };
        assert_eq!(probe(&mut Words([MAGIC_VALUE, 2, 2, 0x554d_4551])), Ok(Some(device)));
        assert_eq!(probe(&mut Words([MAGIC_VALUE, 1, 0, 0])), Ok(None));
        assert_eq!(probe(&mut Words([MAGIC_VALUE, 77, 0, 0])), Ok(None));
        assert_eq!(probe(&mut Words([MAGIC_VALUE, 3, 2, 0])), Err(Trouble::Version(3)));
        assert_eq!(probe(&mut Words([u32::MAX; 4])), Err(Trouble::NoSlot));
        assert_eq!(probe(&mut Words([0; 4])), Err(Trouble::NoSlot));
    }

    #[test]
    fn no_answer_of_a_slot_is_too_strange() {
        let mut state = 1u32;
        for _ in 0..100_000 {
            let mut words = [0; 4];
            for word in &mut words {
                state ^= state << 13;
                state ^= state >> 17;
                state ^= state << 5;
                *word = state;
            }
            words[0] = if state.is_multiple_of(3) { MAGIC_VALUE } else { words[0] };
            words[1] %= 4;
            if let Ok(Some(found)) = probe(&mut Words(words)) {
                assert!(found.device_id != 0 && (1..=2).contains(&found.version));
            }
        }
    }
}
