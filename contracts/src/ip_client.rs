//! Asking a network stack how it is configured, and changing that: the `IpConfiguration` contract as plain functions.
//!
//! Key type: [`IpStack`]. Deliberately not here: how it is shown.

use alloc::vec::Vec;
use core::net::IpAddr;

use sip::exheap::ExVec;

use crate::access::AccessError;
use crate::answer::{REQUEST_LIMIT, limit_beyond, wait};
use crate::ip_configuration::{self, states};
use crate::namespace::Namespace;
use crate::net::{IP, NetError};
use crate::net_address::{Network, from_bytes, to_bytes};
use crate::{AddressRecord, HostAddress, InterfaceRecord, NetCounters, RouteRecord, SocketRecord};

/// The configuration of the network stack.
pub struct IpStack {
    endpoint: Option<ip_configuration::Imp<states::Ready>>,
}

/// The answer to an echo request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pong {
    /// Who answered.
    pub address: IpAddr,
    /// How long it took, in nanoseconds.
    pub round_trip_ns: u64,
    /// Bytes that came back.
    pub bytes: u32,
    /// Hops that the answer had left; 0 where that is not known.
    pub hop_limit: u16,
}

/// One question of a list: the name of the function, the message, the answer, its list and the list's records.
macro_rules! questions {
    ($($(#[$doc:meta])* $name:ident: $message:ident, $after:ident, $answer:ident, $list:ident, $record:ty;)*) => {
        impl IpStack {
            $(
                $(#[$doc])*
                ///
                /// # Errors
                /// The stack ended, or cannot tell.
                pub fn $name(&mut self) -> Result<Vec<$record>, NetError> {
                    match wait(self.take()?.$message(), REQUEST_LIMIT)? {
                        ip_configuration::$after::$answer { $list, next } => {
                            self.endpoint = Some(next);
                            Ok($list.as_slice().to_vec())
                        }
                        ip_configuration::$after::Failed { error, next } => {
                            self.endpoint = Some(next);
                            Err(error.into())
                        }
                        ip_configuration::$after::ChannelClosed(_) => Err(AccessError::ServerEnded.into()),
                    }
                }
            )*
        }
    };
}

questions! {
    /// All interfaces.
    interfaces: get_interfaces, ImpReadyAfterGetInterfaces, Interfaces, interfaces, InterfaceRecord;
    /// The addresses of all interfaces.
    addresses: get_addresses, ImpReadyAfterGetAddresses, Addresses, addresses, AddressRecord;
    /// All routes.
    routes: get_routes, ImpReadyAfterGetRoutes, Routes, routes, RouteRecord;
    /// The name servers.
    name_servers: get_name_servers, ImpReadyAfterGetNameServers, NameServers, servers, HostAddress;
    /// All sockets.
    sockets: get_sockets, ImpReadyAfterGetSockets, Sockets, sockets, SocketRecord;
}

/// One change: the name of the function, its arguments, the message and what it is given.
macro_rules! changes {
    ($($(#[$doc:meta])* $name:ident($($argument:ident: $type:ty),*): $message:ident, $after:ident, ($($given:expr),*);)*) => {
        impl IpStack {
            $(
                $(#[$doc])*
                ///
                /// # Errors
                /// It was not done, or the stack ended.
                pub fn $name(&mut self, $($argument: $type),*) -> Result<(), NetError> {
                    match wait(self.take()?.$message($($given),*), REQUEST_LIMIT)? {
                        ip_configuration::$after::Done { next } => {
                            self.endpoint = Some(next);
                            Ok(())
                        }
                        ip_configuration::$after::Failed { error, next } => {
                            self.endpoint = Some(next);
                            Err(error.into())
                        }
                        ip_configuration::$after::ChannelClosed(_) => Err(AccessError::ServerEnded.into()),
                    }
                }
            )*
        }
    };
}

changes! {
    /// Gives the interface with this number one more address.
    add_address(interface: u32, address: Network): add_address, ImpReadyAfterAddAddress, (record_of(interface, address));
    /// Takes an address away from the interface with this number.
    remove_address(interface: u32, address: Network): remove_address, ImpReadyAfterRemoveAddress, (record_of(interface, address));
    /// Adds a route.
    add_route(route: RouteRecord): add_route, ImpReadyAfterAddRoute, (route);
    /// Takes a route away.
    remove_route(route: RouteRecord): remove_route, ImpReadyAfterRemoveRoute, (route);
    /// Sets the name servers.
    set_name_servers(servers: ExVec<HostAddress>): set_name_servers, ImpReadyAfterSetNameServers, (servers);
    /// Lets the interface with this number ask for addresses by DHCP, or gives up those it has.
    set_dhcp(interface: u32, on: bool): set_dhcp, ImpReadyAfterSetDhcp, (interface, on);
}

impl IpStack {
    /// Opens the configuration of the network stack.
    ///
    /// # Errors
    /// There is no stack, or this program may not ask it.
    pub fn open(namespace: &mut Namespace) -> Result<IpStack, NetError> {
        let endpoint =
            namespace.open(IP, ip_configuration::new_channel, |importer| match wait(importer, REQUEST_LIMIT)? {
                ip_configuration::ImpStart::Success { next } => Ok(next),
                ip_configuration::ImpStart::ChannelClosed(_) => Err(AccessError::ServerEnded),
            })?;
        Ok(IpStack { endpoint: Some(endpoint) })
    }

    fn take(&mut self) -> Result<ip_configuration::Imp<states::Ready>, NetError> {
        self.endpoint.take().ok_or(NetError::Access(AccessError::ServerEnded))
    }

    /// What the stack has done since it started.
    ///
    /// # Errors
    /// The stack ended, or cannot tell.
    pub fn counters(&mut self) -> Result<NetCounters, NetError> {
        match wait(self.take()?.get_counters(), REQUEST_LIMIT)? {
            ip_configuration::ImpReadyAfterGetCounters::Counters { counters, next } => {
                self.endpoint = Some(next);
                Ok(*counters)
            }
            ip_configuration::ImpReadyAfterGetCounters::Failed { error, next } => {
                self.endpoint = Some(next);
                Err(error.into())
            }
            ip_configuration::ImpReadyAfterGetCounters::ChannelClosed(_) => Err(AccessError::ServerEnded.into()),
        }
    }

    /// Sends an echo request with so many bytes, and waits for the answer so many milliseconds.
    ///
    /// # Errors
    /// None came, or nothing can be sent there.
    pub fn ping(&mut self, address: IpAddr, bytes: u32, sequence: u16, timeout_ms: u32) -> Result<Pong, NetError> {
        match wait(self.take()?.ping(to_bytes(address), bytes, sequence, timeout_ms), limit_beyond(timeout_ms))? {
            ip_configuration::ImpReadyAfterPing::Pong { address, round_trip_ns, bytes, hop_limit, next } => {
                self.endpoint = Some(next);
                Ok(Pong { address: from_bytes(address), round_trip_ns, bytes, hop_limit })
            }
            ip_configuration::ImpReadyAfterPing::Failed { error, next } => {
                self.endpoint = Some(next);
                Err(error.into())
            }
            ip_configuration::ImpReadyAfterPing::ChannelClosed(_) => Err(AccessError::ServerEnded.into()),
        }
    }
}

fn record_of(interface: u32, address: Network) -> AddressRecord {
    AddressRecord { address: to_bytes(address.address), prefix_bits: address.prefix_bits.into(), interface }
}
