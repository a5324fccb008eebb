//! The whole: packets and the time in, packets and answers out.

use core::task::{Poll, Waker};

use alloc::vec::Vec;

use smoltcp::socket::tcp::State;
use smoltcp::wire::{EthernetAddress, EthernetProtocol, IpAddress, IpCidr, IpProtocol};

use crate::addresses::{self, Address, Origin};
use crate::checksum;
use crate::counters::Counters;
use crate::dhcp::{Change, Dhcp, Lease};
use crate::echo::{Echo, EchoId, Echoes};
use crate::ends::{End, Failure};
use crate::names::{NameQuery, Names};
use crate::output::{Buffer, Features, Outgoing, Output};
use crate::packet::{ETHERNET_BYTES, IpHeader};
use crate::routes::Route;
use crate::tcp::{ConnectionId, Limits, ListenerId, Tcp};
use crate::udp::{Datagram, Udp, UdpId};

/// What a stack is made for.
#[derive(Clone, Copy, Debug)]
pub struct Configuration {
    /// The interface's address.
    pub hardware: EthernetAddress,
    /// Most bytes of an IP packet.
    pub mtu: usize,
    /// What the interface takes over.
    pub features: Features,
    /// How much there may be.
    pub limits: Limits,
    /// A secret that nobody else knows.
    pub seed: [u8; 32],
}

/// A network stack over one interface. `B` is a packet's buffer.
pub struct Stack<B> {
    output: Output<B>,
    tcp: Tcp,
    udp: Udp,
    echoes: Echoes,
    names: Names,
    dhcp: Option<Dhcp>,
    /// What was lent by DHCP.
    lease: Option<Lease>,
}

impl<B: Buffer> Stack<B> {
    /// A stack without addresses.
    pub fn new(configuration: Configuration) -> Stack<B> {
        let Configuration { hardware, mtu, features, limits, seed } = configuration;
        let mut output = Output::new(hardware, mtu, features);
        let tcp = Tcp::new(limits, &mut output, seed);
        Stack {
            output,
            tcp,
            udp: Udp::default(),
            echoes: Echoes::default(),
            names: Names::new(),
            dhcp: None,
            lease: None,
        }
    }

    /// Tells the time, in nanoseconds since some moment. Whoever asks something tells the time before.
    pub fn set_time(&mut self, now_ns: u64) {
        self.output.now_ns = self.output.now_ns.max(now_ns);
    }

    /// Gives an empty buffer for a packet to send: of at least the MTU and 14 bytes.
    pub fn give(&mut self, buffer: B) {
        self.output.give(buffer);
    }

    /// Empty buffers that the stack has.
    pub fn free_buffers(&self) -> usize {
        self.output.free_buffers()
    }

    /// A packet to send.
    pub fn take(&mut self) -> Option<Outgoing<B>> {
        self.output.take()
    }

    /// Whether [`Stack::take`] has something to give.
    pub fn has_ready(&self) -> bool {
        self.output.has_ready()
    }

    /// Whether [`Stack::serve`] has something to do now, and room to do it.
    pub fn has_work(&self) -> bool {
        self.output.has_looped() || self.tcp.is_dirty() && self.output.has_room()
    }

    /// When [`Stack::serve`] has to be called at the latest, in nanoseconds.
    pub fn next_time_ns(&mut self) -> Option<u64> {
        let now_ns = self.output.now_ns;
        let names = self.names.next_time_ns(self.tcp.interface(), now_ns);
        let dhcp = self.dhcp.as_ref().and_then(Dhcp::next_time_ns).map(|time_ns| match self.output.has_room() {
            true => time_ns,
            // Nothing can be sent before a buffer comes back.
            false => time_ns.max(now_ns + 10_000_000),
        });
        [self.tcp.next_time_ns(), self.output.next_time_ns(), names, dhcp].into_iter().flatten().min()
    }

    /// Who is woken when [`Stack::serve`] should be called before that time.
    pub fn set_worker(&mut self, worker: &Waker) {
        self.tcp.set_worker(worker);
    }

    /// Does what is due.
    pub fn serve(&mut self) {
        self.output.serve();
        if let Some(dhcp) = &mut self.dhcp
            && let Some(change) = dhcp.serve(&mut self.output)
        {
            self.change_lease(change);
        }
        self.names.serve(self.tcp.interface(), &mut self.output);
        self.tcp.serve(&mut self.output);
        // Packets to this machine itself are of no use to anybody else meanwhile, so they are taken at once; what
        // they bring about waits for the next call, or two sockets here could keep each other busy for ever.
        let mut left = LOOPED_AT_ONCE;
        while let Some(packet) = self.output.take_looped() {
            self.receive_ip(&packet, Checked::Yes);
            left -= 1;
            if left == 0 {
                break;
            }
        }
    }

    /// Takes a packet, from its Ethernet header on. `is_checked`: the interface has found its checksums right.
    pub fn receive(&mut self, frame: &[u8], is_checked: bool) {
        self.output.counters.received_packets += 1;
        self.output.counters.received_bytes += frame.len() as u64;
        let Some((header, packet)) = frame.split_at_checked(ETHERNET_BYTES) else {
            self.output.counters.malformed += 1;
            return;
        };
        let is_for_group = header[0] & 1 != 0;
        if !is_for_group && header[..6] != self.output.hardware.0 {
            self.output.counters.dropped += 1;
            return;
        }
        let checked = if is_checked { Checked::Yes } else { Checked::No };
        match EthernetProtocol::from(u16::from_be_bytes([header[12], header[13]])) {
            EthernetProtocol::Arp => {
                self.output.receive_arp(packet);
                // Its own view of the link learns from answers, or a lease could not be renewed.
                if let Some(dhcp) = self.dhcp.as_mut().filter(|_| packet.get(6..8) == Some(&[0, 2])) {
                    dhcp.receive(&mut self.output, frame);
                }
            }
            EthernetProtocol::Ipv4 if is_for_dhcp(packet) => {
                if let Some(dhcp) = &mut self.dhcp {
                    dhcp.receive(&mut self.output, frame);
                }
            }
            EthernetProtocol::Ipv4 if packet.first().is_some_and(|byte| byte >> 4 == 4) => {
                self.receive_from_link(packet, checked, is_for_group);
            }
            EthernetProtocol::Ipv6 if packet.first().is_some_and(|byte| byte >> 4 == 6) => {
                self.receive_from_link(packet, checked, is_for_group);
            }
            _ => self.output.counters.dropped += 1,
        }
    }

    fn receive_from_link(&mut self, packet: &[u8], checked: Checked, is_for_group: bool) {
        let Some(header) = IpHeader::read(packet) else {
            self.output.counters.malformed += 1;
            return;
        };
        if header.is_version_4() && checksum::sum(&packet[..header.header_bytes], 0) != u16::MAX {
            self.output.counters.malformed += 1;
            return;
        }
        let addresses = &self.output.addresses;
        let is_false = addresses::is_loopback(&header.source)
            || addresses::is_loopback(&header.destination)
            || addresses.has(&header.source)
            || header.source.is_multicast()
            || addresses.is_broadcast(&header.source);
        let is_for_us = addresses.has(&header.destination);
        let is_for_all = addresses.is_broadcast(&header.destination) && header.protocol == IpProtocol::Udp;
        let is_one_of_many = header.fragment.is_some() || (is_for_group && header.protocol != IpProtocol::Udp);
        if is_false || is_one_of_many || !(is_for_us || is_for_all) {
            self.output.counters.dropped += 1;
            return;
        }
        self.receive_ip(packet, checked);
    }

    /// Takes a packet whose header is right and which is for this machine.
    fn receive_ip(&mut self, packet: &[u8], checked: Checked) {
        let Some(header) = IpHeader::read(packet) else { return };
        let packet = header.whole(packet);
        let is_right = match header.protocol {
            IpProtocol::Icmp => checksum::sum(header.payload(packet), 0) == u16::MAX,
            _ => checked == Checked::Yes || checksum::is_right(packet, &header),
        };
        if !is_right {
            self.output.counters.malformed += 1;
            return;
        }
        match header.protocol {
            IpProtocol::Tcp => self.tcp.receive(&mut self.output, &header, packet),
            IpProtocol::Udp => {
                if !self.udp.receive(&mut self.output, &header, packet) {
                    self.receive_for_nobody(&header, packet);
                }
            }
            IpProtocol::Icmp if header.is_version_4() => self.echoes.receive(&mut self.output, &header, packet),
            IpProtocol::Icmpv6 if !header.is_version_4() => self.echoes.receive(&mut self.output, &header, packet),
            _ => self.output.counters.dropped += 1,
        }
    }

    /// A datagram that no socket takes: a name server's answer, or one that was not asked for.
    fn receive_for_nobody(&mut self, header: &IpHeader, packet: &[u8]) {
        let is_answer = header.payload(packet).starts_with(&DNS_PORT.to_be_bytes());
        if is_answer && self.names.servers().contains(&header.source) {
            self.names.receive(self.tcp.interface(), &mut self.output, packet);
        } else {
            self.output.counters.dropped += 1;
        }
    }

    /// Lets the interface ask for its address by DHCP, or gives up what it has by it.
    pub fn set_dhcp(&mut self, is_on: bool) {
        match (is_on, self.dhcp.is_some()) {
            (true, false) => {
                let seed = self.tcp.secret();
                self.dhcp = Some(Dhcp::new(&mut self.output, seed));
                self.tcp.wake_worker();
            }
            (false, true) => {
                self.dhcp = None;
                self.change_lease(Change::Over);
            }
            _ => {}
        }
    }

    /// Whether the interface asks for its address by DHCP.
    pub fn has_dhcp(&self) -> bool {
        self.dhcp.is_some()
    }

    /// Puts what a DHCP server lends in place of what it lent before.
    fn change_lease(&mut self, change: Change) {
        let new = match change {
            Change::Lent(lease) => Some(lease),
            Change::Over => None,
        };
        if self.lease == new {
            return;
        }
        let network = new.as_ref().map(|lease| lease.network);
        let is_same = self.lease.as_ref().map(|lease| lease.network) == network;
        if let Some(old) = self.lease.take() {
            self.output.routes.retain(|route| !route.learnt);
            if !is_same {
                self.remove_address(&old.network.address());
            }
        }
        let Some(lease) = new else { return };
        if !is_same {
            // One that somebody set is as good.
            let _ = self.add_address(Address { network: lease.network, origin: Origin::Dhcp });
        }
        if let Some(gateway) = lease.gateway {
            let network = IpCidr::new(IpAddress::v4(0, 0, 0, 0), 0);
            self.output.routes.add(Route { network, gateway, learnt: true, until_ns: None });
        }
        if !lease.name_servers.is_empty() {
            self.names.set_servers(&lease.name_servers);
        }
        self.lease = Some(lease);
    }

    /// The name servers.
    pub fn name_servers(&self) -> &[IpAddress] {
        self.names.servers()
    }

    /// Sets the name servers: four at most.
    pub fn set_name_servers(&mut self, servers: &[IpAddress]) {
        self.names.set_servers(servers);
    }

    /// Asks for the addresses of a name, of one version of IP. The question is to be polled to its end or forgotten.
    ///
    /// # Errors
    /// The name cannot be one, or there are too many questions.
    pub fn resolve(&mut self, name: &str, is_version_6: bool) -> Result<NameQuery, Failure> {
        let asked = self.names.ask(self.tcp.interface(), name, is_version_6);
        self.tcp.wake_worker();
        asked
    }

    /// The answer, with which the question is over; none: there are no such addresses, or nobody answered.
    pub fn poll_resolved(&mut self, query: &NameQuery, waker: &Waker) -> Poll<Vec<IpAddress>> {
        self.names.poll(query, waker)
    }

    /// Forgets a question that is not over.
    pub fn forget_query(&mut self, query: NameQuery) {
        self.names.forget(query);
    }

    /// Binds a socket of UDP to a port (0: one that is free), of one address or of all.
    ///
    /// # Errors
    /// The address is not one of this machine's, or somebody else has it.
    pub fn udp_bind(&mut self, address: Option<IpAddress>, port: u16) -> Result<(UdpId, u16), Failure> {
        if address.is_some_and(|address| !self.output.addresses.is_here(&address)) {
            return Err(Failure::BadAddress);
        }
        let udp = &self.udp;
        let port = match port {
            0 => self.tcp.free_port(|_, port| !udp.is_taken(address, port))?,
            port => port,
        };
        Ok((self.udp.bind(address, port)?, port))
    }

    /// Sends a datagram.
    ///
    /// # Errors
    /// There is no way there, or it is too long for one packet.
    pub fn udp_send(&mut self, id: UdpId, remote: End, data: &[u8]) -> Result<(), Failure> {
        let sent = self.udp.send(&mut self.output, id, remote, data);
        self.tcp.wake_worker();
        sent
    }

    /// The next datagram.
    pub fn poll_udp(&mut self, id: UdpId, waker: &Waker) -> Poll<Result<Datagram, Failure>> {
        self.udp.poll_receive(id, waker)
    }

    /// Closes a socket of UDP.
    pub fn udp_close(&mut self, id: UdpId) {
        self.udp.close(id);
    }

    /// Asks a host for an echo. It is to be forgotten in the end.
    ///
    /// # Errors
    /// There is no way there, or it is too long for one packet.
    pub fn echo(&mut self, to: IpAddress, bytes: usize, sequence: u16) -> Result<EchoId, Failure> {
        let asked = self.echoes.ask(&mut self.output, to, bytes, sequence);
        self.tcp.wake_worker();
        asked
    }

    /// The echo's answer.
    pub fn poll_echo(&mut self, id: EchoId, waker: &Waker) -> Poll<Result<Echo, Failure>> {
        self.echoes.poll(id, waker)
    }

    /// Forgets an echo.
    pub fn forget_echo(&mut self, id: EchoId) {
        self.echoes.forget(id);
    }

    /// All sockets, for people.
    pub fn sockets(&self) -> Vec<SocketInfo> {
        let any = IpAddress::v4(0, 0, 0, 0);
        let listeners = self.tcp.listeners().map(|(address, port, waiting)| SocketInfo {
            local: End::new(address.unwrap_or(any), port),
            remote: None,
            tcp_state: Some(State::Listen),
            receive_queued: waiting,
            send_queued: 0,
        });
        let datagrams = self.udp.all().map(|(address, port, waiting)| SocketInfo {
            local: End::new(address.unwrap_or(any), port),
            remote: None,
            tcp_state: None,
            receive_queued: waiting,
            send_queued: 0,
        });
        listeners.chain(self.tcp.all()).chain(datagrams).collect()
    }

    /// Gives the interface one more address.
    ///
    /// # Errors
    /// It is no address of one host of IPv4, it is there already, or there are as many as there may be.
    pub fn add_address(&mut self, address: Address) -> Result<(), Failure> {
        let own = address.network.address();
        // Neighbours are found by ARP alone, so an address of IPv6 would be reached by nobody.
        if !addresses::is_one_host(&own) || addresses::is_loopback(&own) || matches!(own, IpAddress::Ipv6(_)) {
            return Err(Failure::BadAddress);
        }
        if self.output.addresses.has(&own) {
            return Err(Failure::AddressInUse);
        }
        if self.output.addresses.all().len() >= addresses::MOST {
            return Err(Failure::Exhausted);
        }
        self.output.addresses.push(address);
        self.tcp.renew(&mut self.output);
        self.output.announce();
        Ok(())
    }

    /// Takes an address away. Connections from it end; false: it was not there.
    pub fn remove_address(&mut self, own: &IpAddress) -> bool {
        if !self.output.addresses.has(own) {
            return false;
        }
        self.output.addresses.retain(|address| address.network.address() != *own);
        self.tcp.renew(&mut self.output);
        self.tcp.address_gone();
        true
    }

    /// The interface's addresses.
    pub fn addresses(&self) -> &[Address] {
        self.output.addresses.all()
    }

    /// Adds a route; false: there is no room.
    pub fn add_route(&mut self, route: Route) -> bool {
        self.output.routes.add(route)
    }

    /// Takes a route away; false: it was not there.
    pub fn remove_route(&mut self, route: &Route) -> bool {
        self.output.routes.remove(route)
    }

    /// The routes.
    pub fn routes(&self) -> &[Route] {
        self.output.routes.all()
    }

    /// What was done so far.
    pub fn counters(&self) -> Counters {
        self.output.counters
    }

    /// Sockets of TCP there are, in all states.
    pub fn tcp_sockets(&self) -> usize {
        self.tcp.count()
    }

    /// The interface is another one, or the same after a restart: buffers that were given before are forgotten, and
    /// the link is told where this machine's addresses are once there are buffers again.
    pub fn renew_link(&mut self, hardware: EthernetAddress, mtu: usize, features: Features) {
        self.output.forget_link();
        self.output.hardware = hardware;
        self.output.mtu = mtu;
        self.output.features = features;
        self.tcp.renew(&mut self.output);
        if let Some(dhcp) = &mut self.dhcp {
            dhcp.begin_again(hardware);
        }
    }

    /// Tells the link where this machine's addresses are.
    pub fn announce(&mut self) {
        self.output.announce();
    }

    /// Takes connections at a port (0: one that is free), of one address or of all: the listener and its port.
    ///
    /// # Errors
    /// The address is not one of this machine's, or somebody else listens there.
    pub fn listen(
        &mut self,
        address: Option<IpAddress>,
        port: u16,
        backlog: usize,
    ) -> Result<(ListenerId, u16), Failure> {
        if address.is_some_and(|address| !self.output.addresses.is_here(&address)) {
            return Err(Failure::BadAddress);
        }
        self.tcp.listen(address, port, backlog)
    }

    /// Ends a listener. What waited there is reset.
    pub fn close_listener(&mut self, id: ListenerId) {
        self.tcp.close_listener(id);
    }

    /// The next connection at a listener.
    pub fn poll_accept(&mut self, id: ListenerId, waker: &Waker) -> Poll<Result<ConnectionId, Failure>> {
        self.tcp.poll_accept(id, waker)
    }

    /// Begins to connect.
    ///
    /// # Errors
    /// There is no way there, or no socket, port or memory left.
    pub fn connect(&mut self, remote: End) -> Result<ConnectionId, Failure> {
        let connected = self.tcp.connect(&mut self.output, remote);
        self.output.counters.tcp_connected += u64::from(connected.is_ok());
        connected
    }

    /// Whether a connection that was begun stands.
    pub fn poll_connected(&mut self, id: ConnectionId, waker: &Waker) -> Poll<Result<(), Failure>> {
        self.tcp.poll_connected(id, waker)
    }

    /// Bytes that can be read at once.
    pub fn readable(&self, id: ConnectionId) -> usize {
        self.tcp.readable(id)
    }

    /// Reads what has come; 0 bytes: the other end has finished. `into` is not empty.
    pub fn poll_read(&mut self, id: ConnectionId, into: &mut [u8], waker: &Waker) -> Poll<Result<usize, Failure>> {
        self.tcp.poll_read(id, into, waker)
    }

    /// Writes as much as there is room for, at least one byte of what is not empty.
    pub fn poll_write(&mut self, id: ConnectionId, data: &[u8], waker: &Waker) -> Poll<Result<usize, Failure>> {
        self.tcp.poll_write(id, data, waker)
    }

    /// Nothing more will be written.
    ///
    /// # Errors
    /// The connection has ended.
    pub fn finish(&mut self, id: ConnectionId) -> Result<(), Failure> {
        self.tcp.finish(id)
    }

    /// Ends a connection at once; the other end is told.
    pub fn abort(&mut self, id: ConnectionId) {
        self.tcp.abort(id);
    }

    /// Its client has no more to do with a connection: what was finished goes on to its end, what was not is reset,
    /// unless the other end has finished.
    pub fn release(&mut self, id: ConnectionId) {
        self.tcp.release(id, self.output.now_ns);
    }

    /// Whether small pieces are sent at once, and after how many seconds of silence the other end is asked whether
    /// it is still there (0: never).
    ///
    /// # Errors
    /// The connection is gone.
    pub fn set_options(&mut self, id: ConnectionId, no_delay: bool, keep_alive_s: u32) -> Result<(), Failure> {
        self.tcp.set_options(id, no_delay, keep_alive_s)
    }

    /// The two ends of a connection: this one first.
    pub fn ends(&self, id: ConnectionId) -> Option<(End, End)> {
        self.tcp.ends(id)
    }
}

/// The port of name servers.
const DNS_PORT: u16 = 53;

/// Whether a packet is an answer of a DHCP server, as far as its ports tell.
fn is_for_dhcp(packet: &[u8]) -> bool {
    let header = IpHeader::read(packet).filter(|header| header.is_version_4() && header.protocol == IpProtocol::Udp);
    header.is_some_and(|header| header.payload(packet).starts_with(&[0, 67, 0, 68]))
}

/// A socket as people see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SocketInfo {
    /// This end.
    pub local: End,
    /// The other end.
    pub remote: Option<End>,
    /// Of TCP: its state, as in RFC 9293.
    pub(crate) tcp_state: Option<State>,
    /// Bytes, or of a listener connections, that wait for the client.
    pub receive_queued: usize,
    /// Bytes that wait to be sent or acknowledged.
    pub send_queued: usize,
}

impl SocketInfo {
    /// Whether it is one of TCP; else it is one of UDP.
    pub fn is_tcp(&self) -> bool {
        self.tcp_state.is_some()
    }

    /// Of TCP: the state in the order of RFC 9293's diagram, from 0 for closed on.
    pub fn state_number(&self) -> u16 {
        match self.tcp_state {
            None | Some(State::Closed) => 0,
            Some(State::Listen) => 1,
            Some(State::SynSent) => 2,
            Some(State::SynReceived) => 3,
            Some(State::Established) => 4,
            Some(State::FinWait1) => 5,
            Some(State::FinWait2) => 6,
            Some(State::CloseWait) => 7,
            Some(State::Closing) => 8,
            Some(State::LastAck) => 9,
            Some(State::TimeWait) => 10,
        }
    }
}

/// Packets from this machine to itself that are taken before others have their turn.
const LOOPED_AT_ONCE: usize = 64;

/// Whether somebody has found a packet's checksums right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Checked {
    Yes,
    No,
}
