//! Connections between two stacks on a lossless wire.

mod wire;

use std::task::{Poll, Waker};

use net_stack::{ConnectionId, End, Failure, IpAddress, Limits};
use wire::{Network, address, bytes};

#[test]
fn bytes_arrive_in_both_directions() {
    let mut network = Network::new(2);
    let (server, client) = network.pair(80);
    let data = bytes(1_000_000);
    assert!(network.carry((1, client), (0, server), &data) == data);
    assert_eq!(network.stacks[1].counters().tcp_retransmitted, 0);
    assert!(network.carry((0, server), (1, client), &data) == data);
    network.stacks[0].release(server);
    network.stacks[1].release(client);
    network.pass_ms(100_000);
    assert_eq!((network.stacks[0].tcp_sockets(), network.stacks[1].tcp_sockets()), (0, 0));
    assert_eq!(network.stacks[0].free_buffers(), wire::BUFFERS);
}

#[test]
fn a_closed_port_is_reported_at_once() {
    let mut network = Network::new(2);
    let before = network.now_ns;
    assert_eq!(network.connect(1, End::new(address(0), 81)), Err(Failure::Refused));
    assert!(network.now_ns - before < 10_000_000);
}

#[test]
fn connecting_to_a_dead_host_times_out() {
    let mut network = Network::with(2, Limits { timeout_ms: 10_000, ..Limits::default() });
    assert_eq!(network.connect(1, End::new(address(77), 80)), Err(Failure::Unreachable));
    assert_eq!(network.connect(1, End::new(IpAddress::v4(8, 8, 8, 8), 80)), Err(Failure::Unreachable));
    // A host that answers ARP and nothing else.
    network.filter = Some(Box::new(|_, frame| frame[12..14] == [8, 6]));
    assert_eq!(network.connect(1, End::new(address(0), 80)), Err(Failure::TimedOut));
}

#[test]
fn a_connection_to_this_machine_itself_stays_in_it() {
    let mut network = Network::new(1);
    for own in [address(0), IpAddress::v4(127, 0, 0, 1), "::1".parse().expect("an address")] {
        let listener = network.listen(0, 8080, 4);
        let client = network.connect(0, End::new(own, 8080)).expect("a connection");
        let server = network.accept(0, listener);
        let data = bytes(300_000);
        assert!(network.carry((0, client), (0, server), &data) == data);
        network.stacks[0].release(client);
        network.stacks[0].release(server);
        network.stacks[0].close_listener(listener);
    }
    network.pass_ms(100_000);
    assert_eq!(network.stacks[0].tcp_sockets(), 0);
}

/// Segments queued for one unresolved neighbour without loss; listeners have a larger backlog.
const AT_ONCE: usize = 60;

#[test]
fn packets_queued_for_an_unresolved_neighbour_are_all_sent() {
    let mut network = Network::new(2);
    let listener = network.listen(0, 80, AT_ONCE);
    let first = network.connect(1, End::new(address(0), 80)).expect("a connection");
    network.accept(0, listener);
    // As after a restart: the neighbour cache is empty here but not at the peer.
    network.stacks[0].renew_link(wire::hardware(0), 1500, net_stack::Features::default());
    for _ in 0..wire::BUFFERS {
        network.stacks[0].give(vec![0; 1514]);
    }
    let begun: Vec<ConnectionId> = (0..AT_ONCE).map(|_| begin(&mut network, address(0))).collect();
    network.pass_ms(5);
    for connection in begun {
        let connected = network.stacks[1].poll_connected(connection, Waker::noop());
        assert_eq!(connected, Poll::Ready(Ok(())), "a SYN was retransmitted");
        network.accept(0, listener);
    }
    network.stacks[1].release(first);
}

#[test]
fn neighbours_that_never_answer_do_not_hold_all_buffers() {
    let mut network = Network::new(2);
    let listener = network.listen(0, 80, 4);
    let mut vain: Vec<ConnectionId> = Vec::new();
    for host in 10..110 {
        vain.extend((0..AT_ONCE).map(|_| begin(&mut network, address(host))));
        network.serve();
        let free = network.stacks[1].free_buffers();
        assert!(free >= wire::BUFFERS / 2 - 1, "{free} buffers are left");
    }
    // A neighbour that answers gets what is queued for it, though it was solicited last.
    let begin_ns = network.now_ns;
    let client = network.connect(1, End::new(address(0), 80)).expect("a connection");
    assert!(network.now_ns - begin_ns < 5_000_000);
    let server = network.accept(0, listener);
    let data = bytes(300_000);
    assert!(network.carry((1, client), (0, server), &data) == data);
    for connection in vain.into_iter().chain([client]) {
        network.stacks[1].release(connection);
    }
    network.stacks[0].release(server);
    network.pass_ms(200_000);
    assert_eq!(network.stacks[1].free_buffers(), wire::BUFFERS);
}

/// Opens a connection of the second host without waiting for it.
fn begin(network: &mut Network, to: IpAddress) -> ConnectionId {
    network.stacks[1].connect(End::new(to, 80)).expect("a connection that begins")
}

#[test]
fn closing_without_finish_resets() {
    let mut network = Network::new(2);
    let (server, client) = network.pair(80);
    network.stacks[1].release(client);
    let read = network.until(1, |network| network.try_read(0, server, 10));
    assert_eq!(read, Some(Err(Failure::Reset)));
    assert_eq!(network.stacks[1].tcp_sockets(), 0);
    network.stacks[0].release(server);
    assert_eq!(network.stacks[0].tcp_sockets(), 0);
    assert_eq!(network.stacks[0].counters().tcp_reset, 1);
}

#[test]
fn closing_after_the_other_end_finished_sends_the_rest() {
    let mut network = Network::new(2);
    let (server, client) = network.pair(80);
    network.stacks[1].finish(client).expect("finish");
    assert_eq!(network.until(1, |network| network.try_read(0, server, 10)), Some(Ok(Vec::new())));
    let data = bytes(50_000);
    assert_eq!(network.try_write(0, server, &data), Poll::Ready(Ok(data.len())));
    network.stacks[0].release(server);
    let mut arrived = Vec::new();
    let end = network.until(10, |network| {
        loop {
            match network.try_read(1, client, 1000) {
                Poll::Ready(Ok(bytes)) if bytes.is_empty() => return Poll::Ready(()),
                Poll::Ready(Ok(bytes)) => arrived.extend(bytes),
                Poll::Ready(Err(failure)) => panic!("{failure:?}"),
                Poll::Pending => return Poll::Pending,
            }
        }
    });
    assert!(end.is_some() && arrived == data);
}

#[test]
fn data_before_the_fin_can_be_read_long_after() {
    let mut network = Network::new(2);
    let (server, client) = network.pair(80);
    network.stacks[0].finish(server).expect("finish");
    assert_eq!(network.try_write(1, client, b"late"), Poll::Ready(Ok(4)));
    network.stacks[1].finish(client).expect("finish");
    network.pass_ms(200_000);
    assert_eq!(network.try_read(0, server, 10), Poll::Ready(Ok(b"late".to_vec())));
    assert_eq!(network.try_read(0, server, 10), Poll::Ready(Ok(Vec::new())));
    network.stacks[0].release(server);
    network.stacks[1].release(client);
    assert_eq!(network.stacks[0].tcp_sockets(), 0);
    assert_eq!(network.stacks[1].tcp_sockets(), 0);
}

#[test]
fn an_abort_is_reported_to_the_peer() {
    let mut network = Network::new(2);
    let (server, client) = network.pair(80);
    network.stacks[1].abort(client);
    assert_eq!(network.try_read(1, client, 1), Poll::Ready(Err(Failure::Closed)));
    assert_eq!(network.until(1, |network| network.try_read(0, server, 1)), Some(Err(Failure::Reset)));
    assert_eq!(network.try_write(0, server, b"x"), Poll::Ready(Err(Failure::Reset)));
}

#[test]
fn regression_a_connection_to_a_full_backlog_is_made_once_there_is_room() {
    let mut network = Network::new(2);
    let (listener, remote) = (network.listen(0, 80, 2), End::new(address(0), 80));
    let made = [(); 2].map(|()| network.connect(1, remote).expect("a connection"));
    network.pass_ms(10);
    let late = network.stacks[1].connect(remote).expect("a port");
    network.pass_ms(500);
    let connected = |network: &mut Network| network.stacks[1].poll_connected(late, Waker::noop());
    assert!(connected(&mut network).is_pending(), "it is neither made nor refused");
    assert!(network.stacks[0].counters().tcp_overflowed > 0);
    for id in made {
        let server = network.accept(0, listener);
        assert_eq!(network.stacks[0].ends(server).map(|ends| ends.1), network.stacks[1].ends(id).map(|ends| ends.0));
    }
    assert_eq!(network.until(10, connected), Some(Ok(())));
    network.accept(0, listener);
    assert!(network.stacks[0].poll_accept(listener, Waker::noop()).is_pending());
    network.stacks[0].close_listener(listener);
    assert_eq!(network.connect(1, remote), Err(Failure::Refused));
}

#[test]
fn handshakes_under_way_beyond_the_backlog_are_reset() {
    let mut network = Network::new(2);
    let (listener, remote) = (network.listen(0, 80, 2), End::new(address(0), 80));
    let made = [(); 4].map(|()| network.stacks[1].connect(remote).expect("a port"));
    network.pass_ms(100);
    assert_eq!(network.stacks[0].counters().tcp_overflowed, 2);
    for id in &made[..2] {
        let server = network.accept(0, listener);
        assert_eq!(network.stacks[0].ends(server).map(|ends| ends.1), network.stacks[1].ends(*id).map(|ends| ends.0));
    }
    for id in &made[2..] {
        assert_eq!(network.try_read(1, *id, 1), Poll::Ready(Err(Failure::Reset)));
    }
    assert!(network.stacks[0].poll_accept(listener, Waker::noop()).is_pending());
}

#[test]
fn ports_are_one_listener_s() {
    let mut network = Network::new(2);
    let listener = network.listen(0, 80, 1);
    assert_eq!(network.stacks[0].listen(Some(address(0)), 80, 1).map(|_| ()), Err(Failure::AddressInUse));
    assert_eq!(network.stacks[0].listen(Some(address(1)), 81, 1).map(|_| ()), Err(Failure::BadAddress));
    let (_, port) = network.stacks[0].listen(None, 0, 1).expect("a free port");
    assert!(port >= 49_152);
    network.stacks[0].close_listener(listener);
    network.listen(0, 80, 1);
}

#[test]
fn a_closed_listener_s_connections_are_reset() {
    let mut network = Network::new(2);
    let listener = network.listen(0, 80, 4);
    let client = network.connect(1, End::new(address(0), 80)).expect("a connection");
    network.pass_ms(10);
    network.stacks[0].close_listener(listener);
    assert_eq!(network.until(1, |network| network.try_read(1, client, 1)), Some(Err(Failure::Reset)));
    network.pass_ms(10);
    assert_eq!(network.stacks[0].tcp_sockets(), 0);
}

#[test]
fn a_peer_that_vanishes_is_noticed() {
    let mut network = Network::with(2, Limits { timeout_ms: 20_000, ..Limits::default() });
    let (server, _client) = network.pair(80);
    network.filter = Some(Box::new(|_, _| false));
    assert_eq!(network.try_write(0, server, b"hello"), Poll::Ready(Ok(5)));
    assert_eq!(network.until(100, |network| network.try_read(0, server, 1)), Some(Err(Failure::TimedOut)));
}

#[test]
fn keep_alive_notices_a_silent_peer_that_vanished() {
    let mut network = Network::with(2, Limits { timeout_ms: 20_000, ..Limits::default() });
    let (server, _client) = network.pair(80);
    network.stacks[0].set_options(server, true, 5).expect("options");
    network.pass_ms(60_000);
    assert!(network.try_read(0, server, 1).is_pending(), "a peer that answers is there");
    network.filter = Some(Box::new(|_, _| false));
    assert_eq!(network.until(100, |network| network.try_read(0, server, 1)), Some(Err(Failure::TimedOut)));
}
