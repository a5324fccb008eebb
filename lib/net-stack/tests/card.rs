//! Checksum offload and TSO.

mod wire;

use std::task::{Poll, Waker};

use net_stack::{End, Features, Limits, MAX_TSO_BYTES};
use wire::{Faults, Network, Numbers, address, bytes};

/// Two hosts, the first with offloads.
fn network() -> Network {
    let mut network = Network::with(2, Limits::default());
    let features = Features { checksum: true, segmentation_version_4: true };
    network.stacks[0] = wire::stack_with_buffers(0, Limits::default(), features, MAX_TSO_BYTES + 32);
    network
}

#[test]
fn long_packets_arrive_as_segments() {
    let mut network = network();
    let (server, client) = network.pair(80);
    let before = network.stacks[0].counters().sent_packets;
    let data = bytes(2_000_000);
    assert!(network.carry((0, server), (1, client), &data) == data);
    let sent = network.stacks[0].counters().sent_packets - before;
    assert!(sent < 700, "{sent} packets to the interface");
    assert_eq!(network.stacks[0].counters().tcp_retransmitted, 0);
    let data = bytes(100_000);
    assert!(network.carry((1, client), (0, server), &data) == data);
    let (socket, port) = network.stacks[1].udp_bind(None, 0).expect("a port");
    let (other, _) = network.stacks[0].udp_bind(None, 0).expect("a port");
    network.stacks[0].udp_send(other, End::new(address(1), port), &data[..1000]).expect("it is sent");
    let datagram = network.until(1, |network| network.stacks[1].poll_udp(socket, Waker::noop()));
    assert!(datagram.expect("in time").expect("a datagram").data == data[..1000]);
    assert!(network.stacks[0].poll_udp(other, Waker::noop()) == Poll::Pending);
}

#[test]
fn lost_segments_of_tso_packets_are_retransmitted() {
    for seed in 0..10 {
        let mut network = network();
        let (server, client) = network.pair(80);
        network.faults = Faults { lost: 20, doubled: 20, damaged: 20, slower: 5 };
        network.numbers = Numbers::new(seed);
        let data = bytes(400_000);
        assert!(network.carry((0, server), (1, client), &data) == data, "seed {seed}");
        network.faults = Faults::default();
        network.stacks[0].release(server);
        network.stacks[1].release(client);
        network.pass_ms(200_000);
        assert_eq!((network.stacks[0].tcp_sockets(), network.stacks[0].free_buffers()), (0, wire::BUFFERS));
    }
}
