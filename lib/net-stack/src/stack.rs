//! The whole: packets and the time in, packets and answers out.

use core::task::{Poll, Waker};

use alloc::vec::Vec;

use smoltcp::wire::{EthernetAddress, IpAddress, IpCidr};

use crate::addresses::{self, Address, Origin};
use crate::counters::Counters;
use crate::dhcp::{Change, Dhcp, Lease};
use crate::discovery::{self, Discovery};
use crate::echo::{Echo, EchoId, Echoes};
use crate::ends::{End, Failure, NameFailure};
use crate::fragments::Fragments;
use crate::icmp::{self, ErrorLimit};
use crate::input::Checked;
use crate::names::{NameQuery, Names};
use crate::output::{Buffer, Features, Outgoing, Output};
use crate::routes::Route;
use crate::socket_info::{Kind, SocketInfo};
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
    pub(crate) output: Output<B>,
    pub(crate) tcp: Tcp,
    pub(crate) udp: Udp,
    pub(crate) echoes: Echoes,
    pub(crate) names: Names,
    pub(crate) discovery: Discovery,
    pub(crate) fragments: Fragments,
    /// How many errors may be sent.
    pub(crate) errors: ErrorLimit,
    pub(crate) dhcp: Option<Dhcp>,
    /// What was lent by DHCP.
    lease: Option<Lease>,
}

impl<B: Buffer> Stack<B> {
    /// A stack without addresses.
    pub fn new(configuration: Configuration) -> Stack<B> {
        let Configuration { hardware, mtu, features, limits, seed } = configuration;
        let output = Output::new(hardware, mtu, features);
        let tcp = Tcp::new(limits, seed);
        Stack {
            output,
            tcp,
            udp: Udp::default(),
            echoes: Echoes::default(),
            names: Names::default(),
            discovery: Discovery::default(),
            fragments: Fragments::default(),
            errors: ErrorLimit::default(),
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
        let names = self.names.next_time_ns();
        let dhcp = self.dhcp.as_ref().and_then(Dhcp::next_time_ns).map(|time_ns| match self.output.has_room() {
            true => time_ns,
            // Nothing can be sent before a buffer comes back.
            false => time_ns.max(now_ns + 10_000_000),
        });
        let discovery = self.discovery.next_time_ns(&self.output);
        let all = [self.tcp.next_time_ns(), self.output.next_time_ns(), names, dhcp, discovery];
        all.into_iter().chain([self.fragments.next_time_ns()]).flatten().min()
    }

    /// Who is woken when [`Stack::serve`] should be called before that time.
    pub fn set_worker(&mut self, worker: &Waker) {
        self.tcp.set_worker(worker);
    }

    /// Does what is due.
    pub fn serve(&mut self) {
        for packet in self.output.serve() {
            // Who waits for an answer to it need not wait any longer.
            if let Some(error) = icmp::not_reached(&packet) {
                self.receive_error(&error);
            }
        }
        if let Some(dhcp) = &mut self.dhcp
            && let Some(change) = dhcp.serve(&mut self.output)
        {
            self.change_lease(change);
        }
        let changes = self.discovery.serve(&mut self.output);
        self.change_addresses(changes);
        self.output.counters.parts_lost += self.fragments.serve(self.output.now_ns);
        self.names.serve(&mut self.tcp, &mut self.output);
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
            let is_of_lease = |route: &Route| route.learnt && matches!(route.gateway, IpAddress::Ipv4(_));
            self.output.routes.retain(|route| !is_of_lease(route));
            if !is_same {
                self.remove_address(&old.network.address());
            }
            // Those of a network that this machine may have left are of no use, unless others were set meanwhile.
            if self.names.servers() == old.name_servers {
                self.names.set_servers(&[]);
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

    /// Does what neighbour discovery brought about.
    pub(crate) fn change_addresses(&mut self, changes: Vec<discovery::Change>) {
        for change in changes {
            match change {
                discovery::Change::Use(address) => {
                    if self.output.addresses.all().len() < addresses::MOST {
                        self.output.addresses.push(address);
                    } else {
                        self.discovery.forget(&address.network.address());
                    }
                }
                discovery::Change::Gone(address) => {
                    self.remove_address(&address);
                }
                discovery::Change::NameServers(servers) if self.names.servers().is_empty() => {
                    self.names.set_servers(&servers);
                }
                discovery::Change::NameServers(_) => {}
            }
        }
    }

    /// Lets the interface have IPv6: an address for the link, and those that routers tell of; or gives them up.
    pub fn set_version_6(&mut self, is_on: bool) {
        match (is_on, self.discovery.is_on()) {
            (true, false) => self.discovery.start(self.output.hardware),
            (false, true) => self.forget_own_addresses(),
            _ => return,
        }
        self.tcp.wake_worker();
    }

    /// Whether the interface makes its own addresses of IPv6.
    pub fn has_version_6(&self) -> bool {
        self.discovery.is_on()
    }

    /// Gives up the addresses that the interface made, and what routers told.
    fn forget_own_addresses(&mut self) {
        self.discovery.stop();
        let is_own = |address: &&Address| matches!(address.origin, Origin::Link | Origin::Router);
        let own: Vec<IpAddress> =
            self.addresses().iter().filter(is_own).map(|address| address.network.address()).collect();
        for address in own {
            self.remove_address(&address);
        }
        let is_told = |route: &Route| route.learnt && matches!(route.gateway, IpAddress::Ipv6(_));
        self.output.routes.retain(|route| !is_told(route));
    }

    /// Whether a socket may be at an address: it is one of this machine's, or about to be.
    fn may_be_at(&self, address: &IpAddress) -> bool {
        self.output.addresses.is_here(address) || self.discovery.is_tried(address)
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
        let asked = self.names.ask(&mut self.tcp, &self.udp, self.output.now_ns, name, is_version_6);
        self.tcp.wake_worker();
        asked
    }

    /// The answer, with which the question is over.
    pub fn poll_resolved(&mut self, query: &NameQuery, waker: &Waker) -> Poll<Result<Vec<IpAddress>, NameFailure>> {
        self.names.poll(query, waker)
    }

    /// Forgets a question that is not over.
    pub fn forget_query(&mut self, query: NameQuery) {
        self.names.forget(&mut self.tcp, self.output.now_ns, query);
    }

    /// Binds a socket of UDP to a port (0: one that is free), of one address or of all.
    ///
    /// # Errors
    /// The address is not one of this machine's, or somebody else has it.
    pub fn udp_bind(&mut self, address: Option<IpAddress>, port: u16) -> Result<(UdpId, u16), Failure> {
        if address.is_some_and(|address| !self.may_be_at(&address)) {
            return Err(Failure::BadAddress);
        }
        let (udp, names) = (&self.udp, &self.names);
        let port = match port {
            0 => self.tcp.free_port(|_, port| !udp.is_taken(address, port) && !names.has_port(port))?,
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
            kind: Kind::Listener,
            receive_queued: waiting,
            send_queued: 0,
        });
        let datagrams = self.udp.all().map(|(address, port, waiting)| SocketInfo {
            local: End::new(address.unwrap_or(any), port),
            remote: None,
            kind: Kind::Datagrams,
            receive_queued: waiting,
            send_queued: 0,
        });
        listeners.chain(self.tcp.all()).chain(datagrams).collect()
    }

    /// Gives the interface one more address. One of IPv6 is used a second later, unless somebody else has it.
    ///
    /// # Errors
    /// It is no address of one host, it is there already, or there are as many as there may be.
    pub fn add_address(&mut self, address: Address) -> Result<(), Failure> {
        let own = address.network.address();
        let is_of_many = !addresses::is_one_host(&own) || addresses::is_whole_network(&address.network);
        if is_of_many || addresses::is_loopback(&own) {
            return Err(Failure::BadAddress);
        }
        if self.output.addresses.has(&own) || self.discovery.is_tried(&own) {
            return Err(Failure::AddressInUse);
        }
        if self.output.addresses.all().len() >= addresses::MOST {
            return Err(Failure::Exhausted);
        }
        if matches!(own, IpAddress::Ipv6(_)) {
            self.tcp.wake_worker();
            return if self.discovery.try_out(address) { Ok(()) } else { Err(Failure::Exhausted) };
        }
        self.output.addresses.push(address);
        self.output.announce();
        Ok(())
    }

    /// Takes an address away. Connections from it end; false: it was not there.
    pub fn remove_address(&mut self, own: &IpAddress) -> bool {
        let was_tried = self.discovery.forget(own);
        if !self.output.addresses.has(own) {
            return was_tried;
        }
        self.output.addresses.retain(|address| address.network.address() != *own);
        self.tcp.address_gone(&self.output);
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
        let is_other = hardware != self.output.hardware;
        if is_other && self.discovery.is_on() {
            // The addresses were made of the other one.
            self.forget_own_addresses();
            self.discovery.start(hardware);
        }
        self.discovery.ask_again();
        self.output.hardware = hardware;
        self.output.mtu = mtu;
        self.output.features = features;
        // To the same interface an address stays lent for its time, and connections from it go on.
        if let Some(dhcp) = self.dhcp.as_mut().filter(|_| is_other || self.lease.is_none()) {
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
        if address.is_some_and(|address| !self.may_be_at(&address)) {
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
        self.tcp.set_options(id, no_delay, keep_alive_s, self.output.now_ns)
    }

    /// The two ends of a connection: this one first.
    pub fn ends(&self, id: ConnectionId) -> Option<(End, End)> {
        self.tcp.ends(id)
    }
}

/// Packets from this machine to itself that are taken before others have their turn.
const LOOPED_AT_ONCE: usize = 64;
