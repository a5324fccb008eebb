//! The whole: packets and the time in, packets and answers out.

use core::task::{Poll, Waker};

use smoltcp::wire::{EthernetAddress, EthernetProtocol, IpAddress, IpProtocol};

use crate::addresses::{self, Address};
use crate::checksum;
use crate::counters::Counters;
use crate::ends::{End, Failure};
use crate::output::{Buffer, Features, Outgoing, Output};
use crate::packet::{ETHERNET_BYTES, IpHeader};
use crate::routes::Route;
use crate::tcp::{ConnectionId, Limits, ListenerId, Tcp};

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
}

impl<B: Buffer> Stack<B> {
    /// A stack without addresses.
    pub fn new(configuration: Configuration) -> Stack<B> {
        let Configuration { hardware, mtu, features, limits, seed } = configuration;
        let mut output = Output::new(hardware, mtu, features);
        let tcp = Tcp::new(limits, &mut output, seed);
        Stack { output, tcp }
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
    pub fn next_time_ns(&self) -> Option<u64> {
        [self.tcp.next_time_ns(), self.output.next_time_ns()].into_iter().flatten().min()
    }

    /// Who is woken when [`Stack::serve`] should be called before that time.
    pub fn set_worker(&mut self, worker: &Waker) {
        self.tcp.set_worker(worker);
    }

    /// Does what is due.
    pub fn serve(&mut self) {
        self.output.serve();
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
            EthernetProtocol::Arp => self.output.receive_arp(packet),
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
        if is_false || !is_for_us || (is_for_group && header.protocol == IpProtocol::Tcp) {
            self.output.counters.dropped += 1;
            return;
        }
        self.receive_ip(packet, checked);
    }

    /// Takes a packet whose header is right and which is for this machine.
    fn receive_ip(&mut self, packet: &[u8], checked: Checked) {
        let Some(header) = IpHeader::read(packet) else { return };
        let packet = header.whole(packet);
        if checked == Checked::No && !checksum::is_right(packet, &header) {
            self.output.counters.malformed += 1;
            return;
        }
        match header.protocol {
            IpProtocol::Tcp => self.tcp.receive(&mut self.output, &header, packet),
            _ => self.output.counters.dropped += 1,
        }
    }

    /// Gives the interface one more address.
    ///
    /// # Errors
    /// It is no address of one host, it is there already, or there are as many as there may be.
    pub fn add_address(&mut self, address: Address) -> Result<(), Failure> {
        let own = address.network.address();
        if !addresses::is_one_host(&own) || addresses::is_loopback(&own) {
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

/// Packets from this machine to itself that are taken before others have their turn.
const LOOPED_AT_ONCE: usize = 64;

/// Whether somebody has found a packet's checksums right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Checked {
    Yes,
    No,
}
