//! The device `tap0` of the hosted machine: a link of Ethernet packets (a TAP interface of the host).
//!
//! A Read receives a packet into the block, blocking if there is none; with the offset [`NO_WAIT`] it completes at
//! once, with the answer 0 if there is none. Reads are served in order. A Write sends a packet and never blocks: if the
//! host has no room, the packet is dropped and the answer is 0. A Flush makes pending Reads poll the host again.
//! `device_describe` returns the hardware address (word 1, its first byte lowest), offloads (word 2, as `features` of
//! the contract NicDevice) and the MTU (word 3).

/// Offset of a non-blocking Read.
pub const NO_WAIT: u64 = 1;
/// In a Read's answer: the bits of the packet's length.
pub const LENGTH_MASK: u64 = (1 << 24) - 1;
/// In a Read's answer: the checksums were verified, or the packet never left the host.
pub const CHECKSUM_GOOD: u64 = 1 << 24;

/// Offloads of a packet to send: the offset of a Write.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Treatment {
    /// Start of the checksummed bytes; 0: no checksum offload.
    pub checksum_start: u16,
    /// Offset of the checksum from there.
    pub checksum_offset: u8,
    /// TSO segment size in bytes; 0: no segmentation.
    pub segment_bytes: u16,
    /// Length of all headers, for TSO.
    pub header_bytes: u8,
    /// Whether a TSO packet is IPv6.
    pub version_6: bool,
}

impl Treatment {
    /// Encodes it as the offset of a Write.
    pub const fn to_offset(self) -> u64 {
        self.checksum_start as u64
            | (self.checksum_offset as u64) << 16
            | (self.header_bytes as u64) << 24
            | (self.segment_bytes as u64) << 32
            | (self.version_6 as u64) << 48
    }

    /// Decodes the offset of a Write.
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
