//! Wires that lose, duplicate, reorder and corrupt packets, and malformed packets.

mod wire;

use std::cell::Cell;
use std::rc::Rc;
use std::task::Waker;

use net_stack::{End, Limits};
use wire::{Faults, Network, Numbers, address, bytes, hardware, raw};

fn carry_with(faults: Faults, seed: u64) {
    let mut network = Network::new(2);
    let (server, client) = network.pair(80);
    network.faults = faults;
    network.numbers = Numbers::new(seed);
    let data = bytes(150_000);
    assert!(network.carry((0, server), (1, client), &data) == data, "{faults:?}, seed {seed}");
}

#[test]
fn lost_packets_are_retransmitted() {
    for seed in 0..10 {
        carry_with(Faults { lost: 50, ..Faults::default() }, seed);
    }
}

#[test]
fn reordering_and_duplication_are_undone() {
    for seed in 0..10 {
        carry_with(Faults { doubled: 100, slower: 10, ..Faults::default() }, seed);
    }
}

#[test]
fn corruption_is_detected() {
    for seed in 0..10 {
        carry_with(Faults { damaged: 50, ..Faults::default() }, seed);
    }
}

#[test]
fn all_faults_at_once() {
    for seed in 0..10 {
        carry_with(Faults { lost: 20, doubled: 20, damaged: 20, slower: 5 }, seed);
    }
}

/// A SYN to host 0 from an address and port of its own.
fn syn(number: u32, port: u16) -> Vec<u8> {
    let mut frame = Vec::new();
    frame.extend(wire::hardware(0).0);
    frame.extend([2, 0, 0, 0, 1, 1, 0x08, 0x00]);
    let mut ip = vec![0x45, 0, 0, 40, 0, 0, 0, 0, 64, 6, 0, 0, 192, 0, 2, 100 + (number % 100) as u8, 192, 0, 2, 1];
    let sum = !checksum(&ip, 0);
    ip[10..12].copy_from_slice(&sum.to_be_bytes());
    let mut tcp = vec![0; 20];
    tcp[..2].copy_from_slice(&(1024 + (number / 100) as u16).to_be_bytes());
    tcp[2..4].copy_from_slice(&port.to_be_bytes());
    tcp[4..8].copy_from_slice(&number.to_be_bytes());
    tcp[12] = 0x50;
    tcp[13] = 2;
    tcp[14] = 0x10;
    let pseudo = checksum(&ip[12..20], 26);
    let sum = !checksum(&tcp, pseudo);
    tcp[16..18].copy_from_slice(&sum.to_be_bytes());
    frame.extend(ip);
    frame.extend(tcp);
    frame
}

fn checksum(bytes: &[u8], start: u16) -> u16 {
    let mut sum = u32::from(start);
    for pair in bytes.chunks(2) {
        sum += u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0));
    }
    while sum > 0xffff {
        sum = (sum >> 16) + (sum & 0xffff);
    }
    sum as u16
}

#[test]
fn a_syn_flood_leaves_other_connections_alone() {
    let limits = Limits { half_open: 64, ..Limits::default() };
    let mut network = Network::with(2, limits);
    let (server, client) = network.pair(8080);
    let listener = network.listen(0, 80, 16);
    for number in 0..5000 {
        let frame = syn(number, 80);
        network.stacks[0].set_time(network.now_ns);
        network.stacks[0].receive(&frame, false);
        if number % 50 == 0 {
            network.pass_ms(1);
        }
    }
    assert!(network.stacks[0].tcp_sockets() <= 66, "{} sockets", network.stacks[0].tcp_sockets());
    assert!(network.stacks[0].counters().tcp_overflowed > 4000);
    network.connect(1, End::new(address(0), 80)).expect("who is real gets through");
    network.accept(0, listener);
    let data = bytes(100_000);
    assert!(network.carry((1, client), (0, server), &data) == data);
    network.pass_ms(60_000);
    assert!(network.stacks[0].tcp_sockets() <= 3, "{} sockets", network.stacks[0].tcp_sockets());
}

/// A listener reset the handshakes that it gave up, and a client whose SYN-ACKs were lost took that for a refusal; with the
/// next SYN it connects.
#[test]
fn regression_a_handshake_that_is_given_up_is_not_refused() {
    let mut network = Network::new(2);
    let listener = network.listen(0, 80, 16);
    let is_cut = Rc::new(Cell::new(true));
    let lost = Rc::clone(&is_cut);
    network.filter = Some(Box::new(move |from, frame| from != 0 || frame[12..14] != [8, 0] || !lost.get()));
    network.stacks[1].set_time(network.now_ns);
    let client = network.stacks[1].connect(End::new(address(0), 80)).expect("room for a connection");
    // SYNs after 0, 1, 3, 7 and 15 s; 15 s later the handshake is given up, and one second later follows another SYN.
    network.pass_ms(25_000);
    is_cut.set(false);
    network.pass_ms(5_500);
    assert_eq!(network.stacks[0].tcp_sockets(), 0, "it is given up");
    let connected = network.until(10, |network| network.stacks[1].poll_connected(client, Waker::noop()));
    assert_eq!(connected, Some(Ok(())));
    let server = network.accept(0, listener);
    let data = bytes(10_000);
    assert!(network.carry((1, client), (0, server), &data) == data);
}

/// An ARP reply of which the link had damaged a bit silenced a neighbour for a minute: longer than a client waits.
#[test]
fn regression_a_damaged_arp_reply_does_not_silence_a_neighbour() {
    for deceived in [0, 1] {
        let mut network = Network::new(2);
        let (server, client) = network.pair(80);
        let listener = network.listen(0, 81, 4);
        let other = 1 - deceived;
        let mut wrong = hardware(other);
        wrong.0[5] ^= 64;
        let mut arp = [hardware(deceived).0, hardware(other).0].concat();
        arp.extend([8, 6, 0, 1, 8, 0, 6, 4, 0, 2]);
        for (hardware, address) in [(wrong, address(other)), (hardware(deceived), address(deceived))] {
            arp.extend(hardware.0);
            arp.extend(raw::octets(address));
        }
        network.put(deceived, arp.clone());
        network.pass_ms(1);
        let begun_ns = network.now_ns;
        network.connect(1, End::new(address(0), 81)).expect("the neighbour is asked again");
        network.accept(0, listener);
        assert!(network.now_ns - begun_ns < 10_000_000_000, "{} ns", network.now_ns - begun_ns);
        // The same in the middle of a connection.
        network.put(deceived, arp);
        network.pass_ms(1);
        let data = bytes(10_000);
        assert!(network.carry((1, client), (0, server), &data) == data);
        assert!(network.now_ns - begun_ns < 20_000_000_000, "{} ns", network.now_ns - begun_ns);
    }
}

#[test]
fn malformed_packets_do_no_harm() {
    let mut network = Network::new(2);
    let (server, client) = network.pair(80);
    network.listen(0, 81, 4);
    network.stacks[0].udp_bind(None, 53).expect("a port");
    network.stacks[0].set_dhcp(true);
    let mut numbers = Numbers::new(11);
    for round in 0..30_000u32 {
        let mut frame = syn(round, 81);
        let length = numbers.next() as usize % (frame.len() + 20);
        frame.resize(length, numbers.next() as u8);
        for _ in 0..numbers.next() % 4 {
            if let Some(place) = frame.len().checked_sub(1) {
                let at = numbers.next() as usize % (place + 1);
                frame[at] = numbers.next() as u8;
            }
        }
        network.stacks[0].set_time(network.now_ns);
        network.stacks[0].receive(&frame, numbers.next().is_multiple_of(2));
        if round % 100 == 0 {
            network.pass_ms(1);
        }
    }
    let data = bytes(100_000);
    assert!(network.carry((1, client), (0, server), &data) == data);
}

#[test]
fn the_cost_per_packet_is_independent_of_connections() {
    let limits = Limits { connections: 20_000, window_bytes: 4096, ..Limits::default() };
    let mut network = Network::with(2, limits);
    let listener = network.listen(0, 80, 4096);
    let mut made = Vec::new();
    for _ in 0..10_000 {
        network.stacks[1].set_time(network.now_ns);
        made.push(network.stacks[1].connect(End::new(address(0), 80)).expect("room"));
        if made.len() % 100 == 0 {
            network.pass_ms(2);
            while let std::task::Poll::Ready(Ok(_)) = network.stacks[0].poll_accept(listener, std::task::Waker::noop())
            {
            }
        }
    }
    network.pass_ms(2000);
    assert_eq!(network.stacks[0].tcp_sockets(), 10_000);
    let before = (network.stacks[0].counters(), network.packets);
    let _ = network.try_write(1, made[5000], &[7; 1000]);
    network.pass_ms(1000);
    let after = (network.stacks[0].counters(), network.packets);
    let (looked_at, packets) = (after.0.tcp_looked_at - before.0.tcp_looked_at, after.1 - before.1);
    assert!(packets >= 2 && looked_at <= 3 * packets, "{looked_at} sockets for {packets} packets");
}

#[test]
fn a_reader_that_does_not_read_holds_no_more_than_the_buffers() {
    let mut network = Network::new(2);
    let (server, client) = network.pair(80);
    let mut sent = 0;
    network.until(30, |network| -> std::task::Poll<()> {
        while let std::task::Poll::Ready(Ok(count)) = network.try_write(0, server, &[1; 10_000]) {
            sent += count;
        }
        std::task::Poll::Pending
    });
    // The RTT is 200 us, for which the send buffer is only a little larger than usual.
    assert!(sent <= 3 * (64 << 10), "{sent} bytes");
    let mut arrived = 0;
    network.until(60, |network| {
        while let std::task::Poll::Ready(Ok(bytes)) = network.try_read(1, client, 10_000) {
            arrived += bytes.len();
        }
        if arrived >= sent { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
    });
    assert_eq!(arrived, sent);
}
