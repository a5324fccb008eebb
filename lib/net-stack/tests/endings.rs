//! Closing, aborting and TIME-WAIT.

mod wire;

use std::task::{Poll, Waker};

use net_stack::{ConnectionId, End, Failure, Features, Limits};
use wire::peer::{ACK, FIN, Peer, RST, SYN};
use wire::{Network, address, bytes};

/// Send buffer of an end in bytes; its receive buffer is 64 KiB.
const SEND_BYTES: usize = 42 * 1460;

/// Reads all available data; returns whether the end was reached.
fn read_all(network: &mut Network, host: usize, id: ConnectionId, into: &mut Vec<u8>) -> bool {
    loop {
        match network.try_read(host, id, 5000) {
            Poll::Ready(Ok(bytes)) if bytes.is_empty() => return true,
            Poll::Ready(Ok(bytes)) => into.extend(bytes),
            Poll::Ready(Err(failure)) => panic!("{failure:?}"),
            Poll::Pending => return false,
        }
    }
}

fn retransmitted(network: &Network) -> u64 {
    network.stacks.iter().map(|stack| stack.counters().tcp_retransmitted).sum()
}

/// One end closes immediately; the other sends `count` more bytes and then closes; they are read slowly or
/// immediately.
fn half_closed(first: usize, count: usize, pause_ms: u64) {
    let mut network = Network::new(2);
    let (server, client) = network.pair(80);
    let (ended, open) = if first == 0 { (server, client) } else { (client, server) };
    let other = 1 - first;
    network.stacks[first].finish(ended).expect("finish");
    network.pass_ms(5);
    let begun_ns = network.now_ns;
    let data = bytes(count);
    let (mut sent, mut finished, mut arrived) = (0, false, Vec::new());
    for _ in 0..100_000 {
        if sent < data.len()
            && let Poll::Ready(Ok(count)) = network.try_write(other, open, &data[sent..])
        {
            sent += count;
        }
        if sent == data.len() && !finished {
            network.stacks[other].finish(open).expect("finish");
            assert_eq!(network.try_write(other, open, b"x"), Poll::Ready(Err(Failure::Closed)));
            finished = true;
        }
        network.pass_ms(pause_ms);
        if read_all(&mut network, first, ended, &mut arrived) {
            break;
        }
    }
    assert!(arrived == data, "{} of {} bytes", arrived.len(), data.len());
    assert_eq!(retransmitted(&network), 0, "{first}, {count} bytes, {pause_ms} ms");
    let took_ms = (network.now_ns - begun_ns) / 1_000_000;
    assert!(took_ms <= 20 + pause_ms * (10 + count as u64 / 10_000), "{took_ms} ms");
    network.stacks[first].release(ended);
    network.stacks[other].release(open);
    network.pass_ms(1000);
    let packets = network.packets;
    network.pass_ms(100_000);
    assert_eq!(network.packets, packets, "nothing more is said");
    assert_eq!((network.stacks[0].tcp_sockets(), network.stacks[1].tcp_sockets()), (0, 0));
}

#[test]
fn a_half_closed_connection_still_receives() {
    for first in [0, 1] {
        for count in [0, 1, 1000, 70_000, 300_000] {
            for pause_ms in [1, 50, 400] {
                half_closed(first, count, pause_ms);
            }
        }
    }
}

#[test]
fn what_a_slow_reader_has_room_for_gets_through_after_both_have_finished() {
    for pause_ms in [1, 100, 1000, 5000] {
        let mut network = Network::new(2);
        let (server, client) = network.pair(80);
        network.stacks[1].finish(client).expect("finish");
        network.pass_ms(5);
        // More than the other end's window, less than this end's.
        let data = bytes((64 << 10) + SEND_BYTES - 1000);
        let mut sent = 0;
        for _ in 0..10 {
            if let Poll::Ready(Ok(count)) = network.try_write(0, server, &data[sent..]) {
                sent += count;
            }
            network.pass_ms(50);
        }
        assert_eq!(sent, data.len());
        network.stacks[0].finish(server).expect("finish");
        network.stacks[0].release(server);
        network.pass_ms(pause_ms);
        let begun_ns = network.now_ns;
        let mut arrived = Vec::new();
        let end = network.until(60, |network| match read_all(network, 1, client, &mut arrived) {
            true => Poll::Ready(()),
            false => Poll::Pending,
        });
        assert!(end.is_some() && arrived == data, "{} bytes", arrived.len());
        let took_ms = (network.now_ns - begun_ns) / 1_000_000;
        assert!(took_ms < 50, "{took_ms} ms after {pause_ms} ms");
    }
}

const PORTS: (u16, u16) = (4000, 80);

#[test]
fn a_retransmitted_fin_is_acknowledged_and_the_ports_can_be_reused() {
    let mut peer = Peer::new();
    let listener = peer.network.listen(0, 80, 4);
    let first = peer.connect(PORTS, 1000);
    let server = peer.network.accept(0, listener);
    peer.network.stacks[0].finish(server).expect("finish");
    peer.network.pass_ms(1);
    let finish = peer.one();
    assert_eq!((finish.flags, finish.sequence), (FIN | ACK, first));
    peer.send(PORTS, 1001, first + 1, FIN | ACK, &[]);
    peer.network.stacks[0].release(server);
    peer.network.pass_ms(50);
    assert_eq!(peer.one().acknowledged, 1002);
    assert_eq!(peer.network.stacks[0].tcp_sockets(), 1, "the ends wait");
    peer.send(PORTS, 1001, first + 1, FIN | ACK, &[]);
    assert_eq!(peer.one().acknowledged, 1002);
    // A new connection between the same ends starts immediately, undisturbed by the TIME-WAIT entry of the old one.
    let again = peer.connect(PORTS, 500_000);
    let server = peer.network.accept(0, listener);
    peer.send(PORTS, 1001, first + 1, ACK, b"old");
    peer.send(PORTS, 500_001, again, ACK, b"new");
    assert_eq!(peer.network.try_read(0, server, 10), Poll::Ready(Ok(b"new".to_vec())));
    peer.network.stacks[0].release(server);
    peer.network.pass_ms(60_000);
    assert_eq!(peer.network.stacks[0].tcp_sockets(), 0);
}

#[test]
fn a_reset_needs_the_exact_sequence_number() {
    let mut peer = Peer::new();
    let listener = peer.network.listen(0, 80, 4);
    let first = peer.connect(PORTS, 1000);
    let server = peer.network.accept(0, listener);
    peer.send(PORTS, 1001, first, ACK, b"some bytes");
    peer.network.pass_ms(50);
    peer.take();
    for guess in [0, 1000, 1001, 1010, 1011 + 0x1_0000] {
        peer.send(PORTS, guess, first, RST, &[]);
        assert_eq!(peer.take(), [], "{guess} is not in the window");
    }
    for guess in [1012, 2000, 1001 + 0x8000] {
        peer.send(PORTS, guess, first, RST, &[]);
        let challenge = peer.one();
        assert_eq!((challenge.flags, challenge.sequence, challenge.acknowledged), (ACK, first, 1011), "{guess}");
        assert!(challenge.window >= 60_000, "a challenge closes no window");
    }
    assert_eq!(peer.network.try_read(0, server, 10), Poll::Ready(Ok(b"some bytes".to_vec())));
    for guess in 0..1000 {
        peer.send(PORTS, 5000 + guess, first, RST, &[]);
    }
    assert!(peer.take().len() < 200, "not each of many is answered");
    peer.send(PORTS, 1011, first, RST, &[]);
    assert_eq!(peer.network.try_read(0, server, 10), Poll::Ready(Err(Failure::Reset)));
    assert_eq!(peer.take(), []);
    peer.network.stacks[0].release(server);
    assert_eq!(peer.network.stacks[0].tcp_sockets(), 0);
    // The connection is gone, so this is answered with a reset; a reset is not.
    peer.send(PORTS, 1011, first, ACK, b"x");
    assert_eq!((peer.one().flags & RST, peer.network.stacks[0].counters().tcp_reset), (RST, 1));
    peer.send(PORTS, 1011, first, RST, &[]);
    assert_eq!(peer.take(), []);
}

#[test]
fn a_peer_that_has_forgotten_the_connection_can_begin_again() {
    let mut peer = Peer::new();
    let listener = peer.network.listen(0, 80, 4);
    let first = peer.connect(PORTS, 1000);
    let server = peer.network.accept(0, listener);
    peer.take();
    // The peer restarted and happens to reuse the port: the challenge ACK makes it answer with a reset.
    peer.send(PORTS, 77_000, 0, SYN, &[]);
    let challenge = peer.one();
    assert_eq!((challenge.flags, challenge.sequence, challenge.acknowledged), (ACK, first, 1001));
    peer.send(PORTS, challenge.acknowledged, 0, RST, &[]);
    assert_eq!(peer.network.try_read(0, server, 10), Poll::Ready(Err(Failure::Reset)));
    peer.connect(PORTS, 77_000);
}

#[test]
fn simultaneous_open_and_close() {
    let mut peer = Peer::new();
    let client = peer.network.stacks[0].connect(End::new(address(1), 4000)).expect("it is begun");
    peer.network.pass_ms(1);
    let syn = peer.one();
    let ports = (4000, syn.port);
    peer.send(ports, 9000, 0, SYN, &[]);
    let both = peer.one();
    assert_eq!((both.flags, both.sequence, both.acknowledged), (SYN | ACK, syn.sequence, 9001));
    peer.send(ports, 9001, syn.sequence + 1, ACK, &[]);
    assert_eq!(peer.network.stacks[0].poll_connected(client, Waker::noop()), Poll::Ready(Ok(())));
    peer.network.stacks[0].finish(client).expect("finish");
    peer.network.pass_ms(1);
    let finish = peer.one();
    peer.send(ports, 9001, finish.sequence, FIN | ACK, &[]);
    peer.send(ports, 9002, finish.sequence + 1, ACK, &[]);
    peer.network.pass_ms(50);
    peer.network.stacks[0].release(client);
    peer.network.pass_ms(60_000);
    assert_eq!(peer.network.stacks[0].tcp_sockets(), 0);
}

#[test]
fn an_end_behind_more_data_than_there_is_room_for_loses_none_of_it() {
    const WINDOW: usize = 8 << 10;
    let mut peer = Peer::with(Network::with(1, Limits { window_bytes: WINDOW, ..Limits::default() }));
    let listener = peer.network.listen(0, 80, 4);
    let (ports, sequence) = ((50_000, 80), 1000u32);
    let first = peer.connect(ports, sequence);
    let server = peer.network.accept(0, listener);
    let data = bytes(WINDOW + 400);
    let at = |from: usize| sequence.wrapping_add(1 + from as u32);
    for from in (0..7000).step_by(1000) {
        peer.send(ports, at(from), first, ACK, &data[from..from + 1000]);
    }
    peer.send(ports, at(7000), first, ACK | FIN, &data[7000..]);
    let mut found = Vec::new();
    assert!(!read_all(&mut peer.network, 0, server, &mut found), "the end is not there yet");
    assert_eq!(found.len(), WINDOW, "as much as there was room for");
    peer.send(ports, at(WINDOW), first, ACK | FIN, &data[WINDOW..]);
    assert!(read_all(&mut peer.network, 0, server, &mut found) && found == data);
}

#[test]
fn an_abort_ends_a_connection_in_every_state() {
    for what in ["being made", "whole", "finished here", "finished there", "finished at both ends"] {
        let mut network = Network::new(2);
        let listener = network.listen(0, 80, 4);
        let client = network.stacks[1].connect(End::new(address(0), 80)).expect("it is begun");
        if what != "being made" {
            network.pass_ms(10);
            let server = network.accept(0, listener);
            if matches!(what, "finished here" | "finished at both ends") {
                network.stacks[1].finish(client).expect("finish");
            }
            if matches!(what, "finished there" | "finished at both ends") {
                network.stacks[0].finish(server).expect("finish");
            }
            network.pass_ms(100);
            network.stacks[0].release(server);
        }
        network.stacks[1].abort(client);
        network.stacks[1].release(client);
        network.stacks[0].close_listener(listener);
        network.pass_ms(100_000);
        assert_eq!((network.stacks[0].tcp_sockets(), network.stacks[1].tcp_sockets()), (0, 0), "{what}");
        assert_eq!(network.stacks[1].free_buffers(), wire::BUFFERS, "{what}");
        assert_eq!(network.stacks[1].next_time_ns(), None, "{what}");
    }
}

#[test]
fn lost_fins_are_retransmitted() {
    for seed in 0..20 {
        let mut network = Network::new(2);
        let (server, client) = network.pair(80);
        network.faults.lost = 400;
        network.numbers = wire::Numbers::new(seed);
        network.stacks[0].finish(server).expect("finish");
        network.stacks[1].finish(client).expect("finish");
        network.stacks[0].release(server);
        network.stacks[1].release(client);
        network.pass_ms(600_000);
        assert_eq!((network.stacks[0].tcp_sockets(), network.stacks[1].tcp_sockets()), (0, 0), "seed {seed}");
    }
}

#[test]
fn exhausted_ports_and_connections_recover() {
    let mut network = Network::with(1, Limits { connections: 20_000, window_bytes: 512, ..Limits::default() });
    network.filter = Some(Box::new(|_, _| false));
    let remote = End::new(address(1), 80);
    let mut made = Vec::new();
    let end = loop {
        match network.stacks[0].connect(remote) {
            Ok(id) => made.push(id),
            Err(failure) => break failure,
        }
    };
    assert_eq!((made.len(), end), (16_384, Failure::Exhausted), "each port is used once");
    let elsewhere = network.stacks[0].connect(End::new(address(2), 80)).expect("another end can still be reached");
    for id in made.into_iter().chain([elsewhere]) {
        network.stacks[0].release(id);
    }
    network.pass_ms(10_000);
    assert_eq!(network.stacks[0].tcp_sockets(), 0);
    let id = network.stacks[0].connect(remote).expect("there are ports again");
    network.stacks[0].release(id);
    let mut few = Network::with(1, Limits { connections: 3, ..Limits::default() });
    let made: Vec<_> = (0..4).map(|_| few.stacks[0].connect(remote)).collect();
    assert_eq!(made[3], Err(Failure::Exhausted));
    let listeners = (0..5000).take_while(|_| few.stacks[0].listen(None, 0, 1).is_ok()).count();
    assert_eq!(listeners, 4096);
}

#[test]
fn exhausted_memory_recovers() {
    let mut network = Network::with(2, Limits { buffer_bytes: 500 << 10, ..Limits::default() });
    network.stacks[1] = wire::stack_with(1, Limits::default(), Features::default());
    network.listen(1, 80, 200);
    let remote = End::new(address(1), 80);
    let mut made = Vec::new();
    let end = loop {
        match network.connect(0, remote) {
            Ok(id) => made.push(id),
            Err(failure) => break failure,
        }
        // There is no reader, so data stays here once the peer's window is full.
        for _ in 0..100 {
            if network.try_write(0, made[made.len() - 1], &[1; 10_000]).is_pending() {
                network.pass_ms(5);
            }
        }
    };
    assert!(end == Failure::Exhausted && (4..40).contains(&made.len()), "{end:?} after {} in 500 KiB", made.len());
    for id in made {
        network.stacks[0].release(id);
    }
    network.pass_ms(10);
    let id = network.connect(0, remote).expect("there is memory again");
    network.stacks[0].release(id);
}

#[test]
fn a_listening_port_drops_segments_that_neither_begin_nor_acknowledge() {
    const PUSH_URGENT: u8 = 8 | 32;
    let mut peer = Peer::new();
    let listener = peer.network.listen(0, 80, 4);
    for flags in [0, FIN, FIN | PUSH_URGENT, PUSH_URGENT, RST, RST | FIN, SYN | FIN] {
        peer.send((9, 80), 1, 0, flags, &[]);
        assert_eq!(peer.take(), [], "flags {flags:#x}");
    }
    assert_eq!(peer.network.stacks[0].counters().dropped, 7);
    peer.send((9, 80), 1, 77, ACK, &[]);
    let reset = peer.one();
    assert_eq!((reset.flags, reset.sequence), (RST, 77));
    // At a closed port they are refused, except resets.
    for flags in [0, FIN, FIN | PUSH_URGENT] {
        peer.send((9, 81), 1, 0, flags, &[]);
        let reset = peer.one();
        assert_eq!((reset.flags & RST, reset.sequence), (RST, 0), "flags {flags:#x}");
    }
    assert_eq!(peer.network.stacks[0].tcp_sockets(), 0);
    peer.network.stacks[0].close_listener(listener);
}
