//! The `IpConfiguration` contract: the host's network configuration, read-only, and this process's own sockets.

use alloc::collections::BTreeMap;
use alloc::rc::{Rc, Weak};
use core::cell::{Cell, RefCell};

use contracts::ip_configuration::{self, ExpReady, IpError};
use contracts::{
    AddressRecord, HostAddress, InterfaceFlags, InterfaceRecord, NetCounters, RouteFlags, RouteRecord, SocketAddress,
    SocketRecord,
};
use network_guard::Action;
use sip::channel::TypedEndpoint;
use sip::device::sockets::{Command, FIRST_AT, RECORD_BYTES};
use sip::exheap::{ExBox, ExVec, Plain};

use crate::connection::Ends;
use crate::failures::ip_error;
use crate::host::{Described, Host, Kind, Socket};
use crate::ping;
use crate::transfer::Stream;
use crate::udp::Datagrams;

const TCP: u16 = 1;
const UDP: u16 = 2;
const LISTENING: u16 = 1;

/// A client's socket.
struct Entry {
    ends: Ends,
    socket: Holder,
}

/// The owner of a socket; weak, so that an entry does not keep it open.
enum Holder {
    Connection(Weak<Stream>),
    Listener(Weak<Socket>),
    Datagrams(Weak<Datagrams>),
}

impl Holder {
    fn kind(&self) -> Kind {
        match self {
            Holder::Connection(_) => Kind::Connection,
            Holder::Listener(_) => Kind::Listener,
            Holder::Datagrams(_) => Kind::Datagrams,
        }
    }

    /// Retransmits or drops of the socket.
    fn lost(&self) -> u64 {
        match self {
            Holder::Connection(stream) => stream.upgrade().map_or(0, |stream| stream.socket.lost_so_far()),
            Holder::Listener(socket) => socket.upgrade().map_or(0, |socket| socket.lost_so_far()),
            Holder::Datagrams(datagrams) => datagrams.upgrade().map_or(0, |one| one.socket().lost_so_far()),
        }
    }
}

/// The table of this process's sockets, and its counters.
#[derive(Default)]
pub struct Known {
    entries: RefCell<BTreeMap<u64, Entry>>,
    next: Cell<u64>,
    connected: Cell<u64>,
    accepted: Cell<u64>,
    reset: Cell<u64>,
}

impl Known {
    fn insert(&self, ends: Ends, socket: Holder) -> u64 {
        let number = self.next.get();
        self.next.set(number + 1);
        self.entries.borrow_mut().insert(number, Entry { ends, socket });
        number
    }

    /// Adds a connection and returns its number.
    pub fn add(&self, stream: &Rc<Stream>, ends: Ends) -> u64 {
        self.insert(ends, Holder::Connection(Rc::downgrade(stream)))
    }

    /// Adds a listener and returns its number.
    pub fn add_listener(&self, socket: &Rc<Socket>, local: SocketAddress) -> u64 {
        self.insert(Ends { local, remote: unspecified() }, Holder::Listener(Rc::downgrade(socket)))
    }

    /// Adds a datagram socket and returns its number.
    pub fn add_datagrams(&self, datagrams: &Rc<Datagrams>, local: SocketAddress) -> u64 {
        self.insert(Ends { local, remote: unspecified() }, Holder::Datagrams(Rc::downgrade(datagrams)))
    }

    /// Removes a closed socket.
    pub fn remove(&self, number: u64) {
        self.entries.borrow_mut().remove(&number);
    }

    /// Counts an outgoing connection.
    pub fn count_connected(&self) {
        self.connected.set(self.connected.get() + 1);
    }

    /// Counts an accepted connection.
    pub fn count_accepted(&self) {
        self.accepted.set(self.accepted.get() + 1);
    }

    /// Counts a connection that ended by a reset.
    pub fn count_reset(&self) {
        self.reset.set(self.reset.get() + 1);
    }

    /// Returns the counters of the clients' sockets. Only the host sees malformed packets.
    fn counters(&self, host: &Host) -> NetCounters {
        let entries = self.entries.borrow();
        let lost = |kind: Kind| {
            let of_kind = entries.values().filter(|entry| entry.socket.kind() == kind);
            host.lost(kind) + of_kind.map(|entry| entry.socket.lost()).sum::<u64>()
        };
        NetCounters {
            tcp_connected: self.connected.get(),
            tcp_accepted: self.accepted.get(),
            tcp_overflowed: lost(Kind::Listener),
            tcp_reset: self.reset.get(),
            tcp_retransmitted: lost(Kind::Connection),
            malformed: 0,
            udp_overflowed: lost(Kind::Datagrams),
            tcp_sockets: entries.values().filter(|entry| entry.socket.kind() != Kind::Datagrams).count() as u64,
        }
    }

    fn sockets(&self) -> Result<ExVec<SocketRecord>, IpError> {
        let entries = self.entries.borrow();
        let mut records = ExVec::<SocketRecord>::new(entries.len()).map_err(|_| IpError::Exhausted)?;
        for (record, entry) in records.iter_mut().zip(entries.values()) {
            *record = record_of(entry);
        }
        Ok(records)
    }
}

fn unspecified() -> SocketAddress {
    SocketAddress { address: [0; 16], port: 0, reserved: 0, scope: 0 }
}

fn record_of(entry: &Entry) -> SocketRecord {
    let described = match &entry.socket {
        Holder::Connection(stream) => stream.upgrade().and_then(|stream| stream.socket.describe().ok()),
        Holder::Listener(_) | Holder::Datagrams(_) => None,
    };
    let kind = entry.socket.kind();
    let state = if kind == Kind::Listener { LISTENING } else { 0 };
    let nothing = Described { state, receive_queued: 0, send_queued: 0 };
    let Described { state, receive_queued, send_queued } = described.unwrap_or(nothing);
    SocketRecord {
        local_address: entry.ends.local.address,
        remote_address: entry.ends.remote.address,
        local_port: entry.ends.local.port,
        remote_port: entry.ends.remote.port,
        protocol: if kind == Kind::Datagrams { UDP } else { TCP },
        state,
        receive_queued,
        send_queued,
    }
}

/// Fetches one of the host's lists as records of the contract.
async fn list<T: Plain>(host: &Host, command: Command, read: fn(&[u8]) -> T) -> Result<ExVec<T>, IpError> {
    let width = size_of::<T>();
    let mut room = 64;
    loop {
        let record = host.look_up(command, 0, &[], room * width).await.map_err(ip_error)?;
        let count = record.number(FIRST_AT) as usize;
        if count > room {
            room = count;
            continue;
        }
        let mut records = ExVec::<T>::new(count).map_err(|_| IpError::Exhausted)?;
        let bytes = record.0.get(RECORD_BYTES..).unwrap_or(&[]).chunks_exact(width);
        for (place, bytes) in records.iter_mut().zip(bytes) {
            *place = read(bytes);
        }
        return Ok(records);
    }
}

/// Reads numbers and byte arrays in sequence from the front of a record.
struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn bytes<const N: usize>(&mut self) -> [u8; N] {
        let mut bytes = [0; N];
        if let Some((first, rest)) = self.0.split_at_checked(N) {
            bytes.copy_from_slice(first);
            self.0 = rest;
        }
        bytes
    }

    fn half(&mut self) -> u16 {
        u16::from_le_bytes(self.bytes())
    }

    fn word(&mut self) -> u32 {
        u32::from_le_bytes(self.bytes())
    }

    fn long(&mut self) -> u64 {
        u64::from_le_bytes(self.bytes())
    }
}

fn interface(bytes: &[u8]) -> InterfaceRecord {
    let mut fields = Fields(bytes);
    InterfaceRecord {
        name: fields.bytes(),
        number: fields.word(),
        mtu: fields.word(),
        mac_address: fields.bytes(),
        flags: InterfaceFlags::from_bits(fields.half()).unwrap_or(InterfaceFlags::empty()),
        addresses: fields.word(),
        reserved: fields.word(),
        link_bits_per_s: fields.long(),
        received_packets: fields.long(),
        received_bytes: fields.long(),
        sent_packets: fields.long(),
        sent_bytes: fields.long(),
        dropped_packets: fields.long(),
    }
}

fn address(bytes: &[u8]) -> AddressRecord {
    let mut fields = Fields(bytes);
    AddressRecord { address: fields.bytes(), prefix_bits: fields.word(), interface: fields.word() }
}

fn route(bytes: &[u8]) -> RouteRecord {
    let mut fields = Fields(bytes);
    RouteRecord {
        network: fields.bytes(),
        gateway: fields.bytes(),
        prefix_bits: fields.word(),
        interface: fields.word(),
        flags: RouteFlags::from_bits(fields.word()).unwrap_or(RouteFlags::empty()),
        reserved: fields.word(),
    }
}

fn server(bytes: &[u8]) -> HostAddress {
    HostAddress { address: Fields(bytes).bytes() }
}

/// Serves one client.
pub async fn serve(host: Rc<Host>, known: Rc<Known>, client: ip_configuration::Exp<ip_configuration::states::Start>) {
    let mut client = client.success();
    loop {
        client = match client.receive_async().await {
            ExpReady::GetInterfaces { next } => match list(&host, Command::Interfaces, interface).await {
                Ok(records) => next.interfaces(records),
                Err(error) => next.failed(error),
            },
            ExpReady::GetAddresses { next } => match list(&host, Command::Addresses, address).await {
                Ok(records) => next.addresses(records),
                Err(error) => next.failed(error),
            },
            ExpReady::GetRoutes { next } => match list(&host, Command::Routes, route).await {
                Ok(records) => next.routes(records),
                Err(error) => next.failed(error),
            },
            ExpReady::GetNameServers { next } => match list(&host, Command::NameServers, server).await {
                Ok(records) => next.name_servers(records),
                Err(error) => next.failed(error),
            },
            ExpReady::GetSockets { next } => match known.sockets() {
                Ok(records) => next.sockets(records),
                Err(error) => next.failed(error),
            },
            ExpReady::GetCounters { next } => match ExBox::new(known.counters(&host)) {
                Ok(counters) => next.counters(counters),
                Err(_) => next.failed(IpError::Exhausted),
            },
            // The host's configuration is not changed from here.
            ExpReady::AddAddress { next, .. } => next.failed(IpError::NotSupported),
            ExpReady::RemoveAddress { next, .. } => next.failed(IpError::NotSupported),
            ExpReady::AddRoute { next, .. } => next.failed(IpError::NotSupported),
            ExpReady::RemoveRoute { next, .. } => next.failed(IpError::NotSupported),
            ExpReady::SetNameServers { next, .. } => next.failed(IpError::NotSupported),
            ExpReady::SetDhcp { next, .. } => next.failed(IpError::NotSupported),
            ExpReady::Ping { address, next, .. } if !may_ping(&host, &next, address) => {
                next.failed(IpError::NotPermitted)
            }
            ExpReady::Ping { address, bytes, sequence, timeout_ms, next } => {
                match ping::ping(&host, address, bytes, sequence, timeout_ms, &next).await {
                    Some(Ok(pong)) => next.pong(pong.address, pong.round_trip_ns, pong.bytes, pong.hop_limit),
                    Some(Err(error)) => next.failed(error),
                    None => return,
                }
            }
            ExpReady::ChannelClosed(_) => return,
        };
    }
}

fn may_ping<E: TypedEndpoint>(host: &Host, client: &E, address: [u8; 16]) -> bool {
    host.guard.allows(client, Action::Ping, &SocketAddress { address, ..SocketAddress::ANY })
}
