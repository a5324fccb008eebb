//! Datagrams and echoes between two stacks.

mod wire;

use std::task::{Poll, Waker};

use net_stack::{End, Failure};
use wire::{Network, address, bytes};

#[test]
fn a_datagram_arrives_once_and_whole() {
    let mut network = Network::new(2);
    let (server, port) = network.stacks[0].udp_bind(None, 5353).expect("a port");
    let (client, client_port) = network.stacks[1].udp_bind(None, 0).expect("a port");
    let data = bytes(1400);
    network.stacks[1].udp_send(client, End::new(address(0), port), &data).expect("it is sent");
    let datagram = network.until(5, |network| network.stacks[0].poll_udp(server, Waker::noop())).expect("in time");
    let datagram = datagram.expect("a datagram");
    assert_eq!(datagram.remote, End::new(address(1), client_port));
    assert!(datagram.data == data);
    assert!(network.stacks[0].poll_udp(server, Waker::noop()).is_pending());
    let long = vec![0; 2000];
    assert_eq!(network.stacks[1].udp_send(client, End::new(address(0), port), &long), Err(Failure::TooLong));
    assert_eq!(network.stacks[0].udp_bind(None, 5353).map(|_| ()), Err(Failure::AddressInUse));
    network.stacks[0].udp_close(server);
    assert_eq!(network.stacks[0].poll_udp(server, Waker::noop()), Poll::Ready(Err(Failure::Closed)));
}

#[test]
fn datagrams_nobody_reads_are_lost_beyond_a_bound() {
    let mut network = Network::new(2);
    let (_server, port) = network.stacks[0].udp_bind(None, 7).expect("a port");
    let (client, _) = network.stacks[1].udp_bind(None, 0).expect("a port");
    for _ in 0..400 {
        network.stacks[1].udp_send(client, End::new(address(0), port), &[1; 1000]).expect("it is sent");
        network.pass_ms(1);
    }
    assert!(network.stacks[0].counters().udp_overflowed > 100);
}

#[test]
fn an_echo_comes_back() {
    let mut network = Network::new(2);
    let echo = network.stacks[1].echo(address(0), 56, 3).expect("it is sent");
    let answer = network.until(5, |network| network.stacks[1].poll_echo(echo, Waker::noop())).expect("in time");
    let answer = answer.expect("an echo");
    assert_eq!((answer.address, answer.bytes, answer.hops_left), (address(0), 56, 64));
    network.stacks[1].forget_echo(echo);
    let nobody = network.stacks[1].echo(address(9), 56, 3).expect("it is sent");
    assert!(network.until(5, |network| network.stacks[1].poll_echo(nobody, Waker::noop())).is_none());
}
