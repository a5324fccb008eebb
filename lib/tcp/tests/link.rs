//! Two connections over a simulated link that loses, duplicates, delays and reorders segments: all data arrives intact
//! and in bounded time.

use std::collections::BTreeMap;

use proptest::prelude::*;
use tcp::{Connection, Memory, Options, Path, Reaction, Segment, Seq, Settings, State, Transmit};

const MS: u64 = 1_000_000;

/// Link impairments.
#[derive(Clone, Copy, Debug, Default)]
struct Link {
    delay_us: u64,
    /// Per thousand.
    lost: u64,
    doubled: u64,
    /// Share of segments delayed by up to `late_us` more.
    late: u64,
    late_us: u64,
    /// Bandwidth each way, and queue limit in bytes; 0: unlimited.
    bytes_per_ms: u64,
    queue_bytes: u64,
}

struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn happens(&mut self, of_a_thousand: u64) -> bool {
        self.next() % 1000 < of_a_thousand
    }
}

/// A segment in flight.
#[derive(Clone)]
struct Packet {
    transmit: Transmit,
    payload: Vec<u8>,
}

struct End {
    connection: Connection,
    memory: Memory,
    to_write: Vec<u8>,
    written: usize,
    read: Vec<u8>,
    is_finished: bool,
    retransmitted: u64,
}

const PATH: Path = Path { mss: 1460, burst_bytes: 1460 };

fn settings(first: u32) -> Settings {
    Settings {
        first: Seq(first),
        receive_bytes: 64 << 10,
        max_receive_bytes: 1 << 20,
        send_bytes: 60 << 10,
        max_send_bytes: 1 << 20,
        mss: PATH.mss,
    }
}

impl End {
    fn new(connection: Connection, to_write: &[u8]) -> End {
        End {
            connection,
            memory: Memory::new(16 << 20),
            to_write: to_write.to_vec(),
            written: 0,
            read: Vec::new(),
            is_finished: false,
            retransmitted: 0,
        }
    }

    /// Writes, reads and finishes as far as possible.
    fn use_connection(&mut self) {
        if self.connection.may_write() {
            self.written += self.connection.write(&mut self.memory, &self.to_write[self.written..]);
            if self.written == self.to_write.len() && !self.is_finished {
                self.connection.finish();
                self.is_finished = true;
            }
        }
        let mut bytes = [0; 3000];
        loop {
            match self.connection.read(&mut self.memory, &mut bytes) {
                0 => return,
                count => self.read.extend(&bytes[..count]),
            }
        }
    }

    fn is_done(&self) -> bool {
        let is_over = matches!(self.connection.state(), State::TimeWait | State::Closed);
        self.is_finished && is_over && self.connection.is_peer_finished() && self.connection.readable() == 0
    }
}

fn segment(packet: &Packet) -> Segment<'_> {
    let Transmit { seq, ack, window, is_syn, is_fin, is_reset, options, .. } = packet.transmit;
    Segment { seq, ack, window, is_syn, is_fin, is_reset, options, payload: &packet.payload }
}

struct Run {
    ends: [End; 2],
    link: Link,
    numbers: Numbers,
    on_the_way: BTreeMap<(u64, u64), (usize, Packet)>,
    count: u64,
    now_ns: u64,
    is_sack_hidden: bool,
    /// When the queue of each direction is empty.
    free_ns: [u64; 2],
    packets: u64,
}

impl Run {
    fn new(link: Link, seed: u64, data: [&[u8]; 2]) -> Run {
        let firsts = [u32::MAX - 5000, 77];
        let connect = Connection::connect(settings(firsts[0]), 0);
        let mut run = Run {
            ends: [End::new(connect, data[0]), End::new(Connection::connect(settings(firsts[1]), 0), data[1])],
            link,
            numbers: Numbers(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1),
            on_the_way: BTreeMap::new(),
            count: 0,
            now_ns: MS,
            is_sack_hidden: false,
            free_ns: [0; 2],
            packets: 0,
        };
        // The second end is created by the first SYN.
        let mut syn = run.ends[0].connection.next_transmit(&PATH, run.now_ns).expect("a SYN");
        if run.is_sack_hidden {
            syn.options = Options::default();
        }
        let syn = Packet { transmit: syn, payload: Vec::new() };
        run.ends[1].connection = Connection::accept(settings(firsts[1]), &segment(&syn), run.now_ns);
        run
    }

    fn put(&mut self, to: usize, packet: Packet) {
        let mut delay_us = self.link.delay_us;
        if self.numbers.happens(self.link.late) {
            delay_us += self.numbers.next() % self.link.late_us.max(1);
        }
        let mut start_ns = self.now_ns;
        if self.link.bytes_per_ms > 0 {
            let time_ns = |bytes: u64| bytes * MS / self.link.bytes_per_ms;
            start_ns = start_ns.max(self.free_ns[to]);
            if start_ns - self.now_ns > time_ns(self.link.queue_bytes) {
                return;
            }
            start_ns += time_ns(packet.payload.len() as u64 + 40);
            self.free_ns[to] = start_ns;
        }
        self.count += 1;
        self.on_the_way.insert((start_ns + delay_us * 1000 + 1000, self.count), (to, packet));
    }

    fn send_all(&mut self) {
        for from in 0..2 {
            self.ends[from].use_connection();
            self.ends[from].connection.expire(self.now_ns);
            while let Some(mut transmit) = self.ends[from].connection.next_transmit(&PATH, self.now_ns) {
                let mut payload = vec![0; transmit.payload_bytes];
                self.ends[from].connection.copy_payload(&transmit, &mut payload);
                assert!(payload.len() <= PATH.mss);
                self.ends[from].retransmitted += u64::from(transmit.is_retransmission);
                if self.is_sack_hidden {
                    transmit.options.sack_permitted = false;
                }
                let packet = Packet { transmit, payload };
                self.packets += 1;
                if self.numbers.happens(self.link.lost) {
                    continue;
                }
                if self.numbers.happens(self.link.doubled) {
                    self.put(1 - from, packet.clone());
                }
                self.put(1 - from, packet);
            }
            self.ends[from].use_connection();
        }
    }

    /// Runs until both ends are done; returns the time that took.
    fn finish(&mut self, limit_s: u64) -> u64 {
        let limit_ns = limit_s * 1000 * MS;
        while !self.ends.iter().all(End::is_done) {
            self.send_all();
            let packet = self.on_the_way.keys().next().map(|key| key.0);
            let timers = self.ends.iter().filter_map(|end| end.connection.next_time_ns());
            let next_ns = timers.chain(packet).min().unwrap_or_else(|| panic!("stalled: {}", self.state()));
            self.now_ns = self.now_ns.max(next_ns);
            assert!(self.now_ns < limit_ns, "it takes too long: {}", self.state());
            while let Some(entry) = self.on_the_way.first_entry().filter(|entry| entry.key().0 <= self.now_ns) {
                let (to, packet) = entry.remove();
                let end = &mut self.ends[to];
                match end.connection.receive(&mut end.memory, &segment(&packet), self.now_ns) {
                    Reaction::Challenge => end.connection.ack_now(),
                    Reaction::None | Reaction::Refuse => {}
                }
            }
        }
        self.now_ns
    }

    fn state(&self) -> String {
        let all = self.ends.iter().map(|end| {
            let state = end.connection.state();
            format!("{state:?}, {} of {} written, {} read", end.written, end.to_write.len(), end.read.len())
        });
        all.collect::<Vec<_>>().join("; ")
    }

    fn check(&mut self) {
        assert!(self.ends[0].read == self.ends[1].to_write && self.ends[1].read == self.ends[0].to_write);
        for end in &mut self.ends {
            end.connection.drop_all(&mut end.memory);
            assert_eq!(end.memory.used_bytes(), 0);
        }
    }
}

fn bytes(count: usize) -> Vec<u8> {
    let mut numbers = Numbers(7);
    (0..count).map(|_| numbers.next() as u8).collect()
}

const TRANSFER_BYTES: usize = 3 << 20;

/// Median time of a one-way transfer of 3 MiB, in milliseconds.
fn median_ms(link: Link) -> u64 {
    let data = bytes(TRANSFER_BYTES);
    let mut times: Vec<u64> = (1..=9)
        .map(|seed| {
            let mut run = Run::new(link, seed, [&[], &data]);
            let took_ns = run.finish(600);
            run.check();
            took_ns / MS
        })
        .collect();
    times.sort_unstable();
    println!("{link:?}: {times:?} ms");
    times[times.len() / 2]
}

#[test]
fn a_long_path_costs_few_round_trips() {
    let link = Link { delay_us: 50_000, ..Link::default() };
    let took_ms = median_ms(link);
    assert!(took_ms < 1500, "{took_ms} ms for 3 MiB over 100 ms");
}

#[test]
fn losses_on_a_short_path_are_repaired_without_timeouts() {
    let link = Link { delay_us: 100, lost: 50, ..Link::default() };
    let took_ms = median_ms(link);
    assert!(took_ms < 600, "{took_ms} ms for 3 MiB with 5 % lost");
}

#[test]
fn reordering_costs_little() {
    let link = Link { delay_us: 100, late: 250, late_us: 10_000, ..Link::default() };
    let took_ms = median_ms(link);
    assert!(took_ms < 2000, "{took_ms} ms for 3 MiB with 25 % reordered");
}

/// Reordering beyond the RTT is not mistaken for loss for long.
#[test]
fn reordering_on_a_short_path_does_not_close_the_window() {
    let link = Link { delay_us: 60, late: 250, late_us: 5000, ..Link::default() };
    let took_ms = median_ms(link);
    assert!(took_ms < 80, "{took_ms} ms for 3 MiB with 25 % reordered");
}

#[test]
fn loss_and_reordering_on_a_long_path_cost_a_few_round_trips() {
    let link = Link { delay_us: 50_000, lost: 50, late: 250, late_us: 5_000, ..Link::default() };
    let took_ms = median_ms(link);
    assert!(took_ms < 5000, "{took_ms} ms for 3 MiB");
}

#[test]
fn a_bottleneck_is_used_without_flooding_its_queue() {
    let data = bytes(TRANSFER_BYTES);
    for (bytes_per_ms, queue_bytes, delay_us) in
        [(1250, 64_000, 20_000), (1250, 20_000, 20_000), (12_500, 300_000, 5000), (200, 10_000, 50_000)]
    {
        let link = Link { delay_us, bytes_per_ms, queue_bytes, ..Link::default() };
        let mut run = Run::new(link, 1, [&[], &data]);
        let took_ms = run.finish(600) / MS;
        let min_ms = TRANSFER_BYTES as u64 / bytes_per_ms;
        let retransmitted = run.ends[1].retransmitted;
        println!("{link:?}: {took_ms} ms of {min_ms}, {retransmitted} of 2155 segments retransmitted");
        assert!(took_ms < min_ms * 3 / 2 + 500, "{took_ms} ms, {min_ms} is the minimum");
        assert!(retransmitted < 215, "{retransmitted} of 2155 segments retransmitted");
        run.check();
    }
}

#[test]
fn nothing_is_retransmitted_on_a_good_link() {
    let data = bytes(1_000_000);
    let mut run = Run::new(Link { delay_us: 1000, ..Link::default() }, 1, [&data, &data]);
    run.finish(10);
    assert_eq!([run.ends[0].retransmitted, run.ends[1].retransmitted], [0, 0]);
    run.check();
}

#[test]
fn a_peer_without_sack_is_served() {
    let data = bytes(300_000);
    let link = Link { delay_us: 2000, lost: 20, doubled: 10, late: 20, late_us: 3000, ..Link::default() };
    let mut run = Run::new(link, 3, [&data, &data]);
    run.is_sack_hidden = true;
    for end in 0..2 {
        run.ends[end].connection = Connection::connect(settings(end as u32), 0);
    }
    // Simultaneous open, without SACK on either side.
    run.finish(300);
    run.check();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn what_is_written_is_read(
        seed in 1u64..1 << 40,
        lost in 0u64..200,
        doubled in 0u64..200,
        late in 0u64..500,
        late_us in 0u64..50_000,
        delay_us in 0u64..50_000,
        sizes in (0usize..200_000, 0usize..200_000),
    ) {
        let link = Link { delay_us, lost, doubled, late, late_us, ..Link::default() };
        let mut run = Run::new(link, seed, [&bytes(sizes.0), &bytes(sizes.1)]);
        run.finish(3600);
        run.check();
    }
}
