//! Echoes: answering those who ask whether this machine is there, and asking others (RFC 792, RFC 4443).

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::task::{Poll, Waker};

use smoltcp::wire::{IpAddress, IpProtocol, IpRepr};

use crate::checksum;
use crate::ends::Failure;
use crate::output::{Buffer, Output};
use crate::packet::IpHeader;
use crate::udp::only_ip;

/// Bytes of the header of an echo.
const HEADER_BYTES: usize = 8;
/// Echoes that are waited for at once.
const MOST: usize = 256;

/// An echo that is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EchoId(u16);

/// An answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Echo {
    /// Who answered.
    pub address: IpAddress,
    /// When the answer came.
    pub at_ns: u64,
    /// Bytes that came back.
    pub bytes: usize,
    /// The hops that were left.
    pub hops_left: u8,
}

struct Asked {
    address: IpAddress,
    sequence: u16,
    answer: Option<Echo>,
    waker: Option<Waker>,
}

/// Echoes that are waited for.
#[derive(Default)]
pub(crate) struct Echoes {
    asked: BTreeMap<EchoId, Asked>,
    next: u16,
}

/// The numbers of request and answer.
fn kinds(is_version_4: bool) -> (u8, u8) {
    if is_version_4 { (8, 0) } else { (128, 129) }
}

/// Sends an echo's message: its first bytes, then what it carries.
fn send<B: Buffer>(output: &mut Output<B>, from: IpAddress, to: IpAddress, kind: u8, fields: [u8; 4], data: &[u8]) {
    let is_version_4 = matches!(from, IpAddress::Ipv4(_));
    let protocol = if is_version_4 { IpProtocol::Icmp } else { IpProtocol::Icmpv6 };
    let ip = IpRepr::new(from, to, protocol, HEADER_BYTES + data.len(), 64);
    output.send(ip.buffer_len(), 0, |packet| {
        ip.emit(&mut *packet, &only_ip());
        let place = &mut packet[ip.header_len()..];
        place[..4].copy_from_slice(&[kind, 0, 0, 0]);
        place[4..HEADER_BYTES].copy_from_slice(&fields);
        place[HEADER_BYTES..].copy_from_slice(data);
        let start = match IpHeader::read(packet) {
            Some(header) if !is_version_4 => checksum::pseudo(packet, &header),
            _ => 0,
        };
        let place = &mut packet[ip.header_len()..];
        let sum = !checksum::sum(place, start);
        place[2..4].copy_from_slice(&sum.to_be_bytes());
    });
}

impl Echoes {
    /// Asks an address with so many bytes.
    pub(crate) fn ask<B: Buffer>(
        &mut self,
        output: &mut Output<B>,
        to: IpAddress,
        bytes: usize,
        sequence: u16,
    ) -> Result<EchoId, Failure> {
        if !output.reaches(&to) {
            return Err(Failure::Unreachable);
        }
        let from = output.addresses.source_for(&to).ok_or(Failure::Unreachable)?;
        if bytes > output.mtu.saturating_sub(HEADER_BYTES + 40) {
            return Err(Failure::TooLong);
        }
        if self.asked.len() >= MOST || !output.has_room() {
            return Err(Failure::Exhausted);
        }
        while self.asked.contains_key(&EchoId(self.next)) {
            self.next = self.next.wrapping_add(1);
        }
        let id = EchoId(self.next);
        self.next = self.next.wrapping_add(1);
        self.asked.insert(id, Asked { address: to, sequence, answer: None, waker: None });
        let data: Vec<u8> = (0..bytes).map(|number| number as u8).collect();
        let ([a, b], [c, d]) = (id.0.to_be_bytes(), sequence.to_be_bytes());
        send(output, from, to, kinds(matches!(to, IpAddress::Ipv4(_))).0, [a, b, c, d], &data);
        Ok(id)
    }

    pub(crate) fn poll(&mut self, id: EchoId, waker: &Waker) -> Poll<Result<Echo, Failure>> {
        let Some(asked) = self.asked.get_mut(&id) else { return Poll::Ready(Err(Failure::Closed)) };
        match asked.answer {
            Some(answer) => Poll::Ready(Ok(answer)),
            None => {
                asked.waker = Some(waker.clone());
                Poll::Pending
            }
        }
    }

    pub(crate) fn forget(&mut self, id: EchoId) {
        self.asked.remove(&id);
    }

    /// Takes a message of ICMP that may be an echo's.
    pub(crate) fn receive<B: Buffer>(&mut self, output: &mut Output<B>, header: &IpHeader, packet: &[u8]) {
        let message = header.payload(packet);
        let Some((fields, data)) = message.split_at_checked(HEADER_BYTES) else {
            output.counters.malformed += 1;
            return;
        };
        let (request, answer) = kinds(header.is_version_4());
        let rest = [fields[4], fields[5], fields[6], fields[7]];
        if fields[0] == request && output.has_room() {
            send(output, header.destination, header.source, answer, rest, data);
        } else if fields[0] == answer {
            let id = EchoId(u16::from_be_bytes([rest[0], rest[1]]));
            let sequence = u16::from_be_bytes([rest[2], rest[3]]);
            let expected = |asked: &&mut Asked| asked.sequence == sequence && asked.address == header.source;
            if let Some(asked) = self.asked.get_mut(&id).filter(expected) {
                let (address, at_ns) = (header.source, output.now_ns);
                asked.answer = Some(Echo { address, at_ns, bytes: data.len(), hops_left: header.hops_left });
                if let Some(waker) = asked.waker.take() {
                    waker.wake();
                }
            }
        }
    }
}
