//! The devices of a manifest.
//!
//! Deliberately not here: whether a machine has them; the kernel queries the machine.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use serde::{Deserialize, Serialize};

/// A device that a program opens: by its name on the machine or a bus, or as fixed registers and interrupts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceNeed {
    /// Name within the program. Unless the device is fixed or the system manifest maps it, it is also the machine's
    /// name for it.
    pub name: String,
    /// Its I/O ports.
    pub ports: Vec<AddressRange>,
    /// Its device memory.
    pub memory: Vec<AddressRange>,
    /// Its interrupt lines.
    pub interrupts: Vec<u32>,
}

impl DeviceNeed {
    /// Creates a device that is looked up by name.
    pub fn named(name: &str) -> DeviceNeed {
        DeviceNeed { name: name.into(), ..DeviceNeed::default() }
    }

    /// Whether the manifest lists its resources, so that no name is looked up.
    pub fn is_fixed(&self) -> bool {
        !(self.ports.is_empty() && self.memory.is_empty() && self.interrupts.is_empty())
    }
}

/// Consecutive I/O ports or bytes of device memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AddressRange {
    /// The first port or physical address.
    pub base: u64,
    /// Length; at least 1, and the last byte's address does not overflow.
    pub bytes: u64,
}

impl AddressRange {
    /// Parses `base+bytes`, each decimal or hexadecimal: `0x3f8+8`. `limit` is the end of the address space,
    /// exclusive.
    pub fn parse(text: &str, limit: u64) -> Option<AddressRange> {
        let (base, bytes) = text.split_once('+')?;
        let range = AddressRange { base: number(base)?, bytes: number(bytes)? };
        range.is_within(limit).then_some(range)
    }

    /// Whether it has an address and lies entirely below `limit`.
    pub fn is_within(&self, limit: u64) -> bool {
        self.bytes > 0 && self.base.checked_add(self.bytes).is_some_and(|end| end <= limit)
    }

    /// Whether the two ranges intersect.
    pub fn overlaps(&self, other: &AddressRange) -> bool {
        self.base < other.base.saturating_add(other.bytes) && other.base < self.base.saturating_add(self.bytes)
    }
}

impl fmt::Display for AddressRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}+{:#x}", self.base, self.bytes)
    }
}

/// Number of I/O ports.
pub const PORTS_END: u64 = 1 << 16;
/// Physical address limit of all machines, exclusive.
pub const MEMORY_END: u64 = 1 << 52;

/// Parses a number without sign, in decimal or after `0x` in hexadecimal.
fn number(text: &str) -> Option<u64> {
    let (digits, radix) = text.strip_prefix("0x").map_or((text, 10), |digits| (digits, 16));
    if digits.starts_with('+') { None } else { u64::from_str_radix(digits, radix).ok() }
}

#[cfg(test)]
mod tests {
    use super::{AddressRange, MEMORY_END, PORTS_END};

    #[test]
    fn ranges_are_read_in_both_radices_and_kept_inside_the_address_space() {
        let range = |text| AddressRange::parse(text, PORTS_END);
        assert_eq!(range("0x3f8+8"), Some(AddressRange { base: 0x3f8, bytes: 8 }));
        assert_eq!(range("112+0x2"), Some(AddressRange { base: 0x70, bytes: 2 }));
        assert_eq!(range("0xffff+1"), Some(AddressRange { base: 0xffff, bytes: 1 }));
        for wrong in ["", "8", "+8", "8+", "0x+1", "1+0", "0xffff+2", "0x10000+1", "1 + 1", "++1", "1++1", "-1+1"] {
            assert_eq!(range(wrong), None, "{wrong}");
        }
        assert_eq!(AddressRange::parse("0xffffffffffffffff+2", MEMORY_END), None);
    }

    #[test]
    fn ranges_overlap_where_they_share_an_address() {
        let range = |base, bytes| AddressRange { base, bytes };
        assert!(range(8, 8).overlaps(&range(15, 1)));
        assert!(range(15, 1).overlaps(&range(8, 8)));
        assert!(!range(8, 8).overlaps(&range(16, 8)));
        assert!(range(0, 16).overlaps(&range(4, 4)));
    }
}
