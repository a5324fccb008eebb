//! The network stack: packets and time in, packets and results out.

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

/// Configuration of a stack.
#[derive(Clone, Copy, Debug)]
pub struct Configuration {
    /// Hardware address of the interface.
    pub hardware: EthernetAddress,
    /// MTU, in bytes.
    pub mtu: usize,
    /// Offloads of the interface.
    pub features: Features,
    /// Resource limits.
    pub limits: Limits,
    /// A secret seed for the random number generator.
    pub seed: [u8; 32],
}

/// A network stack over one interface. `B` is a packet buffer.
pub struct Stack<B> {
    pub(crate) output: Output<B>,
    pub(crate) tcp: Tcp,
    pub(crate) udp: Udp,
    pub(crate) echoes: Echoes,
    pub(crate) names: Names,
    pub(crate) discovery: Discovery,
    pub(crate) fragments: Fragments,
    /// Limits the rate of errors sent.
    pub(crate) errors: ErrorLimit,
    pub(crate) dhcp: Option<Dhcp>,
    /// The DHCP lease.
    lease: Option<Lease>,
}

impl<B: Buffer> Stack<B> {
    /// Creates a stack without addresses.
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

    /// Sets the time, in nanoseconds of a monotonic clock. To be called before any other operation.
    pub fn set_time(&mut self, now_ns: u64) {
        self.output.now_ns = self.output.now_ns.max(now_ns);
    }

    /// Hands in an empty transmit buffer of at least the MTU plus 14 bytes.
    pub fn give(&mut self, buffer: B) {
        self.output.give(buffer);
    }

    /// Returns the number of empty buffers that the stack holds.
    pub fn free_buffers(&self) -> usize {
        self.output.free_buffers()
    }

    /// Takes the next packet to transmit.
    pub fn take(&mut self) -> Option<Outgoing<B>> {
        self.output.take()
    }

    /// Returns whether [`Stack::take`] has a packet.
    pub fn has_ready(&self) -> bool {
        self.output.has_ready()
    }

    /// Returns whether [`Stack::serve`] has pending work, and room to do it.
    pub fn has_work(&self) -> bool {
        self.output.has_loopback() || self.tcp.is_dirty() && self.output.has_room()
    }

    /// Returns the latest time at which [`Stack::serve`] must be called, in nanoseconds.
    pub fn next_time_ns(&mut self) -> Option<u64> {
        let now_ns = self.output.now_ns;
        let names = self.names.next_time_ns();
        let dhcp = self.dhcp.as_ref().and_then(Dhcp::next_time_ns).map(|time_ns| match self.output.has_room() {
            true => time_ns,
            // Nothing can be sent until a buffer is returned.
            false => time_ns.max(now_ns + 10_000_000),
        });
        let discovery = self.discovery.next_time_ns(&self.output);
        let all = [self.tcp.next_time_ns(), self.output.next_time_ns(), names, dhcp, discovery];
        all.into_iter().chain([self.fragments.next_time_ns()]).flatten().min()
    }

    /// Sets the task that is woken when [`Stack::serve`] should be called before that time.
    pub fn set_worker(&mut self, worker: &Waker) {
        self.tcp.set_worker(worker);
    }

    /// Runs expired timers, and processes loopback packets.
    pub fn serve(&mut self) {
        for packet in self.output.serve() {
            // Tasks that wait for a reply to it need not wait any longer.
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
        // Loopback packets are processed immediately; the packets that they cause wait for the next call, or two local
        // sockets could loop forever.
        let mut left = MAX_LOOPBACK_AT_ONCE;
        while let Some(packet) = self.output.take_loopback() {
            self.receive_ip(&packet, Checked::Yes);
            left -= 1;
            if left == 0 {
                break;
            }
        }
    }

    /// Enables or disables DHCP; disabling it gives up the lease.
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

    /// Returns whether DHCP is enabled.
    pub fn has_dhcp(&self) -> bool {
        self.dhcp.is_some()
    }

    /// Replaces the lease.
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
            // The old lease's name servers may be unreachable from the new network; kept if others were set meanwhile.
            if self.names.servers() == old.name_servers {
                self.names.set_servers(&[]);
            }
        }
        let Some(lease) = new else { return };
        if !is_same {
            // A static route does as well.
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

    /// Applies the changes of neighbour discovery.
    pub(crate) fn change_addresses(&mut self, changes: Vec<discovery::Change>) {
        for change in changes {
            match change {
                discovery::Change::Use(address) => {
                    if self.output.addresses.all().len() < addresses::MAX_ADDRESSES {
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

    /// Enables or disables IPv6 on the interface: a link-local address, and those that routers advertise.
    pub fn set_version_6(&mut self, is_on: bool) {
        match (is_on, self.discovery.is_on()) {
            (true, false) => self.discovery.start(self.output.hardware),
            (false, true) => self.forget_own_addresses(),
            _ => return,
        }
        self.tcp.wake_worker();
    }

    /// Returns whether IPv6 autoconfiguration is enabled.
    pub fn has_version_6(&self) -> bool {
        self.discovery.is_on()
    }

    /// Drops autoconfigured addresses and state learnt from routers.
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

    /// Returns whether a socket may be bound to an address: it is assigned or tentative.
    fn may_bind_to(&self, address: &IpAddress) -> bool {
        self.output.addresses.is_local(address) || self.discovery.is_tentative(address)
    }

    /// Returns the name servers.
    pub fn name_servers(&self) -> &[IpAddress] {
        self.names.servers()
    }

    /// Sets the name servers: four at most.
    pub fn set_name_servers(&mut self, servers: &[IpAddress]) {
        self.names.set_servers(servers);
    }

    /// Starts to resolve a name to addresses of one version of IP. The query must be polled to completion or released.
    ///
    /// # Errors
    ///
    /// The name is invalid, or there are too many queries.
    pub fn resolve(&mut self, name: &str, is_version_6: bool) -> Result<NameQuery, Failure> {
        let query = self.names.ask(&mut self.tcp, &self.udp, self.output.now_ns, name, is_version_6);
        self.tcp.wake_worker();
        query
    }

    /// Polls for the result, which ends the query.
    pub fn poll_resolved(&mut self, query: &NameQuery, waker: &Waker) -> Poll<Result<Vec<IpAddress>, NameFailure>> {
        self.names.poll(query, waker)
    }

    /// Cancels an unfinished query.
    pub fn forget_query(&mut self, query: NameQuery) {
        self.names.forget(&mut self.tcp, self.output.now_ns, query);
    }

    /// Binds a UDP socket to a port (0: any free one), on one address or on all.
    ///
    /// # Errors
    /// The address is not one of this machine's, or the port is in use.
    pub fn udp_bind(&mut self, address: Option<IpAddress>, port: u16) -> Result<(UdpId, u16), Failure> {
        if address.is_some_and(|address| !self.may_bind_to(&address)) {
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
    /// There is no route, or it is too long for one packet.
    pub fn udp_send(&mut self, id: UdpId, remote: End, data: &[u8]) -> Result<(), Failure> {
        let sent = self.udp.send(&mut self.output, id, remote, data);
        self.tcp.wake_worker();
        sent
    }

    /// Receives the next datagram.
    pub fn poll_udp(&mut self, id: UdpId, waker: &Waker) -> Poll<Result<Datagram, Failure>> {
        self.udp.poll_receive(id, waker)
    }

    /// Closes a UDP socket.
    pub fn udp_close(&mut self, id: UdpId) {
        self.udp.close(id);
    }

    /// Sends an echo request. It must be released in the end.
    ///
    /// # Errors
    ///
    /// There is no route, or it is too long for one packet.
    pub fn echo(&mut self, to: IpAddress, bytes: usize, sequence: u16) -> Result<EchoId, Failure> {
        let query = self.echoes.ask(&mut self.output, to, bytes, sequence);
        self.tcp.wake_worker();
        query
    }

    /// Polls for the echo reply.
    pub fn poll_echo(&mut self, id: EchoId, waker: &Waker) -> Poll<Result<Echo, Failure>> {
        self.echoes.poll(id, waker)
    }

    /// Releases an echo request.
    pub fn forget_echo(&mut self, id: EchoId) {
        self.echoes.forget(id);
    }

    /// Returns all sockets, for diagnostics.
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

    /// Adds an address to the interface. An IPv6 address is used a second later, after duplicate address detection.
    ///
    /// # Errors
    ///
    /// Not a unicast address, a duplicate, or the limit is reached.
    pub fn add_address(&mut self, address: Address) -> Result<(), Failure> {
        let own = address.network.address();
        let is_of_many = !addresses::is_one_host(&own) || addresses::is_whole_network(&address.network);
        if is_of_many || addresses::is_loopback(&own) {
            return Err(Failure::BadAddress);
        }
        if self.output.addresses.has(&own) || self.discovery.is_tentative(&own) {
            return Err(Failure::AddressInUse);
        }
        if self.output.addresses.all().len() >= addresses::MAX_ADDRESSES {
            return Err(Failure::Exhausted);
        }
        if matches!(own, IpAddress::Ipv6(_)) {
            self.tcp.wake_worker();
            return if self.discovery.detect_duplicates(address) { Ok(()) } else { Err(Failure::Exhausted) };
        }
        self.output.addresses.push(address);
        self.output.announce();
        Ok(())
    }

    /// Removes an address and drops its connections; returns false if it was not assigned.
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

    /// Adds a route; returns false if there is no room.
    pub fn add_route(&mut self, route: Route) -> bool {
        self.output.routes.add(route)
    }

    /// Removes a route; returns false if there was none.
    pub fn remove_route(&mut self, route: &Route) -> bool {
        self.output.routes.remove(route)
    }

    /// The routes.
    pub fn routes(&self) -> &[Route] {
        self.output.routes.all()
    }

    /// Returns the counters.
    pub fn counters(&self) -> Counters {
        self.output.counters
    }

    /// Returns the number of TCP sockets in all states.
    pub fn tcp_sockets(&self) -> usize {
        self.tcp.count()
    }

    /// Replaces or restarts the interface: previous buffers are dropped, and this machine's addresses are announced
    /// once there are buffers again.
    pub fn renew_link(&mut self, hardware: EthernetAddress, mtu: usize, features: Features) {
        self.output.forget_link();
        let is_other = hardware != self.output.hardware;
        if is_other && self.discovery.is_on() {
            // The addresses were derived from the old hardware address.
            self.forget_own_addresses();
            self.discovery.start(hardware);
        }
        self.discovery.ask_again();
        self.output.hardware = hardware;
        self.output.mtu = mtu;
        self.output.features = features;
        // On the same interface the lease stays valid, and connections from its address continue.
        if let Some(dhcp) = self.dhcp.as_mut().filter(|_| is_other || self.lease.is_none()) {
            dhcp.begin_again(hardware);
        }
    }

    /// Announces this machine's addresses on the link.
    pub fn announce(&mut self) {
        self.output.announce();
    }

    /// Listens at a port (0: any free one), on one address or on all; returns the listener and its port.
    ///
    /// # Errors
    /// The address is not one of this machine's, or the port is in use.
    pub fn listen(
        &mut self,
        address: Option<IpAddress>,
        port: u16,
        backlog: usize,
    ) -> Result<(ListenerId, u16), Failure> {
        if address.is_some_and(|address| !self.may_bind_to(&address)) {
            return Err(Failure::BadAddress);
        }
        self.tcp.listen(address, port, backlog)
    }

    /// Closes a listener. Connections in its backlog are reset.
    pub fn close_listener(&mut self, id: ListenerId) {
        self.tcp.close_listener(id);
    }

    /// Accepts the next connection of a listener.
    pub fn poll_accept(&mut self, id: ListenerId, waker: &Waker) -> Poll<Result<ConnectionId, Failure>> {
        self.tcp.poll_accept(id, waker)
    }

    /// Starts to connect.
    ///
    /// # Errors
    /// There is no route, or no socket, port or memory left.
    pub fn connect(&mut self, remote: End) -> Result<ConnectionId, Failure> {
        let connected = self.tcp.connect(&mut self.output, remote);
        self.output.counters.tcp_connected += u64::from(connected.is_ok());
        connected
    }

    /// Polls whether a connection is established.
    pub fn poll_connected(&mut self, id: ConnectionId, waker: &Waker) -> Poll<Result<(), Failure>> {
        self.tcp.poll_connected(id, waker)
    }

    /// Returns the number of bytes that can be read without blocking.
    pub fn readable(&self, id: ConnectionId) -> usize {
        self.tcp.readable(id)
    }

    /// Reads received data; 0 bytes mean end of stream. `into` must not be empty.
    pub fn poll_read(&mut self, id: ConnectionId, into: &mut [u8], waker: &Waker) -> Poll<Result<usize, Failure>> {
        self.tcp.poll_read(id, into, waker)
    }

    /// Writes as much as there is room for: at least one byte if `data` is not empty.
    pub fn poll_write(&mut self, id: ConnectionId, data: &[u8], waker: &Waker) -> Poll<Result<usize, Failure>> {
        self.tcp.poll_write(id, data, waker)
    }

    /// Shuts down the sending direction.
    ///
    /// # Errors
    /// The connection has ended.
    pub fn finish(&mut self, id: ConnectionId) -> Result<(), Failure> {
        self.tcp.finish(id)
    }

    /// Aborts a connection with a reset.
    pub fn abort(&mut self, id: ConnectionId) {
        self.tcp.abort(id);
    }

    /// Releases a client's connection: if it was shut down, it closes in the background; otherwise it is reset,
    /// unless the peer has finished.
    pub fn release(&mut self, id: ConnectionId) {
        self.tcp.release(id, self.output.now_ns);
    }

    /// Sets TCP_NODELAY, and the keep-alive interval in seconds (0: none).
    ///
    /// # Errors
    /// The connection is gone.
    pub fn set_options(&mut self, id: ConnectionId, no_delay: bool, keep_alive_s: u32) -> Result<(), Failure> {
        self.tcp.set_options(id, no_delay, keep_alive_s, self.output.now_ns)
    }

    /// Returns the ends of a connection: the local one first.
    pub fn ends(&self, id: ConnectionId) -> Option<(End, End)> {
        self.tcp.ends(id)
    }
}

/// Maximum loopback packets processed per call.
const MAX_LOOPBACK_AT_ONCE: usize = 64;
