//! UDP sockets and their receive queues.
//!
//! A datagram is sent as one packet: longer ones are refused.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;
use core::task::{Poll, Waker};

use smoltcp::phy::{Checksum, ChecksumCapabilities};
use smoltcp::wire::{IpAddress, IpProtocol, IpRepr};

use crate::ends::{End, Failure};
use crate::output::{Buffer, Output};
use crate::packet::IpHeader;

/// Length of a UDP header, in bytes.
pub(crate) const HEADER_BYTES: usize = Header::BYTES;

/// UDP header (RFC 768). Its checksum is filled in with the packet's others.
#[derive(layout::Record)]
#[record(bytes = 8, order = "big")]
pub(crate) struct Header {
    pub(crate) source_port: u16,
    pub(crate) destination_port: u16,
    /// Length of the datagram with its header, in bytes.
    pub(crate) bytes: u16,
}
/// Maximum bytes queued at one socket; the excess is dropped.
const MAX_WAITING_BYTES: usize = 256 << 10;
/// Maximum datagrams queued at one socket.
const MAX_WAITING: usize = 1024;
/// Maximum number of sockets.
const MAX_SOCKETS: usize = 4096;

/// A socket, until it is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UdpId(u64);

/// A received datagram.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Datagram {
    /// Its sender.
    pub remote: End,
    /// Its payload.
    pub data: Vec<u8>,
}

struct Socket {
    address: Option<IpAddress>,
    port: u16,
    waiting: VecDeque<Datagram>,
    waiting_bytes: usize,
    waker: Option<Waker>,
}

/// All sockets.
#[derive(Default)]
pub(crate) struct Udp {
    sockets: BTreeMap<UdpId, Socket>,
    by_port: BTreeMap<u16, Vec<UdpId>>,
    next: u64,
}

impl Udp {
    pub(crate) fn is_taken(&self, address: Option<IpAddress>, port: u16) -> bool {
        let clashes = |id: &UdpId| {
            self.sockets
                .get(id)
                .is_some_and(|socket| socket.address.is_none() || address.is_none() || socket.address == address)
        };
        self.by_port.get(&port).is_some_and(|ids| ids.iter().any(clashes))
    }

    pub(crate) fn bind(&mut self, address: Option<IpAddress>, port: u16) -> Result<UdpId, Failure> {
        if self.is_taken(address, port) {
            return Err(Failure::AddressInUse);
        }
        if self.sockets.len() >= MAX_SOCKETS {
            return Err(Failure::Exhausted);
        }
        let id = UdpId(self.next);
        self.next += 1;
        let socket = Socket { address, port, waiting: VecDeque::new(), waiting_bytes: 0, waker: None };
        self.sockets.insert(id, socket);
        self.by_port.entry(port).or_default().push(id);
        Ok(id)
    }

    pub(crate) fn close(&mut self, id: UdpId) {
        let Some(socket) = self.sockets.remove(&id) else { return };
        if let Some(ids) = self.by_port.get_mut(&socket.port) {
            ids.retain(|other| *other != id);
            if ids.is_empty() {
                self.by_port.remove(&socket.port);
            }
        }
    }

    /// Processes a packet whose checksum is right; returns `false` if no socket is bound to the port.
    pub(crate) fn receive<B>(&mut self, output: &mut Output<B>, header: &IpHeader, packet: &[u8]) -> bool {
        let payload = header.payload(packet);
        let Some(Header { source_port, destination_port: port, bytes }) = Header::parse(payload) else {
            output.counters.malformed += 1;
            return true;
        };
        let Some(data) = payload.get(HEADER_BYTES..usize::from(bytes)) else {
            output.counters.malformed += 1;
            return true;
        };
        let fits = |id: &&UdpId| {
            let address = self.sockets.get(id).map(|socket| socket.address);
            address.is_some_and(|address| address.is_none_or(|own| own == header.destination))
        };
        let found = self.by_port.get(&port).and_then(|ids| ids.iter().find(fits)).copied();
        let Some(socket) = found.and_then(|id| self.sockets.get_mut(&id)) else { return false };
        if socket.waiting.len() >= MAX_WAITING || socket.waiting_bytes + data.len() > MAX_WAITING_BYTES {
            output.counters.udp_overflowed += 1;
            return true;
        }
        socket.waiting_bytes += data.len();
        socket.waiting.push_back(Datagram { remote: End::new(header.source, source_port), data: data.to_vec() });
        if let Some(waker) = socket.waker.take() {
            waker.wake();
        }
        true
    }

    pub(crate) fn poll_receive(&mut self, id: UdpId, waker: &Waker) -> Poll<Result<Datagram, Failure>> {
        let Some(socket) = self.sockets.get_mut(&id) else { return Poll::Ready(Err(Failure::Closed)) };
        match socket.waiting.pop_front() {
            Some(datagram) => {
                socket.waiting_bytes -= datagram.data.len();
                Poll::Ready(Ok(datagram))
            }
            None => {
                socket.waker = Some(waker.clone());
                Poll::Pending
            }
        }
    }

    pub(crate) fn send<B: Buffer>(
        &self,
        output: &mut Output<B>,
        id: UdpId,
        remote: End,
        data: &[u8],
    ) -> Result<(), Failure> {
        let socket = self.sockets.get(&id).ok_or(Failure::Closed)?;
        send_from(output, socket.address, socket.port, remote, data)
    }

    /// Returns whether a datagram may have been sent from an end.
    pub(crate) fn is_from_here(&self, local: End) -> bool {
        let ids = self.by_port.get(&local.port).into_iter().flatten();
        ids.filter_map(|id| self.sockets.get(id)).any(|socket| socket.address.is_none_or(|own| own == local.address))
    }

    /// Returns all sockets for diagnostics: address, port, and queued bytes.
    pub(crate) fn all(&self) -> impl Iterator<Item = (Option<IpAddress>, u16, usize)> + '_ {
        self.sockets.values().map(|socket| (socket.address, socket.port, socket.waiting_bytes))
    }
}

/// Sends a datagram from a port, with the given source address or one picked by source selection.
pub(crate) fn send_from<B: Buffer>(
    output: &mut Output<B>,
    address: Option<IpAddress>,
    port: u16,
    remote: End,
    data: &[u8],
) -> Result<(), Failure> {
    if remote.port == 0 || remote.address.is_unspecified() {
        return Err(Failure::BadAddress);
    }
    if !output.reaches(&remote.address) {
        return Err(Failure::Unreachable);
    }
    let source = match address {
        Some(own) if own.version() == remote.address.version() => own,
        Some(_) => return Err(Failure::BadAddress),
        None => output.addresses.source_for(&remote.address).ok_or(Failure::Unreachable)?,
    };
    let length = u16::try_from(HEADER_BYTES + data.len()).map_err(|_| Failure::TooLong)?;
    let ip = IpRepr::new(source, remote.address, IpProtocol::Udp, usize::from(length), 64);
    let most = match output.addresses.is_local(&remote.address) {
        true => usize::from(u16::MAX),
        false => output.mtu_to(&remote.address),
    };
    if ip.buffer_len() > most {
        return Err(Failure::TooLong);
    }
    if !output.has_room() {
        return Err(Failure::Exhausted);
    }
    output.send(ip.buffer_len(), 0, |packet| {
        ip.emit(&mut *packet, &only_ip());
        // The packet is as long as header and data.
        if let Some((header, place)) = packet[ip.header_len()..].split_first_chunk_mut() {
            Header { source_port: port, destination_port: remote.port, bytes: length }.write(header);
            place.copy_from_slice(data);
        }
    });
    Ok(())
}

/// Only the IPv4 header checksum: the others are computed once the packet is complete.
pub(crate) fn only_ip() -> ChecksumCapabilities {
    let mut checksums = ChecksumCapabilities::ignored();
    checksums.ipv4 = Checksum::Tx;
    checksums
}
