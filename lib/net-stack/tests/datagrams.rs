//! Datagrams and echoes between two stacks.

mod wire;

use std::task::{Poll, Waker};

use net_stack::{Address, End, Failure, IpAddress, IpCidr, Origin};
use wire::{Network, address, bytes};

#[test]
fn a_datagram_arrives_once_and_intact() {
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
fn regression_a_datagram_to_the_machine_itself_may_be_as_long_as_ip_allows() {
    let mut network = Network::new(1);
    let (server, port) = network.stacks[0].udp_bind(None, 0).expect("a port");
    let (client, _) = network.stacks[0].udp_bind(None, 0).expect("a port");
    let loopback: IpAddress = "127.0.0.1".parse().expect("an address");
    for to in [loopback, address(0)] {
        let data = bytes(65_507);
        network.stacks[0].udp_send(client, End::new(to, port), &data).expect("it is sent");
        let datagram = network.until(5, |network| network.stacks[0].poll_udp(server, Waker::noop())).expect("in time");
        assert!(datagram.expect("a datagram").data == data);
        let long = vec![0; 65_508];
        assert_eq!(network.stacks[0].udp_send(client, End::new(to, port), &long), Err(Failure::TooLong));
    }
    // Those that nobody takes are bounded: by the queue to this machine, then by the socket's.
    for _ in 0..200 {
        network.stacks[0].udp_send(client, End::new(loopback, port), &[0; 60_000]).expect("it is sent, or dropped");
    }
    network.pass_ms(10);
    let taken = std::iter::from_fn(|| match network.stacks[0].poll_udp(server, Waker::noop()) {
        Poll::Ready(Ok(datagram)) => Some(datagram.data.len()),
        _ => None,
    });
    assert!((1..10).contains(&taken.count()));
}

#[test]
fn the_receive_queue_is_bounded() {
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
    assert_eq!((answer.address, answer.bytes, answer.hop_limit), (address(0), 56, 64));
    network.stacks[1].forget_echo(echo);
    let nobody = network.stacks[1].echo(address(9), 56, 3).expect("it is sent");
    let answer = network.until(5, |network| network.stacks[1].poll_echo(nobody, Waker::noop()));
    assert_eq!(answer, Some(Err(Failure::Unreachable)));
}

#[test]
fn sockets_are_few_and_each_has_its_own_address_and_port() {
    let mut network = Network::new(2);
    let sockets: Vec<_> = std::iter::from_fn(|| network.stacks[0].udp_bind(None, 0).ok()).collect();
    assert_eq!(sockets.len(), 4096);
    assert_eq!(network.stacks[0].udp_bind(None, 0).map(|_| ()), Err(Failure::Exhausted));
    for (id, _) in sockets {
        network.stacks[0].udp_close(id);
    }
    let (one, _) = network.stacks[0].udp_bind(Some(address(0)), 7).expect("a port");
    let (other, _) = network.stacks[0].udp_bind(Some("127.0.0.1".parse().expect("an address")), 7).expect("another");
    assert_eq!(network.stacks[0].udp_bind(None, 7).map(|_| ()), Err(Failure::AddressInUse));
    assert_eq!(network.stacks[0].udp_bind(Some(address(1)), 7).map(|_| ()), Err(Failure::BadAddress));
    let (client, _) = network.stacks[1].udp_bind(None, 0).expect("a port");
    network.stacks[1].udp_send(client, End::new(address(0), 7), b"to one").expect("it is sent");
    network.stacks[0]
        .udp_send(one, End::new("127.0.0.1".parse::<net_stack::IpAddress>().expect("an address"), 7), b"to other")
        .expect("sent");
    network.pass_ms(10);
    let take = |network: &mut Network, id| match network.stacks[0].poll_udp(id, Waker::noop()) {
        Poll::Ready(Ok(datagram)) => datagram.data,
        other => panic!("{other:?}"),
    };
    assert_eq!((take(&mut network, one), take(&mut network, other)), (b"to one".to_vec(), b"to other".to_vec()));
    assert!(network.stacks[0].poll_udp(one, Waker::noop()).is_pending());
    assert_eq!(network.stacks[1].udp_send(client, End::new(address(0), 0), b"x"), Err(Failure::BadAddress));
}

#[test]
fn multicast_and_broadcast_addresses_are_refused() {
    let mut network = Network::new(1);
    let mut add = |address: [u8; 4], bits: u8| {
        let network_of = IpCidr::new(IpAddress::Ipv4(address.into()), bits);
        network.stacks[0].add_address(Address { network: network_of, origin: Origin::Set })
    };
    for (wrong, bits) in [
        ([10, 1, 2, 255], 24),
        ([10, 1, 2, 0], 24),
        ([10, 1, 3, 255], 23),
        ([0, 0, 0, 0], 0),
        ([255, 255, 255, 255], 32),
        ([224, 0, 0, 1], 24),
        ([127, 0, 0, 1], 8),
    ] {
        assert_eq!(add(wrong, bits), Err(Failure::BadAddress), "{wrong:?}/{bits}");
    }
    for (right, bits) in [([10, 1, 2, 255], 23), ([10, 2, 0, 0], 31), ([10, 3, 0, 255], 32)] {
        assert_eq!(add(right, bits), Ok(()), "{right:?}/{bits}");
    }
}
