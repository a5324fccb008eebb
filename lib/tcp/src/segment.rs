//! Segments as they come and go, without their wire format.

use crate::seq::Seq;

/// SACK blocks in one segment; the first may be a D-SACK block (RFC 2883).
pub const SACK_BLOCKS: usize = 3;

/// Options of a segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// The longest payload that the sender takes; in a SYN.
    pub mss: Option<u16>,
    /// The shift of the sender's windows; in a SYN.
    pub window_scale: Option<u8>,
    /// Whether the sender understands SACK; in a SYN.
    pub sack_permitted: bool,
    /// Start and end of what the sender has beyond its acknowledgment.
    pub sack: [Option<(Seq, Seq)>; SACK_BLOCKS],
}

impl Options {
    /// Bytes of the SACK option with its padding.
    pub fn sack_bytes(&self) -> usize {
        match self.sack.iter().flatten().count() {
            0 => 0,
            blocks => 4 + 8 * blocks,
        }
    }
}

/// A segment that came, whose checksum is right.
#[derive(Clone, Copy, Debug, Default)]
pub struct Segment<'a> {
    /// The number of its first byte, or of its SYN.
    pub seq: Seq,
    /// What it acknowledges.
    pub ack: Option<Seq>,
    /// The window field, unscaled.
    pub window: u16,
    /// It begins the connection.
    pub is_syn: bool,
    /// Its sender has finished.
    pub is_fin: bool,
    /// It ends the connection.
    pub is_reset: bool,
    /// Its options.
    pub options: Options,
    /// Its data.
    pub payload: &'a [u8],
}

impl Segment<'_> {
    /// Sequence numbers that it takes.
    pub fn sequence_len(&self) -> u32 {
        // Payloads are shorter than 64 KiB.
        self.payload.len() as u32 + u32::from(self.is_syn) + u32::from(self.is_fin)
    }
}

/// A segment to send. Its payload is copied by [`crate::Connection::copy_payload`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Transmit {
    /// The number of its first byte, or of its SYN.
    pub seq: Seq,
    /// What it acknowledges.
    pub ack: Option<Seq>,
    /// The window field, scaled.
    pub window: u16,
    /// It begins the connection.
    pub is_syn: bool,
    /// This end has finished.
    pub is_fin: bool,
    /// It ends the connection.
    pub is_reset: bool,
    /// Nothing follows it for now.
    pub is_push: bool,
    /// Its options.
    pub options: Options,
    /// How long its payload is.
    pub payload_bytes: usize,
    /// The interface has to cut the payload into segments of so many bytes; 0: it is one segment.
    pub segment_bytes: u16,
    /// Whether its bytes were sent before.
    pub is_retransmission: bool,
}

/// What the way to the other end carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Path {
    /// The longest payload of a segment without options.
    pub mss: usize,
    /// The longest payload that is handed to the interface at once, which cuts it; the same as `mss` where it does not.
    pub burst_bytes: usize,
}
