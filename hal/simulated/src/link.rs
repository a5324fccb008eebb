//! The network card, and the machine's end of the link to other simulated machines.
//!
//! Key type: [`Link`]. At its horizon the machine tells the tool what it has sent, and is told what arrives and how long it
//! may go on (`simulated-link`). Packets are read in the order in which they arrive; a card that nobody reads keeps some
//! and loses the rest. Deliberately not here: what becomes of a frame on its way, which the tool decides.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::os::unix::net::UnixStream;

use hal_api::DeviceKind;
use hal_hosted::shared::Memory;
use simulated_link::{Frame, Grant, MAX_FRAME_BYTES, MAX_FRAMES, Round};

/// Maximum bytes of a packet without its Ethernet header.
const MTU: u16 = 1500;
const ETHERNET_HEADER_BYTES: usize = 14;
/// Frames that the card keeps until they are read.
const MAX_KEPT: usize = 256;

/// A read that waits for a packet.
#[derive(Debug)]
pub(crate) struct WaitingRead {
    pub(crate) token: u64,
    pub(crate) memory: Memory,
}

/// The network card with its link.
#[derive(Debug)]
pub(crate) struct Link {
    tool: UnixStream,
    station: u8,
    horizon_ns: u64,
    sent: Vec<Frame>,
    /// Frames on their way here, by the number of their event.
    arriving: BTreeMap<u64, Vec<u8>>,
    kept: VecDeque<Vec<u8>>,
    reads: VecDeque<WaitingRead>,
}

impl Link {
    /// Makes the card of the station with this number, whose link is the tool at the other end.
    pub(crate) fn new(tool: UnixStream, station: u8) -> Link {
        let (arriving, kept, reads) = (BTreeMap::new(), VecDeque::new(), VecDeque::new());
        Link { tool, station, horizon_ns: 0, sent: Vec::new(), arriving, kept, reads }
    }

    /// Returns kind and properties of the card.
    pub(crate) fn kind(&self) -> DeviceKind {
        DeviceKind::Packets { mac_address: simulated_link::address_of(self.station), mtu: MTU, features: 0 }
    }

    /// Returns the virtual time up to which the machine may go on.
    pub(crate) fn horizon_ns(&self) -> u64 {
        self.horizon_ns
    }

    /// Tells the tool what was sent, and when the machine goes on; returns the frames that arrive, each with its time.
    ///
    /// # Errors
    /// The tool is gone.
    pub(crate) fn exchange(&mut self, next_ns: u64) -> io::Result<Vec<Frame>> {
        Round { next_ns, sent: std::mem::take(&mut self.sent) }.write(&mut self.tool)?;
        let grant = Grant::read(&mut self.tool)?;
        self.horizon_ns = grant.horizon_ns;
        Ok(grant.arriving)
    }

    /// Sends a packet; false if the link does not take it.
    pub(crate) fn send(&mut self, now_ns: u64, bytes: Vec<u8>) -> bool {
        let is_taken = (ETHERNET_HEADER_BYTES..=MTU as usize + ETHERNET_HEADER_BYTES).contains(&bytes.len())
            && self.sent.len() < MAX_FRAMES;
        if is_taken {
            self.sent.push(Frame { time_ns: now_ns, bytes });
        }
        is_taken
    }

    /// Announces a frame, which arrives with the event of this number.
    pub(crate) fn announce(&mut self, number: u64, mut bytes: Vec<u8>) {
        bytes.truncate(MAX_FRAME_BYTES);
        self.arriving.insert(number, bytes);
    }

    /// Lets the frame of an event arrive, if it is one. Returns the read that it completes, and with how many bytes.
    pub(crate) fn arrive(&mut self, number: u64) -> Option<(WaitingRead, usize)> {
        let bytes = self.arriving.remove(&number)?;
        if let Some(read) = self.reads.pop_front() {
            let count = read.memory.fill(&bytes);
            return Some((read, count));
        }
        if self.kept.len() < MAX_KEPT {
            self.kept.push_back(bytes);
        }
        None
    }

    /// Reads a packet that is there; returns its bytes.
    pub(crate) fn read(&mut self, memory: Memory) -> Option<usize> {
        self.kept.pop_front().map(|bytes| memory.fill(&bytes))
    }

    /// Waits for a packet.
    pub(crate) fn wait(&mut self, read: WaitingRead) {
        self.reads.push_back(read);
    }

    /// Closes the card; returns the reads that wait.
    pub(crate) fn close(&mut self) -> VecDeque<WaitingRead> {
        self.kept.clear();
        std::mem::take(&mut self.reads)
    }
}
