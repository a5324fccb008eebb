//! ICMP errors: validation, effect, and rate of those sent. And fragments.

mod wire;

use std::cell::RefCell;
use std::rc::Rc;
use std::task::{Poll, Waker};

use net_stack::{ConnectionId, End, Failure, IpAddress, IpCidr, Limits, Route};
use wire::{Network, address, bytes, hardware, raw};

const ROUTER: [u8; 6] = [2, 0, 0, 0, 0, 0x77];

/// An ICMP error about a packet of host `to`, from a router on the path.
fn error(to: usize, kind: (u8, u8), fields: [u8; 4], about: &[u8]) -> Vec<u8> {
    let quoted = &about[14..about.len().min(14 + 200)];
    let is_version_4 = quoted[0] >> 4 == 4;
    let own: IpAddress = match is_version_4 {
        true => address(to),
        false => wire::own_of_link(to),
    };
    let message = [&[kind.0, kind.1, 0, 0][..], &fields, quoted].concat();
    let (source, protocol) = match is_version_4 {
        true => (IpAddress::v4(192, 0, 2, 77), 1),
        false => ("fe80::77".parse().expect("an address"), 58),
    };
    raw::ip(hardware(to).0, ROUTER, source, own, protocol, &message)
}

type Seen = Rc<RefCell<Vec<Vec<u8>>>>;

/// Records the IP packets that a host sends; those longer than `most` are lost.
fn watch(network: &mut Network, host: usize, most: usize) -> Seen {
    let seen = Seen::default();
    let own = Rc::clone(&seen);
    network.filter = Some(Box::new(move |from, frame| {
        let is_ip = matches!(frame[12..14], [8, 0] | [0x86, 0xdd]);
        let is_lost = from == host && is_ip && frame.len() > 14 + most;
        if from == host && is_ip && (is_lost || most > 1500) {
            own.borrow_mut().push(frame.to_vec());
        }
        !is_lost
    }));
    seen
}

#[test]
fn an_error_on_the_path_fails_a_connect_at_once() {
    for (kind, expected) in
        [((3, 3), Failure::Refused), ((3, 1), Failure::Unreachable), ((3, 13), Failure::Unreachable)]
    {
        let mut network = Network::new(2);
        let seen = watch(&mut network, 1, 20);
        let id = network.stacks[1].connect(End::new(address(0), 80)).expect("it is begun");
        network.pass_ms(10);
        let about = seen.borrow()[0].clone();
        network.put(1, error(1, kind, [0; 4], &about));
        network.pass_ms(10);
        assert_eq!(network.stacks[1].poll_connected(id, Waker::noop()), Poll::Ready(Err(expected)));
        network.stacks[1].release(id);
        assert_eq!((network.stacks[1].tcp_sockets(), network.stacks[1].counters().errors_believed), (0, 1));
    }
}

/// The last segment with data that host 1 sent.
fn last_segment(seen: &Seen) -> Vec<u8> {
    seen.borrow().iter().rfind(|frame| frame.len() > 14 + 60).expect("a segment").clone()
}

#[test]
fn errors_do_not_end_an_established_connection() {
    let mut network = Network::with(2, Limits { timeout_ms: 20_000, ..Limits::default() });
    let (server, client) = network.pair(80);
    let seen = watch(&mut network, 1, 2000);
    assert_eq!(network.try_write(1, client, &bytes(500)), Poll::Ready(Ok(500)));
    network.serve();
    let about = last_segment(&seen);
    network.pass_ms(100);
    network.put(1, error(1, (3, 1), [0; 4], &about));
    network.put(1, error(1, (3, 3), [0; 4], &about));
    network.pass_ms(10);
    assert_eq!(network.stacks[1].counters().errors_believed, 0, "an error about acknowledged data was accepted");
    // Nothing gets through from here on; the recorded error becomes the reported reason.
    network.filter = Some(Box::new(|_, _| false));
    assert_eq!(network.try_write(1, client, &bytes(500)), Poll::Ready(Ok(500)));
    network.serve();
    let mut about = about;
    let sequence = u32::from_be_bytes(about[38..42].try_into().unwrap()) + 500;
    about[38..42].copy_from_slice(&sequence.to_be_bytes());
    network.put(1, error(1, (3, 1), [0; 4], &about));
    network.pass_ms(1000);
    assert_eq!(network.stacks[1].counters().errors_believed, 1);
    assert!(network.try_read(1, client, 1).is_pending());
    assert_eq!(network.until(100, |network| network.try_read(1, client, 1)), Some(Err(Failure::Unreachable)));
    network.stacks[0].release(server);
}

#[test]
fn errors_that_quote_nothing_in_flight_are_ignored() {
    let mut network = Network::new(2);
    let (_server, client) = network.pair(80);
    let seen = watch(&mut network, 1, 2000);
    assert_eq!(network.try_write(1, client, &bytes(500)), Poll::Ready(Ok(500)));
    network.pass_ms(100);
    let about = last_segment(&seen);
    let mut numbers = wire::Numbers::new(3);
    for _ in 0..2000 {
        let mut guess = about.clone();
        guess[38..42].copy_from_slice(&(numbers.next() as u32).to_be_bytes());
        network.put(1, error(1, (3, 4), [0, 0, 2, 40], &guess));
    }
    let mut other = about.clone();
    other[36..38].copy_from_slice(&4444u16.to_be_bytes());
    network.put(1, error(1, (3, 4), [0, 0, 2, 40], &other));
    network.put(1, error(1, (3, 4), [0, 0, 2, 40], &about[..14 + 24]));
    network.pass_ms(100);
    let counters = network.stacks[1].counters();
    assert_eq!((counters.errors_believed, counters.errors_ignored), (0, 2001));
}

/// Carries data over a path on which a router carries no more than `most` bytes, and reports it.
fn carry_narrow(network: &mut Network, from: ConnectionId, to: ConnectionId, most: usize, kind: (u8, u8)) {
    let lost = watch(network, 1, most);
    let data = bytes(200_000);
    let (mut sent, mut arrived, mut told) = (0, Vec::new(), 0);
    network.until(600, |network| -> Poll<()> {
        for about in lost.take() {
            told += 1;
            let [_, _, a, b] = (most as u32).to_be_bytes();
            network.put(1, error(1, kind, [0, 0, a, b], &about));
        }
        while let Poll::Ready(Ok(count)) = network.try_write(1, from, &data[sent..]) {
            sent += count;
            if sent == data.len() {
                break;
            }
        }
        while let Poll::Ready(Ok(bytes)) = network.try_read(0, to, 10_000) {
            arrived.extend(bytes);
        }
        if arrived.len() == data.len() { Poll::Ready(()) } else { Poll::Pending }
    });
    assert!(arrived == data, "{} of {} bytes", arrived.len(), data.len());
    assert!((1..50).contains(&told), "{told} packets were too long");
    network.filter = None;
}

#[test]
fn path_mtu_discovery_shortens_packets() {
    let mut network = Network::new(2);
    let (server, client) = network.pair(80);
    carry_narrow(&mut network, client, server, 1280, (3, 4));
    // The next connection uses the path MTU from the start, and so do datagrams.
    let lost = watch(&mut network, 1, 1280);
    let listener = network.listen(0, 81, 4);
    let client = network.connect(1, End::new(address(0), 81)).expect("a connection");
    let server = network.accept(0, listener);
    let data = bytes(50_000);
    assert!(network.carry((1, client), (0, server), &data) == data);
    assert_eq!(lost.borrow().len(), 0);
    let (socket, _) = network.stacks[1].udp_bind(None, 0).expect("a port");
    assert_eq!(network.stacks[1].udp_send(socket, End::new(address(0), 9), &[0; 1300]), Err(Failure::TooLong));
    // Later larger ones are probed again.
    network.pass_ms(700_000);
    network.stacks[1].set_time(network.now_ns);
    assert_eq!(network.stacks[1].udp_send(socket, End::new(address(0), 9), &[0; 1300]), Ok(()));
}

#[test]
fn path_mtu_discovery_shortens_ipv6_packets() {
    let mut network = Network::new(2);
    for stack in &mut network.stacks {
        stack.set_version_6(true);
    }
    network.pass_ms(1500);
    let listener = network.listen(0, 80, 4);
    let client = network.connect(1, End::new(wire::own_of_link(0), 80)).expect("a connection");
    let server = network.accept(0, listener);
    carry_narrow(&mut network, client, server, 1300, (2, 0));
}

#[test]
fn an_error_ends_the_wait_for_an_echo() {
    let mut network = Network::new(2);
    let seen = watch(&mut network, 1, 20);
    let echo = network.stacks[1].echo(address(0), 56, 3).expect("it is sent");
    network.pass_ms(10);
    let about = seen.borrow()[0].clone();
    network.put(1, error(1, (11, 0), [0; 4], &about));
    let answer = network.until(5, |network| network.stacks[1].poll_echo(echo, Waker::noop()));
    assert_eq!(answer, Some(Err(Failure::Unreachable)));
}

#[test]
fn port_unreachable_errors_are_rate_limited() {
    let mut network = Network::new(2);
    let seen = watch(&mut network, 0, 2000);
    let (socket, _) = network.stacks[1].udp_bind(None, 0).expect("a port");
    for count in 0..1000 {
        network.stacks[1].udp_send(socket, End::new(address(0), 9), b"who is there").expect("it is sent");
        if count % 10 == 0 {
            network.pass_ms(1);
        }
    }
    network.pass_ms(10);
    let refused = seen.borrow().iter().filter(|frame| frame[23] == 1 && frame[34..36] == [3, 3]).count();
    assert!((50..=70).contains(&refused), "{refused}");
    assert_eq!(network.stacks[0].counters().udp_refused, refused as u64);
    // Broadcasts are never refused.
    seen.borrow_mut().clear();
    network.pass_ms(5000);
    let frame =
        raw::ip([0xff; 6], hardware(1).0, address(1), IpAddress::v4(192, 0, 2, 255), 17, &[0, 9, 0, 9, 0, 8, 0, 0]);
    network.put(0, frame);
    network.pass_ms(10);
    assert_eq!(seen.borrow().len(), 0);
}

/// Splits the packet of a frame into fragments of that many bytes.
fn cut(frame: &[u8], bytes: usize, identifier: u16) -> Vec<Vec<u8>> {
    let payload = &frame[34..];
    let count = payload.len().div_ceil(bytes);
    let part = |(number, piece): (usize, &[u8])| {
        let mut header = frame[14..34].to_vec();
        header[2..4].copy_from_slice(&(20 + piece.len() as u16).to_be_bytes());
        header[4..6].copy_from_slice(&identifier.to_be_bytes());
        let place = (number * bytes / 8) as u16 | if number + 1 < count { 0x2000 } else { 0 };
        header[6..8].copy_from_slice(&place.to_be_bytes());
        header[10..12].fill(0);
        let sum = !raw::sum(&header, 0);
        header[10..12].copy_from_slice(&sum.to_be_bytes());
        [&frame[..14], &header, piece].concat()
    };
    payload.chunks(bytes).enumerate().map(part).collect()
}

fn datagram(port: u16, data: &[u8]) -> Vec<u8> {
    let length = 8 + data.len() as u16;
    let mut udp = [9, 9].to_vec();
    udp.extend(port.to_be_bytes());
    udp.extend(length.to_be_bytes());
    udp.extend([0, 0]);
    udp.extend(data);
    raw::ip(hardware(0).0, hardware(1).0, address(1), address(0), 17, &udp)
}

#[test]
fn fragments_are_reassembled() {
    let mut network = Network::new(2);
    let (socket, port) = network.stacks[0].udp_bind(None, 0).expect("a port");
    let data = bytes(20_000);
    let mut parts = cut(&datagram(port, &data), 1480, 7);
    parts.reverse();
    for part in &parts {
        network.put(0, part.clone());
    }
    let datagram_came = network.until(1, |network| network.stacks[0].poll_udp(socket, Waker::noop()));
    assert!(datagram_came.expect("in time").expect("a datagram").data == data);
    // The checksum is wrong after reassembly, though an interface found each fragment right.
    let mut parts = cut(&datagram(port, &data), 1480, 8);
    parts[3][100] ^= 1;
    for part in &parts {
        network.stacks[0].receive(part, true);
    }
    assert!(network.stacks[0].poll_udp(socket, Waker::noop()).is_pending());
    let counters = network.stacks[0].counters();
    assert_eq!((counters.joined, counters.malformed, counters.parts_lost), (2, 1, 0));
    // An incomplete one times out.
    network.put(0, parts[0].clone());
    network.pass_ms(40_000);
    assert_eq!(network.stacks[0].counters().parts_lost, 1);
    assert_eq!(network.stacks[0].next_time_ns(), None);
}

#[test]
fn an_unresolvable_neighbour_fails_the_connection() {
    let mut network = Network::with(2, Limits { timeout_ms: 10_000, ..Limits::default() });
    let gateway = IpAddress::v4(192, 0, 2, 99);
    let everywhere = IpCidr::new(IpAddress::v4(0, 0, 0, 0), 0);
    network.stacks[0].add_route(Route { network: everywhere, gateway, learnt: false, until_ns: None });
    let listener = network.listen(1, 80, 4);
    let standing = network.connect(0, End::new(address(1), 80)).expect("a connection");
    let accepted = network.accept(1, listener);
    for there in [IpAddress::v4(192, 0, 2, 77), IpAddress::v4(203, 0, 113, 1)] {
        let id = network.stacks[0].connect(End::new(there, 80)).expect("begun");
        let echo = network.stacks[0].echo(there, 10, 1).expect("it is sent");
        network.pass_ms(2500);
        assert!(network.stacks[0].poll_echo(echo, Waker::noop()).is_pending(), "it is asked three times");
        network.pass_ms(1000);
        assert_eq!(network.stacks[0].poll_echo(echo, Waker::noop()), Poll::Ready(Err(Failure::Unreachable)));
        // A connection retries until its timeout, and then reports the reason.
        assert!(network.stacks[0].poll_connected(id, Waker::noop()).is_pending());
        network.pass_ms(8000);
        assert_eq!(network.stacks[0].poll_connected(id, Waker::noop()), Poll::Ready(Err(Failure::Unreachable)));
        network.stacks[0].forget_echo(echo);
        network.stacks[0].release(id);
    }
    // An established one continues when its neighbour is back in time.
    network.filter = Some(Box::new(|_, _| false));
    network.pass_ms(100_000);
    assert!(network.try_write(0, standing, b"late").is_ready());
    network.pass_ms(5_000);
    network.filter = None;
    network.pass_ms(20_000);
    assert_eq!(network.try_read(1, accepted, 10), Poll::Ready(Ok(b"late".to_vec())));
    assert_eq!(network.stacks[0].free_buffers(), wire::BUFFERS);
}
