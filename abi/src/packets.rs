//! The device `tap0` of the hosted machine: a link of Ethernet packets (a TAP interface of the host).
//!
//! A Read takes one packet into the block, at once if there is one, else when one comes; with the offset [`NO_WAIT`] it
//! is done at once in any case, and its answer is 0 where there is no packet. Reads get packets in the order in which
//! they were asked for. A Write sends one; it never waits: where the host has no room the packet is lost, as packets
//! may be, and the answer is 0. A Flush lets the Reads that wait look again now. `device_describe` tells the hardware address (word 1, its first byte lowest), what the device does for
//! its user (word 2, as `features` of the contract NicDevice) and the MTU (word 3).

/// Offset of a Read that does not wait.
pub const NO_WAIT: u64 = 1;
/// In the answer of a Read: bits of the packet's length.
pub const LENGTH_MASK: u64 = (1 << 24) - 1;
/// In the answer of a Read: the packet's checksums are known to be right, or it never left the host.
pub const CHECKSUM_GOOD: u64 = 1 << 24;

/// What the device is to do with a packet that it sends: the offset of a Write.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Treatment {
    /// Where the bytes begin that a checksum is to be filled in for; 0: none is.
    pub checksum_start: u16,
    /// Where after that the checksum is.
    pub checksum_offset: u8,
    /// Bytes of payload of each packet that this one is to be cut into; 0: it stays whole.
    pub segment_bytes: u16,
    /// Bytes of all its headers, where it is to be cut.
    pub header_bytes: u8,
    /// Whether what is to be cut is IPv6.
    pub version_6: bool,
}

impl Treatment {
    /// As the offset of a Write.
    pub const fn to_offset(self) -> u64 {
        self.checksum_start as u64
            | (self.checksum_offset as u64) << 16
            | (self.header_bytes as u64) << 24
            | (self.segment_bytes as u64) << 32
            | (self.version_6 as u64) << 48
    }

    /// What the offset of a Write asks for.
    pub const fn from_offset(offset: u64) -> Treatment {
        Treatment {
            checksum_start: offset as u16,
            checksum_offset: (offset >> 16) as u8,
            header_bytes: (offset >> 24) as u8,
            segment_bytes: (offset >> 32) as u16,
            version_6: offset >> 48 & 1 != 0,
        }
    }
}
