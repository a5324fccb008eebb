//! Stacks on one simulated wire with virtual time: no real delays, and reproducible by seed.
#![allow(dead_code)]

pub mod card;
pub mod peer;
pub mod raw;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::task::{Poll, Waker};

use net_stack::{
    Address, Configuration, ConnectionId, End, EthernetAddress, Failure, Features, IpAddress, IpCidr, Limits,
    ListenerId, Origin, Stack,
};

/// Packet faults.
#[derive(Clone, Copy, Debug, Default)]
pub struct Faults {
    /// Packets lost, per thousand.
    pub lost: u32,
    /// Packets duplicated, per thousand.
    pub doubled: u32,
    /// Packets with one flipped bit, per thousand.
    pub damaged: u32,
    /// Maximum latency as a multiple of the wire's.
    pub slower: u32,
}

/// A seeded random number generator.
pub struct Numbers(u64);

impl Numbers {
    pub fn new(seed: u64) -> Numbers {
        Numbers(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    pub fn happens(&mut self, of_a_thousand: u32) -> bool {
        self.next() % 1000 < u64::from(of_a_thousand)
    }
}

pub const WIRE_NS: u64 = 100_000;
pub const BUFFERS: usize = 512;

/// Called for each packet with its sender; returns `false` to drop it.
pub type Filter = Box<dyn FnMut(usize, &[u8]) -> bool>;

pub struct Network {
    pub now_ns: u64,
    pub stacks: Vec<Stack<Vec<u8>>>,
    pub faults: Faults,
    pub numbers: Numbers,
    /// Packets that crossed the wire.
    pub packets: u64,
    /// Called for each packet in flight; returns `false` to drop it.
    pub filter: Option<Filter>,
    on_the_way: BinaryHeap<Reverse<(u64, u64, usize)>>,
    frames: BTreeMap<u64, Vec<u8>>,
    count: u64,
}

pub fn address(host: usize) -> IpAddress {
    IpAddress::v4(192, 0, 2, host as u8 + 1)
}

/// Returns the link-local address of a host.
pub fn own_of_link(host: usize) -> IpAddress {
    format!("fe80::ff:fe00:{}", host + 1).parse().expect("an address")
}

pub fn hardware(host: usize) -> EthernetAddress {
    EthernetAddress([2, 0, 0, 0, 0, host as u8 + 1])
}

pub fn stack_with(host: usize, limits: Limits, features: Features) -> Stack<Vec<u8>> {
    stack_with_buffers(host, limits, features, 1514)
}

pub fn stack_with_buffers(host: usize, limits: Limits, features: Features, bytes: usize) -> Stack<Vec<u8>> {
    let mut stack =
        Stack::new(Configuration { hardware: hardware(host), mtu: 1500, features, limits, seed: [host as u8 + 1; 32] });
    for _ in 0..BUFFERS {
        stack.give(vec![0; bytes]);
    }
    let network = IpCidr::new(address(host), 24);
    stack.add_address(Address { network, origin: Origin::Set }).expect("a first address");
    stack
}

impl Network {
    pub fn new(hosts: usize) -> Network {
        Network::with(hosts, Limits::default())
    }

    pub fn with(hosts: usize, limits: Limits) -> Network {
        Network {
            now_ns: 1_000_000_000,
            stacks: (0..hosts).map(|host| stack_with(host, limits, Features::default())).collect(),
            faults: Faults::default(),
            numbers: Numbers::new(1),
            packets: 0,
            filter: None,
            on_the_way: BinaryHeap::new(),
            frames: BTreeMap::new(),
            count: 0,
        }
    }

    /// Puts a frame on the wire, for one host.
    pub fn put(&mut self, to: usize, frame: Vec<u8>) {
        let jitter = match self.faults.slower {
            0 => 0,
            times => self.numbers.next() % (WIRE_NS * u64::from(times)),
        };
        self.count += 1;
        self.frames.insert(self.count, frame);
        self.on_the_way.push(Reverse((self.now_ns + WIRE_NS + jitter, self.count, to)));
    }

    fn send(&mut self, from: usize, mut frame: Vec<u8>) {
        self.packets += 1;
        if self.numbers.happens(self.faults.lost) {
            return;
        }
        if let Some(filter) = &mut self.filter
            && !filter(from, &frame)
        {
            return;
        }
        // ARP has no checksum but the link's, so a corrupt message does not arrive.
        let has_checksum = frame[12..14] != [8, 6];
        if self.numbers.happens(self.faults.damaged) && has_checksum {
            let bit = self.numbers.next() as usize % (frame.len() * 8);
            frame[bit / 8] ^= 1 << (bit % 8);
        }
        for to in (0..self.stacks.len()).filter(|to| *to != from) {
            if self.numbers.happens(self.faults.doubled) {
                self.put(to, frame.clone());
            }
            self.put(to, frame.clone());
        }
    }

    /// Serves all hosts until they are idle.
    pub fn serve(&mut self) {
        for host in 0..self.stacks.len() {
            for _ in 0..1000 {
                let stack = &mut self.stacks[host];
                stack.set_time(self.now_ns);
                stack.serve();
                let mut sent = Vec::new();
                while let Some(mut packet) = stack.take() {
                    sent.extend(card::frames(&packet));
                    packet.buffer.fill(0xee);
                    stack.give(packet.buffer);
                }
                let is_done = sent.is_empty() && !stack.has_work();
                for frame in sent {
                    self.send(host, frame);
                }
                if is_done {
                    break;
                }
            }
        }
    }

    /// Advances to the next event, not beyond the limit; returns `false` if there was none.
    pub fn step(&mut self, until_ns: u64) -> bool {
        self.serve();
        let packet = self.on_the_way.peek().map(|Reverse((time_ns, ..))| *time_ns);
        let timer = self.stacks.iter_mut().filter_map(Stack::next_time_ns).min();
        let Some(next) = [packet, timer].into_iter().flatten().min().filter(|next| *next <= until_ns) else {
            self.now_ns = until_ns;
            self.serve();
            return false;
        };
        self.now_ns = self.now_ns.max(next);
        while let Some(Reverse((time_ns, number, to))) = self.on_the_way.peek().copied() {
            if time_ns > self.now_ns {
                break;
            }
            self.on_the_way.pop();
            if let Some(frame) = self.frames.remove(&number) {
                self.stacks[to].set_time(self.now_ns);
                self.stacks[to].receive(&frame, false);
            }
        }
        self.serve();
        true
    }

    /// Advances the time.
    pub fn pass_ms(&mut self, milliseconds: u64) {
        let until_ns = self.now_ns + milliseconds * 1_000_000;
        while self.step(until_ns) {}
    }

    /// Advances the time until something is ready; `None` if it is not within `seconds`.
    pub fn until<T>(&mut self, seconds: u64, mut ready: impl FnMut(&mut Network) -> Poll<T>) -> Option<T> {
        let until_ns = self.now_ns + seconds * 1_000_000_000;
        loop {
            if let Poll::Ready(value) = ready(self) {
                return Some(value);
            }
            if !self.step(until_ns) {
                return match ready(self) {
                    Poll::Ready(value) => Some(value),
                    Poll::Pending => None,
                };
            }
        }
    }

    pub fn listen(&mut self, host: usize, port: u16, backlog: usize) -> ListenerId {
        self.stacks[host].listen(None, port, backlog).expect("a free port").0
    }

    pub fn accept(&mut self, host: usize, listener: ListenerId) -> ConnectionId {
        let accepted = self.until(100, |network| network.stacks[host].poll_accept(listener, Waker::noop()));
        accepted.expect("a connection in time").expect("a connection")
    }

    pub fn connect(&mut self, host: usize, remote: End) -> Result<ConnectionId, Failure> {
        self.stacks[host].set_time(self.now_ns);
        let id = self.stacks[host].connect(remote)?;
        let connected = self.until(200, |network| network.stacks[host].poll_connected(id, Waker::noop()));
        connected.unwrap_or(Err(Failure::TimedOut)).map(|()| id)
    }

    /// Returns a connection from host 1 to host 0: the ends at 0 and at 1.
    pub fn pair(&mut self, port: u16) -> (ConnectionId, ConnectionId) {
        let listener = self.listen(0, port, 16);
        let client = self.connect(1, End::new(address(0), port)).expect("a connection");
        let server = self.accept(0, listener);
        self.stacks[0].close_listener(listener);
        (server, client)
    }

    pub fn try_read(&mut self, host: usize, id: ConnectionId, most: usize) -> Poll<Result<Vec<u8>, Failure>> {
        let mut into = vec![0; most];
        self.stacks[host].poll_read(id, &mut into, Waker::noop()).map_ok(|count| into[..count].to_vec())
    }

    pub fn try_write(&mut self, host: usize, id: ConnectionId, data: &[u8]) -> Poll<Result<usize, Failure>> {
        self.stacks[host].poll_write(id, data, Waker::noop())
    }

    /// Sends bytes from one end to the other and closes; returns the bytes received.
    pub fn carry(&mut self, from: (usize, ConnectionId), to: (usize, ConnectionId), data: &[u8]) -> Vec<u8> {
        let (mut sent, mut arrived, mut finished) = (0, Vec::new(), false);
        let done = self.until(3600, |network| {
            while sent < data.len() {
                match network.try_write(from.0, from.1, &data[sent..]) {
                    Poll::Ready(Ok(count)) => sent += count,
                    Poll::Ready(Err(failure)) => panic!("write: {failure:?} after {sent}"),
                    Poll::Pending => break,
                }
            }
            if sent == data.len() && !finished {
                network.stacks[from.0].finish(from.1).expect("finish");
                finished = true;
            }
            loop {
                match network.try_read(to.0, to.1, 5000) {
                    Poll::Ready(Ok(bytes)) if bytes.is_empty() => return Poll::Ready(()),
                    Poll::Ready(Ok(bytes)) => arrived.extend(bytes),
                    Poll::Ready(Err(failure)) => panic!("read: {failure:?} after {}", arrived.len()),
                    Poll::Pending => return Poll::Pending,
                }
            }
        });
        assert!(done.is_some(), "{} of {} bytes arrived, {sent} sent", arrived.len(), data.len());
        arrived
    }
}

/// Pseudo-random bytes without repetitions.
pub fn bytes(count: usize) -> Vec<u8> {
    let mut numbers = Numbers::new(7);
    (0..count).map(|_| numbers.next() as u8).collect()
}
