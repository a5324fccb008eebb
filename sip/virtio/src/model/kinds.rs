//! Models of the kinds of devices, as far as drivers can observe them.

use std::collections::VecDeque;
use std::vec;
use std::vec::Vec;

use super::Behaviour;
use crate::device::Kind;

const SECTOR_BYTES: usize = 512;
const DISK_READ_ONLY: u64 = 1 << 5;
const DISK_FLUSH: u64 = 1 << 9;
const NETWORK_MAC: u64 = 1 << 5;
const NETWORK_STATUS: u64 = 1 << 16;
const NETWORK_HEADER_BYTES: usize = 12;

/// A disk in memory.
pub struct Disk {
    /// Its contents.
    pub content: Vec<u8>,
    /// Whether it offers the read-only feature.
    pub read_only: bool,
    /// Sectors that fail to read and write.
    pub bad_sectors: Vec<u64>,
    /// Number of flush requests.
    pub flushes: u32,
}

impl Disk {
    /// Creates a zeroed disk.
    pub fn new(sectors: usize) -> Disk {
        Disk { content: vec![0; sectors * SECTOR_BYTES], read_only: false, bad_sectors: Vec::new(), flushes: 0 }
    }

    fn part(&mut self, sector: u64, bytes: usize) -> Option<&mut [u8]> {
        let count = bytes.div_ceil(SECTOR_BYTES) as u64;
        if self.bad_sectors.iter().any(|bad| (sector..sector.saturating_add(count)).contains(bad)) {
            return None;
        }
        let start = usize::try_from(sector).ok()?.checked_mul(SECTOR_BYTES)?;
        self.content.get_mut(start..start.checked_add(bytes)?)
    }
}

impl Behaviour for Disk {
    fn kind(&self) -> Kind {
        Kind::Block
    }

    fn features(&self) -> u64 {
        DISK_FLUSH | if self.read_only { DISK_READ_ONLY } else { 0 }
    }

    fn configuration(&self) -> Vec<u8> {
        ((self.content.len() / SECTOR_BYTES) as u64).to_le_bytes().to_vec()
    }

    fn queues(&self) -> u16 {
        1
    }

    fn answer(&mut self, _queue: u16, readable: &[u8], room: usize) -> Option<Vec<u8>> {
        const FAILED: u8 = 1;
        const UNKNOWN: u8 = 2;
        let number =
            |at: usize| readable.get(at..at + 8).map_or(0, |b| b.iter().rev().fold(0, |n, &b| n << 8 | u64::from(b)));
        let (request, sector) = (number(0) as u32, number(8));
        let mut answer = vec![0; room];
        let status = match request {
            0 => match self.part(sector, room.saturating_sub(1)) {
                Some(part) => {
                    answer[..part.len()].copy_from_slice(part);
                    0
                }
                None => FAILED,
            },
            1 if !self.read_only => {
                let data = readable.get(16..).unwrap_or_default();
                match self.part(sector, data.len()) {
                    Some(part) => {
                        part.copy_from_slice(data);
                        0
                    }
                    None => FAILED,
                }
            }
            4 => {
                self.flushes += 1;
                0
            }
            _ => UNKNOWN,
        };
        if let Some(last) = answer.last_mut() {
            *last = status;
        }
        Some(answer)
    }
}

/// A predictable entropy source: each byte is one more than the last.
#[derive(Default)]
pub struct Entropy {
    /// The last byte returned.
    pub last: u8,
    /// Maximum bytes in an answer; 0 for as many as fit.
    pub most: usize,
}

impl Behaviour for Entropy {
    fn kind(&self) -> Kind {
        Kind::Entropy
    }

    fn features(&self) -> u64 {
        0
    }

    fn configuration(&self) -> Vec<u8> {
        Vec::new()
    }

    fn queues(&self) -> u16 {
        1
    }

    fn answer(&mut self, _queue: u16, _readable: &[u8], room: usize) -> Option<Vec<u8>> {
        let count = if self.most == 0 { room } else { room.min(self.most) };
        let mut next = || {
            self.last = self.last.wrapping_add(1);
            self.last
        };
        Some((0..count).map(|_| next()).collect())
    }
}

/// A console with one port.
#[derive(Default)]
pub struct Console {
    /// Input, in the pieces in which it arrives.
    pub input: VecDeque<Vec<u8>>,
    /// Output received.
    pub output: Vec<u8>,
}

impl Behaviour for Console {
    fn kind(&self) -> Kind {
        Kind::Console
    }

    fn features(&self) -> u64 {
        0
    }

    fn configuration(&self) -> Vec<u8> {
        vec![80, 0, 25, 0]
    }

    fn queues(&self) -> u16 {
        2
    }

    fn answer(&mut self, queue: u16, readable: &[u8], room: usize) -> Option<Vec<u8>> {
        if queue == 1 {
            self.output.extend_from_slice(readable);
            return Some(Vec::new());
        }
        let mut piece = self.input.pop_front()?;
        if piece.len() > room {
            self.input.push_front(piece.split_off(room));
        }
        Some(piece)
    }
}

/// A network interface that loops back each packet.
pub struct Network {
    /// Whether the link is up.
    pub link: bool,
    /// Packets to receive.
    pub packets: VecDeque<Vec<u8>>,
    /// Packets that were sent.
    pub sent: u32,
    /// Offered features besides address and link status.
    pub offers: u64,
    /// Virtio header of the packet sent last.
    pub header: Vec<u8>,
    /// Flags in the virtio header of packets to receive.
    pub flags: u8,
}

impl Default for Network {
    fn default() -> Network {
        Network { link: true, packets: VecDeque::new(), sent: 0, offers: 0, header: Vec::new(), flags: 0 }
    }
}

impl Behaviour for Network {
    fn kind(&self) -> Kind {
        Kind::Network
    }

    fn features(&self) -> u64 {
        NETWORK_MAC | NETWORK_STATUS | self.offers
    }

    fn configuration(&self) -> Vec<u8> {
        vec![0x52, 0x54, 0, 0x12, 0x34, 0x56, self.link.into(), 0]
    }

    fn queues(&self) -> u16 {
        2
    }

    fn answer(&mut self, queue: u16, readable: &[u8], room: usize) -> Option<Vec<u8>> {
        if queue == 1 {
            self.sent += 1;
            let (header, packet) = readable.split_at(NETWORK_HEADER_BYTES.min(readable.len()));
            self.header = header.to_vec();
            self.packets.push_back(packet.to_vec());
            return Some(Vec::new());
        }
        let packet = self.packets.pop_front()?;
        let mut answer = vec![0; NETWORK_HEADER_BYTES];
        answer[0] = self.flags;
        // One buffer for the packet.
        answer[10] = 1;
        answer.extend(packet);
        answer.truncate(room);
        Some(answer)
    }
}
