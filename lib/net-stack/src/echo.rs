//! ICMP echo: replies to requests, and requests of this machine's own (RFC 792, RFC 4443).

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::task::{Poll, Waker};

use smoltcp::wire::IpAddress;

use crate::addresses::is_loopback;
use crate::ends::Failure;
use crate::icmp::{Error, ErrorKind, HEADER_BYTES, Message};
use crate::output::{Buffer, Output};
use crate::packet::IpHeader;

/// TTL or hop limit of an echo.
const HOP_LIMIT: u8 = 64;
/// Maximum outstanding requests.
const MAX_OUTSTANDING: usize = 256;

/// Identifies an outstanding request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EchoId(u16);

/// A reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Echo {
    /// Source of the reply.
    pub address: IpAddress,
    /// When the reply was received.
    pub at_ns: u64,
    /// Payload of the reply, in bytes.
    pub bytes: usize,
    /// TTL or hop limit of the reply, as received.
    pub hop_limit: u8,
}

struct Outstanding {
    address: IpAddress,
    sequence: u16,
    answer: Option<Result<Echo, Failure>>,
    waker: Option<Waker>,
}

impl Outstanding {
    fn finish(&mut self, answer: Result<Echo, Failure>) {
        if self.answer.is_none() {
            self.answer = Some(answer);
        }
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }
}

/// Outstanding requests.
#[derive(Default)]
pub(crate) struct Echoes {
    outstanding: BTreeMap<EchoId, Outstanding>,
    next: u16,
}

/// Identifier and sequence number.
fn kinds(is_version_4: bool) -> (u8, u8) {
    if is_version_4 { (8, 0) } else { (128, 129) }
}

impl Echoes {
    /// Sends a request with a payload of `bytes` bytes.
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
        if bytes > output.mtu_to(&to).saturating_sub(HEADER_BYTES + 40) {
            return Err(Failure::TooLong);
        }
        if self.outstanding.len() >= MAX_OUTSTANDING || !output.has_room() {
            return Err(Failure::Exhausted);
        }
        while self.outstanding.contains_key(&EchoId(self.next)) {
            self.next = self.next.wrapping_add(1);
        }
        let id = EchoId(self.next);
        self.next = self.next.wrapping_add(1);
        self.outstanding.insert(id, Outstanding { address: to, sequence, answer: None, waker: None });
        let data: Vec<u8> = (0..bytes).map(|number| number as u8).collect();
        let ([a, b], [c, d]) = (id.0.to_be_bytes(), sequence.to_be_bytes());
        let kind = kinds(matches!(to, IpAddress::Ipv4(_))).0;
        Message { from, to, hops: HOP_LIMIT, kind, code: 0, fields: [a, b, c, d], data: &data }.send(output);
        Ok(id)
    }

    pub(crate) fn poll(&mut self, id: EchoId, waker: &Waker) -> Poll<Result<Echo, Failure>> {
        let Some(outstanding) = self.outstanding.get_mut(&id) else { return Poll::Ready(Err(Failure::Closed)) };
        match outstanding.answer {
            Some(answer) => Poll::Ready(answer),
            None => {
                outstanding.waker = Some(waker.clone());
                Poll::Pending
            }
        }
    }

    pub(crate) fn forget(&mut self, id: EchoId) {
        self.outstanding.remove(&id);
    }

    /// Processes a message if it is an echo request or reply.
    pub(crate) fn receive<B: Buffer>(&mut self, output: &mut Output<B>, header: &IpHeader, packet: &[u8]) {
        let message = header.payload(packet);
        let Some((fields, data)) = message.split_at_checked(HEADER_BYTES) else {
            output.counters.malformed += 1;
            return;
        };
        let (request, answer) = kinds(header.is_version_4());
        let rest = [fields[4], fields[5], fields[6], fields[7]];
        if fields[0] == request && output.has_room() {
            // A request may be multicast; the reply comes from one host.
            let from = match output.addresses.has(&header.destination) || is_loopback(&header.destination) {
                true => Some(header.destination),
                false => output.addresses.source_for(&header.source),
            };
            let Some(from) = from else { return };
            let (to, kind) = (header.source, answer);
            Message { from, to, hops: HOP_LIMIT, kind, code: 0, fields: rest, data }.send(output);
        } else if fields[0] == answer {
            let id = EchoId(u16::from_be_bytes([rest[0], rest[1]]));
            let sequence = u16::from_be_bytes([rest[2], rest[3]]);
            let expected = |outstanding: &&mut Outstanding| {
                outstanding.sequence == sequence && outstanding.address == header.source
            };
            if let Some(outstanding) = self.outstanding.get_mut(&id).filter(expected) {
                let (address, at_ns) = (header.source, output.now_ns);
                outstanding.finish(Ok(Echo { address, at_ns, bytes: data.len(), hop_limit: header.hop_limit }));
            }
        }
    }

    /// Processes an error about a request; false if it matches none.
    pub(crate) fn fail(&mut self, error: &Error) -> bool {
        let id = EchoId(u16::from_be_bytes([error.payload[4], error.payload[5]]));
        let sequence = u16::from_be_bytes([error.payload[6], error.payload[7]]);
        let is_request = error.payload[0] == kinds(error.header.is_version_4()).0;
        let about = |outstanding: &&mut Outstanding| {
            outstanding.sequence == sequence && outstanding.address == error.header.destination
        };
        let Some(outstanding) = self.outstanding.get_mut(&id).filter(about).filter(|_| is_request) else {
            return false;
        };
        outstanding.finish(Err(match error.kind {
            ErrorKind::TooLong { .. } => Failure::TooLong,
            ErrorKind::Refused | ErrorKind::Unreachable | ErrorKind::Silent => Failure::Unreachable,
        }));
        true
    }
}
