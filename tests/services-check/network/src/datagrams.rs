//! Datagrams, names, and the status of the stack.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::net::{IpAddr, Ipv4Addr};

use client::access::AccessError;
use client::namespace::Namespace;
use contracts::dns::{AddressFamily, DnsError};
use contracts::ip_configuration::IpError;
use contracts::tcp::TcpError;
use contracts::{FOR_EVER, SocketAddress, dns, udp, udp_socket};
use network::NetError;
use network::ip::IpStack;
use sip::exheap::ExVec;

use crate::ends::{block, ended, listen, loopback, pair, pattern};
use crate::{Outcome, Test, answer, check};

/// Path of a network stack's UDP provider.
const UDP: &str = "/service/udp";

/// Address that the system's manifest gives a stack without an interface of the host's.
const OWN_ADDRESS: IpAddr = IpAddr::V4(Ipv4Addr::new(198, 51, 100, 1));

pub(crate) const TESTS: &[Test] = &[
    ("datagrams: they come whole, with who sent them", whole),
    ("datagrams: what makes none is refused", refusals),
    ("names: what cannot be one is refused, and this host's is known", names),
    ("stack: it tells what there is", tells),
];

pub(crate) type Socket = udp_socket::Imp<udp_socket::states::Ready>;

/// A socket at a local address.
pub(crate) fn bind(
    namespace: &mut Namespace,
    local: SocketAddress,
) -> Result<Result<(Socket, SocketAddress), TcpError>, String> {
    let stack = namespace.open(UDP, udp::new_channel, |importer| match importer.receive() {
        udp::ImpStart::Success { next } => Ok(next),
        udp::ImpStart::Refused { .. } | udp::ImpStart::ChannelClosed(_) => Err(AccessError::ServerEnded),
    });
    match answer!(stack.map_err(|error| format!("{UDP}: {error}"))?.bind(local)) {
        udp::ImpReadyAfterBind::Bound { socket, local, .. } => Ok(Ok((socket, local))),
        udp::ImpReadyAfterBind::Failed { error, .. } => Ok(Err(error)),
        udp::ImpReadyAfterBind::ChannelClosed(_) => Err(ended()),
    }
}

/// Sends a datagram.
pub(crate) fn send(
    socket: Socket,
    data: ExVec<u8>,
    count: u32,
    remote: SocketAddress,
) -> Result<(Result<(), TcpError>, Socket), String> {
    let bytes = data.len();
    match answer!(socket.send(data, count, remote)) {
        udp_socket::ImpReadyAfterSend::Sent { data, next } if data.len() == bytes => Ok((Ok(()), next)),
        udp_socket::ImpReadyAfterSend::SendFailed { data, error, next } if data.len() == bytes => {
            Ok((Err(error), next))
        }
        udp_socket::ImpReadyAfterSend::ChannelClosed(_) => Err(ended()),
        _ => Err(String::from("another block came back than was sent")),
    }
}

/// The next datagram and its sender.
pub(crate) type Datagram = Option<(Vec<u8>, SocketAddress)>;

/// Receives a datagram.
pub(crate) fn receive(socket: Socket, timeout_ms: u32) -> Result<(Result<Datagram, TcpError>, Socket), String> {
    match answer!(socket.receive(timeout_ms)) {
        udp_socket::ImpReadyAfterReceive::Datagram { data, count, remote, next } => {
            let bytes = data.get(..count as usize).ok_or_else(|| String::from("a datagram longer than its block"))?;
            Ok((Ok(Some((bytes.to_vec(), remote))), next))
        }
        udp_socket::ImpReadyAfterReceive::NoDatagram { next } => Ok((Ok(None), next)),
        udp_socket::ImpReadyAfterReceive::Failed { error, next } => Ok((Err(error), next)),
        udp_socket::ImpReadyAfterReceive::ChannelClosed(_) => Err(ended()),
    }
}

fn whole(namespace: &mut Namespace) -> Outcome {
    let failed = |error| format!("{error:?}");
    let (mut left, left_name) = bind(namespace, loopback(0))?.map_err(failed)?;
    let (mut right, right_name) = bind(namespace, loopback(0))?.map_err(failed)?;
    for bytes in [1, 0, 1472, 1473, 9000, 65_507] {
        let (sent, next) = send(left, block(&pattern(bytes.max(1)))?, bytes as u32, right_name)?;
        left = next;
        check!(sent.is_ok(), "a datagram of {bytes} bytes: {sent:?}");
        let (received, next) = receive(right, FOR_EVER)?;
        right = next;
        let expected = pattern(bytes.max(1))[..bytes].to_vec();
        check!(received == Ok(Some((expected, left_name))), "a datagram of {bytes} bytes is not what was sent");
    }
    for timeout_ms in [0, 20] {
        let (received, next) = receive(right, timeout_ms)?;
        right = next;
        check!(received == Ok(None), "where there is none: {received:?}");
    }
    // Several wait in order.
    for number in 0..50u8 {
        left = send(left, block(&[number])?, 1, right_name)?.1;
    }
    for number in 0..50u8 {
        let (received, next) = receive(right, FOR_EVER)?;
        right = next;
        check!(received == Ok(Some((Vec::from([number]), left_name))), "number {number}: {received:?}");
    }
    // An unreceived datagram affects neither the sender nor later datagrams.
    drop(right);
    for _ in 0..3 {
        left = send(left, block(b"lost")?, 4, right_name)?.1;
    }
    let (own, left) = send(left, block(b"own")?, 3, left_name)?;
    let (received, left) = receive(left, FOR_EVER)?;
    // A host may report a lost datagram in the reply to the next send.
    check!(own.is_err() || received == Ok(Some((b"own".to_vec(), left_name))), "to oneself: {own:?}, {received:?}");
    drop(left);
    Ok(())
}

fn refusals(namespace: &mut Namespace) -> Outcome {
    let failed = |error| format!("{error:?}");
    let (socket, name) = bind(namespace, loopback(0))?.map_err(failed)?;
    let (sent, socket) = send(socket, block(&[0; 100])?, 101, name)?;
    check!(sent == Err(TcpError::BadAddress), "more than the block: {sent:?}");
    let (sent, socket) = send(socket, block(&[0; 70_000])?, 70_000, name)?;
    check!(sent == Err(TcpError::BadAddress), "longer than any datagram: {sent:?}");
    let (sent, socket) = send(socket, block(&[0; 10])?, 10, loopback(0))?;
    check!(sent.is_err(), "to port 0: {sent:?}");
    let second = bind(namespace, name)?;
    check!(second.as_ref().err() == Some(&TcpError::AddressInUse), "two sockets at {name}");
    let foreign = SocketAddress::new(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)), 0);
    let elsewhere = bind(namespace, foreign)?;
    check!(elsewhere.as_ref().err() == Some(&TcpError::BadAddress), "a socket at {foreign}");
    let (received, socket) = receive(socket, 0)?;
    check!(received == Ok(None), "after all that was refused: {received:?}");
    drop(socket);
    Ok(())
}

/// Queries the stack directly, without the library's checks.
pub(crate) fn resolve(
    namespace: &mut Namespace,
    name: &[u8],
    family: AddressFamily,
) -> Result<Result<Vec<IpAddr>, DnsError>, String> {
    let stack = namespace.open(network::DNS, dns::new_channel, |importer| match importer.receive() {
        dns::ImpStart::Success { next } => Ok(next),
        dns::ImpStart::ChannelClosed(_) => Err(AccessError::ServerEnded),
    });
    match answer!(stack.map_err(|error| format!("{}: {error}", network::DNS))?.resolve(block(name)?, family)) {
        dns::ImpReadyAfterResolve::Resolved { addresses, .. } => {
            Ok(Ok(addresses.iter().map(|address| address.ip()).collect()))
        }
        dns::ImpReadyAfterResolve::Failed { error, .. } => Ok(Err(error)),
        dns::ImpReadyAfterResolve::ChannelClosed(_) => Err(ended()),
    }
}

fn names(namespace: &mut Namespace) -> Outcome {
    for bad in [&b"a\0b"[..], &[b'a'; 254], &[b'a'; 5000]] {
        let answer = resolve(namespace, bad, AddressFamily::Any)?;
        check!(answer == Err(DnsError::BadName), "a name of {} bytes: {answer:?}", bad.len());
    }
    let local = resolve(namespace, b"localhost", AddressFamily::Version4)?;
    check!(local == Ok(Vec::from([IpAddr::V4(Ipv4Addr::LOCALHOST)])), "localhost: {local:?}");
    let any = resolve(namespace, b"localhost", AddressFamily::Any)?;
    check!(any.as_ref().is_ok_and(|all| all.iter().all(IpAddr::is_loopback)), "localhost: {any:?}");
    let itself = resolve(namespace, b"192.0.2.7", AddressFamily::Any)?;
    check!(itself == Ok(Vec::from([IpAddr::V4(Ipv4Addr::new(192, 0, 2, 7))])), "an address as text: {itself:?}");
    let other = resolve(namespace, b"192.0.2.7", AddressFamily::Version6)?;
    check!(other == Err(DnsError::NotFound), "an address of the other kind: {other:?}");
    Ok(())
}

fn tells(namespace: &mut Namespace) -> Outcome {
    let said = |error: NetError| format!("{}: {error}", network::IP);
    let mut stack = IpStack::open(namespace).map_err(said)?;
    check!(!stack.interfaces().map_err(said)?.is_empty(), "no interface");
    let addresses = stack.addresses().map_err(said)?;
    let is_own = |address: IpAddr| address.is_loopback() || address == OWN_ADDRESS;
    check!(addresses.iter().any(|record| is_own(net_ip(record.address))), "no address of this machine's");
    stack.routes().map_err(said)?;
    stack.name_servers().map_err(said)?;
    let before = stack.counters().map_err(said)?;
    let (listener, local) = listen(namespace, loopback(0), 4)?.map_err(|error| format!("{error:?}"))?;
    let (left, right) = pair(namespace)?;
    let sockets = stack.sockets().map_err(said)?;
    let has = |state: u16| sockets.iter().filter(|socket| socket.protocol == 1 && socket.state == state).count();
    check!(
        sockets.iter().any(|socket| socket.local_port == local.port && socket.state == 1),
        "the listener is not told"
    );
    check!(has(4) >= 2, "{} connections are told, of two", has(4));
    let after = stack.counters().map_err(said)?;
    check!(after.tcp_accepted > before.tcp_accepted && after.tcp_connected > before.tcp_connected, "nothing counted");
    drop((listener, left, right));
    let loopback = IpAddr::V4(Ipv4Addr::LOCALHOST);
    match stack.ping(loopback, 56, 1, 1000) {
        Ok(pong) => check!(pong.address == loopback && pong.bytes == 56, "{pong:?}"),
        // Not every host permits name queries.
        Err(NetError::Ip(IpError::NotSupported | IpError::NotPermitted)) => {}
        Err(error) => return Err(format!("ping: {error}")),
    }
    check!(stack.ping(loopback, 1 << 20, 1, 1000).is_err(), "an echo request of a MiB");
    Ok(())
}

fn net_ip(address: [u8; 16]) -> IpAddr {
    network::address::from_bytes(address)
}
