//! A peer of host 0 that sends arbitrary segments.

use std::cell::RefCell;
use std::rc::Rc;

use super::{Network, address, hardware, raw};

pub const FIN: u8 = 1;
pub const SYN: u8 = 2;
pub const RST: u8 = 4;
pub const ACK: u8 = 16;

/// A segment that host 0 sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    pub port: u16,
    pub peer_port: u16,
    pub sequence: u32,
    pub acknowledged: u32,
    pub flags: u8,
    pub window: u16,
    pub data: Vec<u8>,
}

/// Host 0 alone on a wire with this peer, which has the addresses of host 1.
pub struct Peer {
    pub network: Network,
    seen: Rc<RefCell<Vec<Segment>>>,
}

impl Peer {
    pub fn new() -> Peer {
        Peer::with(Network::new(1))
    }

    pub fn with(mut network: Network) -> Peer {
        let seen: Rc<RefCell<Vec<Segment>>> = Rc::default();
        let own = Rc::clone(&seen);
        network.filter = Some(Box::new(move |_, frame| {
            if frame[12..14] == [8, 0] && frame[23] == 6 {
                let segment = &frame[34..14 + usize::from(u16::from_be_bytes([frame[16], frame[17]]))];
                let word = |at: usize| u16::from_be_bytes([segment[at], segment[at + 1]]);
                let long = |at: usize| u32::from_be_bytes(segment[at..at + 4].try_into().unwrap());
                own.borrow_mut().push(Segment {
                    port: word(0),
                    peer_port: word(2),
                    sequence: long(4),
                    acknowledged: long(8),
                    flags: segment[13] & 0x17,
                    window: word(14),
                    data: segment[usize::from(segment[12] >> 4) * 4..].to_vec(),
                });
            }
            true
        }));
        let mut arp = [hardware(0).0, hardware(1).0].concat();
        arp.extend([8, 6, 0, 1, 8, 0, 6, 4, 0, 2]);
        for (hardware, address) in [(hardware(1), address(1)), (hardware(0), address(0))] {
            arp.extend(hardware.0);
            arp.extend(raw::octets(address));
        }
        network.put(0, arp);
        network.pass_ms(1);
        Peer { network, seen }
    }

    /// Sends a segment to host 0; its own port is the first.
    pub fn send(&mut self, ports: (u16, u16), sequence: u32, acknowledged: u32, flags: u8, data: &[u8]) {
        let frame = frame(ports, sequence, acknowledged, flags, data);
        self.network.put(0, frame);
        self.network.pass_ms(1);
    }

    /// Takes the segments that host 0 has sent since the last call.
    pub fn take(&mut self) -> Vec<Segment> {
        self.seen.take()
    }

    /// Takes the only segment that it has sent.
    pub fn one(&mut self) -> Segment {
        let mut all = self.take();
        assert_eq!(all.len(), 1, "{all:?}");
        all.remove(0)
    }

    /// Connects to a port; returns host 0's initial sequence number.
    pub fn connect(&mut self, ports: (u16, u16), sequence: u32) -> u32 {
        self.take();
        self.send(ports, sequence, 0, SYN, &[]);
        let answer = self.one();
        assert_eq!((answer.flags, answer.acknowledged), (SYN | ACK, sequence.wrapping_add(1)));
        let first = answer.sequence.wrapping_add(1);
        self.send(ports, sequence.wrapping_add(1), first, ACK, &[]);
        first
    }
}

/// Builds a segment from the peer to host 0.
pub fn frame(ports: (u16, u16), sequence: u32, acknowledged: u32, flags: u8, data: &[u8]) -> Vec<u8> {
    let mut segment = ports.0.to_be_bytes().to_vec();
    segment.extend(ports.1.to_be_bytes());
    segment.extend(sequence.to_be_bytes());
    segment.extend(acknowledged.to_be_bytes());
    segment.extend([0x50, flags, 0xff, 0xff, 0, 0, 0, 0]);
    segment.extend(data);
    raw::ip(hardware(0).0, hardware(1).0, address(1), address(0), 6, &segment)
}
