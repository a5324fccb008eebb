//! Interprets bytes as events of a stack: arbitrary frames, segments of established connections, SYNs with any
//! options, messages of all protocols, client calls, time, and a lack of buffers. Nothing panics or leaks, and the
//! final state is the initial one.

use std::task::{Poll, Waker};

use net_stack::{
    Address, Configuration, ConnectionId, End, EthernetAddress, Features, IpAddress, IpCidr, Limits, ListenerId,
    Origin, Stack, UdpId,
};

use crate::raw;

const OWN: EthernetAddress = EthernetAddress([2, 0, 0, 0, 0, 1]);
const OTHER: [u8; 6] = [2, 0, 0, 0, 0, 2];
const BUFFERS: usize = 24;
/// Maximum steps of one run.
const MAX_STEPS: usize = 300;
const PORT: u16 = 80;

/// The input bytes in order; zeros after the last.
struct Bytes<'a>(&'a [u8]);

impl Bytes<'_> {
    fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        *first
    }

    fn word(&mut self) -> u16 {
        u16::from_be_bytes([self.byte(), self.byte()])
    }

    fn several(&mut self, count: usize) -> Vec<u8> {
        (0..count).map(|_| self.byte()).collect()
    }
}

/// State of a connection as the peer sees it.
#[derive(Clone, Copy)]
struct Standing {
    port: u16,
    next: u32,
    acknowledged: u32,
}

struct World {
    stack: Stack<Vec<u8>>,
    now_ns: u64,
    listener: ListenerId,
    socket: UdpId,
    held: Vec<ConnectionId>,
    standing: Vec<Standing>,
    /// Buffers that the interface holds back.
    kept: Vec<Vec<u8>>,
}

fn own(is_version_6: bool) -> IpAddress {
    if is_version_6 { "fe80::ff:fe00:1".parse().expect("an address") } else { IpAddress::v4(192, 0, 2, 1) }
}

fn other(is_version_6: bool) -> IpAddress {
    if is_version_6 { "fe80::ff:fe00:2".parse().expect("an address") } else { IpAddress::v4(192, 0, 2, 2) }
}

fn segment(standing: &Standing, flags: u8, window: u16, options: &[u8], data: &[u8]) -> Vec<u8> {
    let mut segment = standing.port.to_be_bytes().to_vec();
    segment.extend(PORT.to_be_bytes());
    segment.extend(standing.next.to_be_bytes());
    segment.extend(standing.acknowledged.to_be_bytes());
    let options = &options[..options.len() / 4 * 4];
    segment.extend([(5 + options.len() / 4).min(15) as u8 * 16, flags]);
    segment.extend(window.to_be_bytes());
    segment.extend([0; 4]);
    segment.extend(options);
    segment.extend(data);
    segment
}

impl World {
    fn new() -> World {
        let limits = Limits {
            connections: 16,
            buffer_bytes: 256 << 10,
            window_bytes: 8 << 10,
            max_window_bytes: 32 << 10,
            half_open: 16,
            timeout_ms: 20_000,
        };
        let mut stack = Stack::new(Configuration {
            hardware: OWN,
            mtu: 1500,
            features: Features::default(),
            limits,
            seed: [7; 32],
        });
        for _ in 0..BUFFERS {
            stack.give(vec![0; 1514]);
        }
        stack.set_time(1_000_000_000);
        let network = IpCidr::new(own(false), 24);
        stack.add_address(Address { network, origin: Origin::Set }).expect("an address");
        stack.set_version_6(true);
        stack.set_dhcp(true);
        stack.set_name_servers(&[other(false)]);
        let listener = stack.listen(None, PORT, 4).expect("a port").0;
        let socket = stack.udp_bind(None, 53).expect("a port").0;
        let (held, standing, kept) = (Vec::new(), Vec::new(), Vec::new());
        let mut world = World { stack, now_ns: 1_000_000_000, listener, socket, held, standing, kept };
        world.pass(1500);
        let mut arp = [&OWN.0[..], &OTHER, &[8, 6, 0, 1, 8, 0, 6, 4, 0, 2], &OTHER].concat();
        arp.extend([192, 0, 2, 2]);
        arp.extend(OWN.0);
        arp.extend([192, 0, 2, 1]);
        world.put(&arp);
        world.begin(4000, 1000, &[]);
        assert_eq!(world.standing.len(), 1, "the first connection stands");
        world
    }

    fn put(&mut self, frame: &[u8]) {
        self.stack.receive(frame, false);
        self.serve();
    }

    fn put_ip(&mut self, is_version_6: bool, protocol: u8, payload: &[u8]) {
        let frame = raw::ip(OWN.0, OTHER, other(is_version_6), own(is_version_6), protocol, payload);
        self.put(&frame);
    }

    /// Runs expired timers, and takes the sent frames.
    fn serve(&mut self) {
        for _ in 0..100 {
            self.stack.serve();
            while let Some(packet) = self.stack.take() {
                assert!(packet.length <= 1514 && packet.length >= 14, "{} bytes", packet.length);
                let frame = packet.buffer[..packet.length].to_vec();
                self.stack.give(packet.buffer);
                self.note(&frame);
            }
            if !self.stack.has_work() {
                return;
            }
        }
        panic!("it never rests");
    }

    /// Tracks what the stack sends on connections to the peer.
    fn note(&mut self, frame: &[u8]) {
        if frame[12..14] != [8, 0] || frame[23] != 6 || frame[14] != 0x45 {
            return;
        }
        let long = |at: usize| u32::from_be_bytes([frame[at], frame[at + 1], frame[at + 2], frame[at + 3]]);
        let (port, flags) = (u16::from_be_bytes([frame[36], frame[37]]), frame[47]);
        if frame[34..36] != PORT.to_be_bytes() {
            return;
        }
        if flags & 2 != 0 {
            self.standing.retain(|known| known.port != port);
            self.standing.push(Standing { port, next: long(42), acknowledged: long(38).wrapping_add(1) });
        } else if flags & 4 != 0 {
            self.standing.retain(|known| known.port != port);
        } else if let Some(known) = self.standing.iter_mut().find(|known| known.port == port) {
            let bytes = usize::from(u16::from_be_bytes([frame[16], frame[17]])) - 20 - usize::from(frame[46] >> 4) * 4;
            known.next = long(42);
            known.acknowledged = long(38).wrapping_add(bytes as u32 + u32::from(flags & 1));
        }
    }

    fn pass(&mut self, milliseconds: u64) {
        self.serve();
        let until_ns = self.now_ns + milliseconds * 1_000_000;
        let mut left = 10_000;
        while let Some(next_ns) = self.stack.next_time_ns().filter(|next_ns| *next_ns <= until_ns) {
            self.now_ns = self.now_ns.max(next_ns);
            self.stack.set_time(self.now_ns);
            self.serve();
            left -= 1;
            assert!(left > 0, "it is never quiet");
        }
        self.now_ns = until_ns;
        self.stack.set_time(until_ns);
        self.serve();
    }

    /// Opens a connection from the peer.
    fn begin(&mut self, port: u16, sequence: u32, options: &[u8]) {
        let new = Standing { port, next: sequence, acknowledged: 0 };
        self.put_ip(false, 6, &segment(&new, 2, 4000, options, &[]));
        if let Some(known) = self.standing.iter().find(|known| known.port == port).copied() {
            self.put_ip(false, 6, &segment(&known, 16, 4000, &[], &[]));
        }
    }

    /// One step.
    fn step(&mut self, bytes: &mut Bytes) {
        match bytes.byte() % 12 {
            0 => {
                let count = usize::from(bytes.byte());
                let mut frame = bytes.several(count);
                let length = frame.len().min(6);
                frame[..length].copy_from_slice(&OWN.0[..length]);
                self.put(&frame);
            }
            1..=3 => self.segment(bytes),
            4 => {
                let (port, sequence, count) = (4000 + bytes.word() % 32, u32::from(bytes.word()) << 16, bytes.byte());
                let options = bytes.several(usize::from(count % 44));
                self.begin(port, sequence, &options);
            }
            5 => {
                let (kind, count) = (bytes.byte(), bytes.byte());
                let payload = bytes.several(8 + usize::from(count));
                let protocol = [1, 17, 58, 6][usize::from(kind & 3)];
                let long_enough = payload.iter().copied().chain([0; 20]).collect::<Vec<_>>();
                self.put_ip(kind & 4 != 0, protocol, &long_enough);
            }
            6 => {
                let milliseconds = u64::from(bytes.byte()).pow(2);
                self.pass(milliseconds);
            }
            7 => self.fragment(bytes),
            8 => match bytes.byte() % 3 {
                0 => self.kept.extend((0..BUFFERS).filter_map(|_| self.stack.take().map(|packet| packet.buffer))),
                1 => {
                    for buffer in self.kept.drain(..) {
                        self.stack.give(buffer);
                    }
                }
                _ => drop(self.stack.resolve("www.example", bytes.byte() & 1 == 0).map(|query| {
                    self.stack.serve();
                    self.stack.forget_query(query);
                })),
            },
            _ => self.client(bytes),
        }
    }

    /// A nearly valid segment of an established connection.
    fn segment(&mut self, bytes: &mut Bytes) {
        let which = usize::from(bytes.byte());
        let (before, behind, flags, count) = (bytes.byte() as i8, bytes.byte() as i8, bytes.byte(), bytes.byte());
        let mut standing = match self.standing.len() {
            0 => Standing { port: 4000, next: 1, acknowledged: 1 },
            known => self.standing[which % known],
        };
        standing.next = standing.next.wrapping_add_signed(before.into());
        standing.acknowledged = standing.acknowledged.wrapping_add_signed(behind.into());
        let window = u16::from(bytes.byte()) * 64;
        let options = bytes.several(usize::from(count >> 4) * 4);
        let data = vec![count; usize::from(count) * 4];
        self.put_ip(false, 6, &segment(&standing, flags, window, &options, &data));
    }

    /// A fragment.
    fn fragment(&mut self, bytes: &mut Bytes) {
        let (place, count, identifier) = (bytes.word(), bytes.byte(), bytes.byte());
        let payload: Vec<u8> = (0..usize::from(count).max(8)).map(|number| number as u8).collect();
        let mut frame = raw::ip(OWN.0, OTHER, other(false), own(false), 17, &payload);
        frame[18..20].copy_from_slice(&u16::from(identifier).to_be_bytes());
        frame[20..22].copy_from_slice(&(place & 0x3fff).to_be_bytes());
        frame[24..26].fill(0);
        let sum = !raw::sum(&frame[14..34], 0);
        frame[24..26].copy_from_slice(&sum.to_be_bytes());
        self.put(&frame);
    }

    /// A client call.
    fn client(&mut self, bytes: &mut Bytes) {
        let (what, which) = (bytes.byte() % 9, usize::from(bytes.byte()));
        let id = match self.held.len() {
            0 => None,
            count => Some(self.held[which % count]),
        };
        match (what, id) {
            (0 | 1, _) => {
                if let Poll::Ready(Ok(id)) = self.stack.poll_accept(self.listener, Waker::noop()) {
                    self.held.push(id);
                }
            }
            (2, _) => self.held.extend(self.stack.connect(End::new(other(which & 1 == 0), 7))),
            (3, Some(id)) => drop(self.stack.poll_read(id, &mut vec![0; which + 1], Waker::noop())),
            (4 | 5, Some(id)) => drop(self.stack.poll_write(id, &vec![1; which * 16], Waker::noop())),
            (6, Some(id)) => drop(self.stack.finish(id)),
            (7, Some(id)) => self.stack.abort(id),
            (8, Some(id)) => {
                self.stack.release(id);
                self.held.retain(|held| *held != id);
            }
            _ => drop(self.stack.poll_udp(self.socket, Waker::noop())),
        }
        self.serve();
    }

    /// Releases everything and checks for leaks.
    fn end(mut self) {
        for buffer in self.kept.drain(..) {
            self.stack.give(buffer);
        }
        for id in std::mem::take(&mut self.held) {
            self.stack.release(id);
        }
        self.stack.close_listener(self.listener);
        self.stack.set_dhcp(false);
        self.stack.set_version_6(false);
        self.pass(200_000);
        assert_eq!(self.stack.tcp_sockets(), 0, "sockets are left");
        assert_eq!(self.stack.free_buffers(), BUFFERS, "buffers are left");
        assert!(!self.stack.has_ready() && !self.stack.has_work());
    }
}

/// Interprets the bytes.
pub fn run(bytes: &[u8]) {
    let mut world = World::new();
    let mut bytes = Bytes(bytes);
    for _ in 0..MAX_STEPS {
        if bytes.0.is_empty() {
            break;
        }
        world.step(&mut bytes);
        let buffers = world.stack.free_buffers() + world.kept.len();
        assert!(buffers <= BUFFERS, "{buffers} buffers");
        assert!(world.stack.tcp_sockets() <= 16 + 32_768);
    }
    world.end();
}
