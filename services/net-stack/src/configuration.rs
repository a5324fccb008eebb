//! Serving clients of `IpConfiguration`.

use alloc::rc::Rc;
use alloc::vec::Vec;
use core::future::poll_fn;
use core::net::IpAddr;

use contracts::ip_configuration::{self, ExpReady, IpError, states};
use contracts::{
    AddressRecord, HostAddress, InterfaceFlags, InterfaceRecord, NetCounters, RouteFlags, RouteRecord, SocketAddress,
    SocketRecord,
};
use net_stack::{Address, Failure, IpCidr, Origin, Route, SocketInfo};
use network::address::{Network, from_bytes, is_unspecified, to_bytes};
use network_guard::Action;
use sip::channel::TypedEndpoint;
use sip::exheap::{ExBox, ExVec, Plain};

use crate::convert::INTERFACE;
use crate::shared::Shared;
use provider::waiting::{Waited, until, wait};

const NAME: [u8; 16] = *b"net0\0\0\0\0\0\0\0\0\0\0\0\0";

fn block<T: Plain>(records: &[T]) -> Result<ExVec<T>, IpError> {
    ExVec::from_slice(records).map_err(|_| IpError::Exhausted)
}

fn error(failure: Failure) -> IpError {
    match failure {
        Failure::AddressInUse => IpError::AlreadyExists,
        Failure::Exhausted => IpError::Exhausted,
        Failure::Unreachable => IpError::Unreachable,
        Failure::TimedOut => IpError::TimedOut,
        _ => IpError::BadAddress,
    }
}

/// Serves one client.
pub async fn serve(shared: Rc<Shared>, client: ip_configuration::Exp<states::Start>) {
    let mut client = client.success();
    loop {
        client = match client.receive_async().await {
            ExpReady::GetInterfaces { next } => match block(&[interface(&shared)]) {
                Ok(records) => next.interfaces(records),
                Err(error) => next.failed(error),
            },
            ExpReady::GetAddresses { next } => match block(&addresses(&shared)) {
                Ok(records) => next.addresses(records),
                Err(error) => next.failed(error),
            },
            ExpReady::GetRoutes { next } => match block(&routes(&shared)) {
                Ok(records) => next.routes(records),
                Err(error) => next.failed(error),
            },
            ExpReady::GetNameServers { next } => match block(&name_servers(&shared)) {
                Ok(records) => next.name_servers(records),
                Err(error) => next.failed(error),
            },
            ExpReady::GetSockets { next } => match block(&sockets(&shared)) {
                Ok(records) => next.sockets(records),
                Err(error) => next.failed(error),
            },
            ExpReady::GetCounters { next } => match ExBox::new(counters(&shared)) {
                Ok(counters) => next.counters(counters),
                Err(_) => next.failed(IpError::Exhausted),
            },
            ExpReady::AddAddress { next, .. } if !may_change(&shared, &next) => next.failed(IpError::NotPermitted),
            ExpReady::RemoveAddress { next, .. } if !may_change(&shared, &next) => next.failed(IpError::NotPermitted),
            ExpReady::AddRoute { next, .. } if !may_change(&shared, &next) => next.failed(IpError::NotPermitted),
            ExpReady::RemoveRoute { next, .. } if !may_change(&shared, &next) => next.failed(IpError::NotPermitted),
            ExpReady::SetNameServers { next, .. } if !may_change(&shared, &next) => next.failed(IpError::NotPermitted),
            ExpReady::SetDhcp { next, .. } if !may_change(&shared, &next) => next.failed(IpError::NotPermitted),
            ExpReady::AddAddress { address, next } => match add_address(&shared, &address) {
                Ok(()) => next.done(),
                Err(error) => next.failed(error),
            },
            ExpReady::RemoveAddress { address, next } => {
                match shared.stack().remove_address(&from_bytes(address.address).into()) {
                    true => next.done(),
                    false => next.failed(IpError::NotFound),
                }
            }
            ExpReady::AddRoute { route, next } => match new_route(&shared, &route) {
                Ok(route) if shared.stack().add_route(route) => next.done(),
                Ok(_) => next.failed(IpError::Exhausted),
                Err(error) => next.failed(error),
            },
            ExpReady::RemoveRoute { route, next } => match remove_route(&shared, &route) {
                true => next.done(),
                false => next.failed(IpError::NotFound),
            },
            ExpReady::SetNameServers { servers, next } => {
                let servers: Vec<_> = servers.iter().map(|server| server.ip().into()).collect();
                shared.stack().set_name_servers(&servers);
                next.done()
            }
            ExpReady::SetDhcp { interface, on, next } if interface == INTERFACE => {
                shared.stack().set_dhcp(on);
                next.done()
            }
            ExpReady::SetDhcp { next, .. } => next.failed(IpError::NotFound),
            ExpReady::Ping { address, next, .. } if !may_ping(&shared, &next, address) => {
                next.failed(IpError::NotPermitted)
            }
            ExpReady::Ping { address, bytes, sequence, timeout_ms, next } => {
                match ping(&shared, from_bytes(address), bytes, sequence, timeout_ms, &next).await {
                    Some(Ok((echo, round_trip_ns))) => {
                        let address = to_bytes(echo.address.into());
                        next.pong(address, round_trip_ns, echo.bytes as u32, echo.hop_limit.into())
                    }
                    Some(Err(error)) => next.failed(error),
                    None => return,
                }
            }
            ExpReady::ChannelClosed(_) => return,
        };
    }
}

fn may_change<E: TypedEndpoint>(shared: &Shared, client: &E) -> bool {
    shared.guard.allows_action(client, Action::Configure)
}

fn may_ping<E: TypedEndpoint>(shared: &Shared, client: &E, address: [u8; 16]) -> bool {
    shared.guard.allows(client, Action::Ping, &SocketAddress { address, ..SocketAddress::ANY })
}

fn interface(shared: &Shared) -> InterfaceRecord {
    let link = shared.link.get();
    let stack = shared.stack();
    let counters = stack.counters();
    InterfaceRecord {
        name: NAME,
        number: INTERFACE,
        mtu: link.mtu,
        mac_address: link.hardware,
        flags: InterfaceFlags::UP.when(link.bits_per_s > 0) | InterfaceFlags::DHCP.when(stack.has_dhcp()),
        addresses: stack.addresses().len() as u32,
        reserved: 0,
        link_bits_per_s: link.bits_per_s,
        received_packets: counters.received_packets,
        received_bytes: counters.received_bytes,
        sent_packets: counters.sent_packets,
        sent_bytes: counters.sent_bytes,
        dropped_packets: counters.dropped + counters.malformed + counters.parts_lost + counters.udp_overflowed,
    }
}

fn addresses(shared: &Shared) -> Vec<AddressRecord> {
    let record = |address: &Address| AddressRecord {
        address: to_bytes(address.network.address().into()),
        prefix_bits: address.network.prefix_len().into(),
        interface: INTERFACE,
    };
    shared.stack().addresses().iter().map(record).collect()
}

fn routes(shared: &Shared) -> Vec<RouteRecord> {
    let stack = shared.stack();
    let record = |network: IpCidr, gateway: [u8; 16], flags: RouteFlags| {
        let address = IpAddr::from(network.address());
        let masked = Network { address, prefix_bits: network.prefix_len() }.masked();
        RouteRecord {
            network: to_bytes(masked.address),
            gateway,
            prefix_bits: network.prefix_len().into(),
            interface: INTERFACE,
            flags: flags | RouteFlags::IPV6.when(address.is_ipv6()),
            reserved: 0,
        }
    };
    let of_link = stack.addresses().iter().map(|own| record(own.network, [0; 16], RouteFlags::LINK));
    let others = stack.routes().iter().map(|route| {
        let flags = RouteFlags::DHCP.when(route.learnt);
        record(route.network, to_bytes(route.gateway.into()), flags)
    });
    of_link.chain(others).collect()
}

fn name_servers(shared: &Shared) -> Vec<HostAddress> {
    shared.stack().name_servers().iter().map(|server| HostAddress::from(IpAddr::from(*server))).collect()
}

fn sockets(shared: &Shared) -> Vec<SocketRecord> {
    let record = |socket: SocketInfo| SocketRecord {
        local_address: to_bytes(socket.local.address.into()),
        remote_address: socket.remote.map_or([0; 16], |remote| to_bytes(remote.address.into())),
        local_port: socket.local.port,
        remote_port: socket.remote.map_or(0, |remote| remote.port),
        protocol: if socket.is_tcp() { 1 } else { 2 },
        state: socket.state_number(),
        receive_queued: socket.receive_queued as u32,
        send_queued: socket.send_queued as u32,
    };
    shared.stack().sockets().into_iter().map(record).collect()
}

fn counters(shared: &Shared) -> NetCounters {
    let stack = shared.stack();
    let counters = stack.counters();
    NetCounters {
        tcp_connected: counters.tcp_connected,
        tcp_accepted: counters.tcp_accepted,
        tcp_overflowed: counters.tcp_overflowed,
        tcp_reset: counters.tcp_reset,
        tcp_retransmitted: counters.tcp_retransmitted,
        malformed: counters.malformed,
        udp_overflowed: counters.udp_overflowed,
        tcp_sockets: stack.tcp_sockets() as u64,
    }
}

/// Parses a network from a record; fails if the prefix length is invalid.
fn network_of(address: [u8; 16], prefix_bits: u32) -> Result<IpCidr, IpError> {
    let address = from_bytes(address);
    let most = if address.is_ipv4() { 32 } else { 128 };
    match u8::try_from(prefix_bits) {
        Ok(bits) if bits <= most => Ok(IpCidr::new(address.into(), bits)),
        _ => Err(IpError::BadAddress),
    }
}

fn add_address(shared: &Shared, record: &AddressRecord) -> Result<(), IpError> {
    if record.interface != INTERFACE {
        return Err(IpError::NotFound);
    }
    let network = network_of(record.address, record.prefix_bits)?;
    shared.stack().add_address(Address { network, origin: Origin::Set }).map_err(error)
}

fn route_of(record: &RouteRecord) -> Result<Route, IpError> {
    if record.interface > INTERFACE {
        return Err(IpError::NotFound);
    }
    let is_version_6 = record.flags.contains(RouteFlags::IPV6);
    let network = if is_unspecified(record.network) && record.prefix_bits == 0 && !is_version_6 {
        IpCidr::new(net_stack::IpAddress::v4(0, 0, 0, 0), 0)
    } else {
        network_of(record.network, record.prefix_bits)?
    };
    let gateway: net_stack::IpAddress = from_bytes(record.gateway).into();
    if is_unspecified(record.gateway) || network.address().version() != gateway.version() {
        return Err(IpError::BadAddress);
    }
    Ok(Route { network, gateway, learnt: false, until_ns: None })
}

/// Builds a route from a client's record; its gateway must be on link.
fn new_route(shared: &Shared, record: &RouteRecord) -> Result<Route, IpError> {
    let route = route_of(record)?;
    let is_near = shared.stack().addresses().iter().any(|own| own.network.contains_addr(&route.gateway));
    if is_near { Ok(route) } else { Err(IpError::BadAddress) }
}

/// Removes a route, even if its gateway is no longer on link.
fn remove_route(shared: &Shared, record: &RouteRecord) -> bool {
    route_of(record).is_ok_and(|route| shared.stack().remove_route(&route))
}

/// Sends an echo request; `None` if the client is gone.
async fn ping<E: TypedEndpoint>(
    shared: &Shared,
    address: IpAddr,
    bytes: u32,
    sequence: u16,
    timeout_ms: u32,
    client: &E,
) -> Option<Result<(net_stack::Echo, u64), IpError>> {
    let begun_ns = sip::time::monotonic();
    let begun = shared.stack().echo(address.into(), bytes as usize, sequence);
    let id = match begun {
        Ok(id) => id,
        Err(failure) => return Some(Err(error(failure))),
    };
    let mut answer = Err(Failure::TimedOut);
    let waited = wait(client, until(timeout_ms), async {
        answer = poll_fn(|context| shared.stack().poll_echo(id, context.waker())).await;
    });
    let waited = waited.await;
    shared.stack().forget_echo(id);
    match waited {
        Waited::Gone => None,
        _ => Some(answer.map(|echo| (echo, echo.at_ns.saturating_sub(begun_ns))).map_err(error)),
    }
}
