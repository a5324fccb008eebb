//! IPv6 on the link: own addresses, neighbours, routers.

mod wire;

use std::task::{Poll, Waker};

use net_stack::{Address, End, Failure, IpAddress, IpCidr, Limits, Origin};
use wire::raw::{self, icmp_6, solicitation};
use wire::{Network, bytes, hardware, own_of_link};

fn text(address: &str) -> IpAddress {
    address.parse().expect("an address")
}

fn network_of(hosts: usize) -> Network {
    let mut network = Network::new(hosts);
    for stack in &mut network.stacks {
        stack.set_version_6(true);
    }
    network.pass_ms(1500);
    network
}

fn addresses(network: &Network, host: usize, origin: Origin) -> Vec<IpCidr> {
    let all = network.stacks[host].addresses().iter();
    all.filter(|own| own.origin == origin).map(|own| own.network).collect()
}

#[test]
fn hosts_talk_by_link_local_addresses() {
    let mut network = network_of(3);
    assert_eq!(addresses(&network, 0, Origin::Link), [IpCidr::new(own_of_link(0), 64)]);
    let listener = network.listen(0, 80, 4);
    let client = network.connect(1, End::new(own_of_link(0), 80)).expect("a connection");
    let server = network.accept(0, listener);
    let data = bytes(500_000);
    assert!(network.carry((1, client), (0, server), &data) == data);
    assert_eq!(network.stacks[1].counters().tcp_retransmitted, 0);
    let (socket, port) = network.stacks[0].udp_bind(None, 0).expect("a port");
    let (other, _) = network.stacks[2].udp_bind(None, 0).expect("a port");
    network.stacks[2].udp_send(other, End::new(own_of_link(0), port), b"hello").expect("it is sent");
    let datagram = network.until(5, |network| network.stacks[0].poll_udp(socket, Waker::noop()));
    assert_eq!(datagram.expect("in time").expect("a datagram").remote.address, own_of_link(2));
    let echo = network.stacks[2].echo(own_of_link(1), 56, 1).expect("it is sent");
    let answer = network.until(5, |network| network.stacks[2].poll_echo(echo, Waker::noop()));
    assert_eq!(answer.expect("in time").expect("an echo").address, own_of_link(1));
}

#[test]
fn static_addresses_are_used_after_duplicate_detection() {
    let mut network = Network::new(2);
    for host in 0..2 {
        let address = IpCidr::new(text(&format!("2001:db8::{}", host + 1)), 64);
        network.stacks[host].set_time(network.now_ns);
        network.stacks[host].add_address(Address { network: address, origin: Origin::Set }).expect("an address");
        let again = network.stacks[host].add_address(Address { network: address, origin: Origin::Set });
        assert_eq!(again, Err(Failure::AddressInUse));
    }
    let one = text("2001:db8::1");
    network.stacks[0].listen(Some(one), 80, 4).expect("sockets may wait at it");
    assert!(network.stacks[0].addresses().iter().all(|own| own.network.address() != one));
    network.pass_ms(1500);
    assert!(network.stacks[0].addresses().iter().any(|own| own.network.address() == one));
    network.connect(1, End::new(one, 80)).expect("a connection");
    assert_eq!(network.connect(1, End::new(text("2001:db9::1"), 80)), Err(Failure::Unreachable));
    assert!(network.stacks[0].remove_address(&one));
    assert!(network.stacks[0].addresses().iter().all(|own| own.network.address() != one));
}

#[test]
fn a_duplicate_address_is_not_used() {
    let mut network = network_of(1);
    let wanted = text("2001:db8::7");
    let address = Address { network: IpCidr::new(wanted, 64), origin: Origin::Set };
    for (kind, count) in [("somebody tries it too", 1), ("somebody has it", 2)] {
        network.stacks[0].add_address(address).expect("an address");
        network.pass_ms(100);
        let frame = match count {
            1 => solicitation(text("::"), wanted, None),
            _ => raw::advertisement(wanted, text("ff02::1"), 0x20, [2, 0, 0, 0, 0, 9]),
        };
        network.put(0, frame);
        network.pass_ms(2000);
        assert!(network.stacks[0].addresses().iter().all(|own| own.network.address() != wanted), "{kind}");
        assert_eq!(network.stacks[0].counters().duplicate_addresses, count, "{kind}");
    }
    network.stacks[0].add_address(address).expect("an address");
    network.pass_ms(2000);
    assert!(network.stacks[0].addresses().iter().any(|own| own.network.address() == wanted));
    // The owner defends the address.
    let before = network.packets;
    network.put(0, solicitation(text("::"), wanted, None));
    network.pass_ms(10);
    assert_eq!(network.packets, before + 1);
}

/// A router advertisement, for host 0.
fn told(router_s: u16, valid_s: u32, preferred_s: u32) -> Vec<u8> {
    let mut data = vec![3, 4, 64, 0xc0];
    data.extend(valid_s.to_be_bytes());
    data.extend(preferred_s.to_be_bytes());
    data.extend([0; 4]);
    data.extend(raw::octets(text("2001:db8:1::")));
    data.extend([1, 1, 2, 0, 0, 0, 0, 2]);
    data.extend([5, 1, 0, 0, 0, 0, 5, 0x14]);
    data.extend([25, 3, 0, 0, 0, 0, 0, 60]);
    data.extend(raw::octets(text("2001:db8:1::53")));
    let mut fields = vec![64, 0];
    fields.extend(router_s.to_be_bytes());
    fields.extend([0; 8]);
    fields.extend(data);
    icmp_6([0x33, 0x33, 0, 0, 0, 1], hardware(1).0, own_of_link(1), text("ff02::1"), 255, (134, 0), &fields)
}

#[test]
fn a_router_advertises_a_prefix_a_route_and_a_name_server() {
    let mut network = network_of(2);
    network.put(0, told(1800, 4000, 2000));
    network.pass_ms(1500);
    let own = text("2001:db8:1::ff:fe00:1");
    assert_eq!(addresses(&network, 0, Origin::Router), [IpCidr::new(own, 64)]);
    let routes = network.stacks[0].routes();
    assert_eq!((routes.len(), routes[0].gateway, routes[0].learnt), (1, own_of_link(1), true));
    assert_eq!(network.stacks[0].name_servers(), [text("2001:db8:1::53")]);
    // Off-link traffic goes to the router, from the new address, in packets of the advertised MTU.
    let mut seen = None;
    network.filter = Some(Box::new(move |from, frame| {
        if from == 0 && frame[12..14] == [0x86, 0xdd] && frame[20] == 6 {
            let mss = u16::from_be_bytes([frame[54 + 22], frame[54 + 23]]);
            seen.get_or_insert((frame[..6].to_vec(), frame[22..38].to_vec(), mss));
            let expected =
                (hardware(1).0.to_vec(), raw::octets("2001:db8:1::ff:fe00:1".parse().unwrap()).to_vec(), 1240);
            assert_eq!(seen.as_ref(), Some(&expected));
        }
        true
    }));
    let afar = network.stacks[0].connect(End::new(text("2001:db8:ffff::1"), 80)).expect("it is begun");
    network.pass_ms(100);
    network.stacks[0].release(afar);
    network.filter = None;
    // A route ends with its lifetime, an address too, but an unauthenticated message cannot end one soon.
    network.put(0, told(0, 0, 0));
    network.pass_ms(100);
    assert_eq!(network.stacks[0].routes(), []);
    assert_eq!(addresses(&network, 0, Origin::Router).len(), 1);
    network.pass_ms(4_000_000);
    assert_eq!(addresses(&network, 0, Origin::Router), []);
}

#[test]
fn advertised_addresses_and_routes_are_bounded() {
    let mut network = network_of(1);
    for number in 0..200u16 {
        let mut frame = told(1800, 4000, 2000);
        // The prefix, and the router's own address.
        frame[14 + 40 + 16 + 16 + 5] = number as u8;
        frame[14 + 8 + 15] = number as u8;
        raw::update_icmp_6_checksum(&mut frame);
        network.put(0, frame);
        network.pass_ms(20);
    }
    network.pass_ms(2000);
    assert!(addresses(&network, 0, Origin::Router).len() == 3);
    assert!(network.stacks[0].routes().len() <= 5);
    network.pass_ms(2_000_000);
    assert_eq!(network.stacks[0].routes(), []);
    network.stacks[0].set_version_6(false);
    assert!(network.stacks[0].addresses().iter().all(|own| own.origin == Origin::Set));
}

#[test]
fn unresponsive_neighbours_are_solicited_three_times() {
    let mut network = Network::with(2, Limits { timeout_ms: 10_000, ..Limits::default() });
    network.stacks[1].set_version_6(true);
    network.pass_ms(15_000);
    let before = network.packets;
    let echo = network.stacks[1].echo(text("fe80::1234"), 10, 1).expect("it is sent");
    network.pass_ms(20_000);
    assert_eq!(network.packets - before, 3);
    let Poll::Ready(answer) = network.stacks[1].poll_echo(echo, Waker::noop()) else { panic!("it waits for nobody") };
    assert_eq!(answer, Err(Failure::Unreachable));
    network.stacks[1].forget_echo(echo);
    assert_eq!(network.stacks[1].free_buffers(), wire::BUFFERS);
}

#[test]
fn forwarded_messages_are_ignored() {
    let mut network = network_of(2);
    let mut frame = told(1800, 4000, 2000);
    frame[14 + 7] = 254;
    network.put(0, frame);
    network.put(0, raw::advertisement(own_of_link(1), own_of_link(0), 0x60, [2, 0, 0, 0, 0, 66]));
    network.pass_ms(2000);
    assert_eq!((network.stacks[0].routes().len(), addresses(&network, 0, Origin::Router).len()), (0, 0));
}

#[test]
fn the_neighbour_cache_is_bounded() {
    let mut network = network_of(1);
    let target = own_of_link(0);
    for number in 0..10_000u32 {
        let source = text(&format!("fe80::{:x}:{:x}", number >> 16, (number & 0xffff) | 1 << 15));
        network.stacks[0].set_time(network.now_ns);
        let [a, b, c, d] = number.to_be_bytes();
        network.stacks[0].receive(&solicitation(source, target, Some([2, 9, a, b, c, d])), false);
        if number % 50 == 0 {
            network.pass_ms(1);
        }
    }
    network.pass_ms(10);
    assert_eq!(network.stacks[0].free_buffers(), wire::BUFFERS);
    let last = text(&format!("fe80::{:x}", 9_999 | 1 << 15));
    let before = network.packets;
    let echo = network.stacks[0].echo(last, 10, 1).expect("it is sent");
    network.pass_ms(10);
    assert_eq!(network.packets, before + 1, "the last solicitor need not be solicited");
    network.stacks[0].forget_echo(echo);
}

#[test]
fn a_connection_survives_a_restart_of_the_driver() {
    let mut network = network_of(2);
    let listener = network.listen(0, 80, 4);
    let client = network.connect(1, End::new(own_of_link(0), 80)).expect("a connection");
    let server = network.accept(0, listener);
    network.stacks[0].renew_link(hardware(0), 1500, net_stack::Features::default());
    for _ in 0..wire::BUFFERS {
        network.stacks[0].give(vec![0; 1514]);
    }
    network.stacks[0].announce();
    let data = bytes(100_000);
    assert!(network.carry((0, server), (1, client), &data) == data);
    // Another card has another address, and connections from the old one end.
    network.stacks[0].renew_link(hardware(7), 1500, net_stack::Features::default());
    for _ in 0..wire::BUFFERS {
        network.stacks[0].give(vec![0; 1514]);
    }
    network.pass_ms(1500);
    assert_eq!(addresses(&network, 0, Origin::Link), [IpCidr::new(own_of_link(7), 64)]);
    assert!(matches!(network.try_read(0, server, 1), Poll::Ready(_)));
}
