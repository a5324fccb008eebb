//! Segments received and to transmit, independent of the wire format.

use crate::seq::Seq;

/// Maximum number of SACK blocks in a segment; the first may be a D-SACK block (RFC 2883).
pub const SACK_BLOCKS: usize = 3;

/// TCP options of a segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// MSS, in a SYN only.
    pub mss: Option<u16>,
    /// Window scale, in a SYN only.
    pub window_scale: Option<u8>,
    /// SACK permitted, in a SYN only.
    pub sack_permitted: bool,
    /// SACK blocks: first sequence number, and the one after the last.
    pub sack: [Option<(Seq, Seq)>; SACK_BLOCKS],
}

impl Options {
    /// Length of the SACK option with padding, in bytes.
    pub fn sack_bytes(&self) -> usize {
        match self.sack.iter().flatten().count() {
            0 => 0,
            blocks => 4 + 8 * blocks,
        }
    }
}

/// A received segment with a valid checksum.
#[derive(Clone, Copy, Debug, Default)]
pub struct Segment<'a> {
    /// Sequence number of the SYN or the first byte.
    pub seq: Seq,
    /// Acknowledgment number.
    pub ack: Option<Seq>,
    /// The window field, as on the wire.
    pub window: u16,
    /// The SYN flag.
    pub is_syn: bool,
    /// The FIN flag.
    pub is_fin: bool,
    /// The RST flag.
    pub is_reset: bool,
    /// The options.
    pub options: Options,
    /// The payload.
    pub payload: &'a [u8],
}

impl Segment<'_> {
    /// Length in sequence space: payload, SYN and FIN.
    pub fn sequence_len(&self) -> u32 {
        // A payload is shorter than 64 KiB.
        self.payload.len() as u32 + u32::from(self.is_syn) + u32::from(self.is_fin)
    }
}

/// A segment to transmit. [`crate::Connection::copy_payload`] copies its payload.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Transmit {
    /// Sequence number of the SYN or the first byte.
    pub seq: Seq,
    /// Acknowledgment number.
    pub ack: Option<Seq>,
    /// The window field, after scaling.
    pub window: u16,
    /// The SYN flag.
    pub is_syn: bool,
    /// The FIN flag.
    pub is_fin: bool,
    /// The RST flag.
    pub is_reset: bool,
    /// The PSH flag: nothing follows for now.
    pub is_push: bool,
    /// The options.
    pub options: Options,
    /// Length of the payload, in bytes.
    pub payload_bytes: usize,
    /// TSO segment size in bytes; 0: one segment.
    pub segment_bytes: u16,
    /// Whether this is a retransmission.
    pub is_retransmission: bool,
}

/// Path properties.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Path {
    /// MSS without options, in bytes.
    pub mss: usize,
    /// TSO limit: maximum payload handed to the interface at once; equals `mss` without TSO.
    pub burst_bytes: usize,
}
