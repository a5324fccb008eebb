//! The configuration of a network stack: the `IpConfiguration` contract as plain functions.
//!
//! Key type: [`IpStack`]. Deliberately not here: formatting.

use alloc::vec::Vec;
use core::net::IpAddr;

use client::access::AccessError;
use client::answer::{REQUEST_LIMIT, limit_beyond, wait};
use client::namespace::Namespace;
use contracts::ip_configuration::{self, states};
use contracts::{AddressRecord, HostAddress, InterfaceRecord, NetCounters, RouteRecord, SocketRecord};
use sip::exheap::ExVec;

use crate::address::{Network, from_bytes, to_bytes};
use crate::{IP, NetError};

/// The configuration of the network stack.
pub struct IpStack {
    endpoint: Option<ip_configuration::Imp<states::Ready>>,
}

/// The answer to an echo request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pong {
    /// The responder.
    pub address: IpAddr,
    /// RTT in nanoseconds.
    pub round_trip_ns: u64,
    /// Bytes of the reply.
    pub bytes: u32,
    /// Hop limit of the reply; 0 if unknown.
    pub hop_limit: u16,
}

/// A request for a list: name of the function, message, answer, field of the list, and type of its records.
macro_rules! questions {
    ($($(#[$doc:meta])* $name:ident: $message:ident, $after:ident, $answer:ident, $list:ident, $record:ty;)*) => {
        impl IpStack {
            $(
                $(#[$doc])*
                ///
                /// # Errors
                /// The stack ended or failed.
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
    /// Lists all interfaces.
    interfaces: get_interfaces, ImpReadyAfterGetInterfaces, Interfaces, interfaces, InterfaceRecord;
    /// Lists the addresses of all interfaces.
    addresses: get_addresses, ImpReadyAfterGetAddresses, Addresses, addresses, AddressRecord;
    /// Lists all routes.
    routes: get_routes, ImpReadyAfterGetRoutes, Routes, routes, RouteRecord;
    /// Lists the name servers.
    name_servers: get_name_servers, ImpReadyAfterGetNameServers, NameServers, servers, HostAddress;
    /// Lists all sockets.
    sockets: get_sockets, ImpReadyAfterGetSockets, Sockets, sockets, SocketRecord;
}

/// A change: name of the function, its arguments, message and arguments of that.
macro_rules! changes {
    ($($(#[$doc:meta])* $name:ident($($argument:ident: $type:ty),*): $message:ident, $after:ident, ($($given:expr),*);)*) => {
        impl IpStack {
            $(
                $(#[$doc])*
                ///
                /// # Errors
                /// The stack refused it, or ended.
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
    /// Adds an address to the interface of this number.
    add_address(interface: u32, address: Network): add_address, ImpReadyAfterAddAddress, (record_of(interface, address));
    /// Removes an address from the interface of this number.
    remove_address(interface: u32, address: Network): remove_address, ImpReadyAfterRemoveAddress, (record_of(interface, address));
    /// Adds a route.
    add_route(route: RouteRecord): add_route, ImpReadyAfterAddRoute, (route);
    /// Removes a route.
    remove_route(route: RouteRecord): remove_route, ImpReadyAfterRemoveRoute, (route);
    /// Sets the name servers.
    set_name_servers(servers: ExVec<HostAddress>): set_name_servers, ImpReadyAfterSetNameServers, (servers);
    /// Enables or disables DHCP on the interface of this number.
    set_dhcp(interface: u32, on: bool): set_dhcp, ImpReadyAfterSetDhcp, (interface, on);
}

impl IpStack {
    /// Opens the configuration of the network stack.
    ///
    /// # Errors
    /// There is no stack, or the program may not use it.
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

    /// Returns the counters since the stack started.
    ///
    /// # Errors
    /// The stack ended or failed.
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

    /// Sends an echo request with this many bytes of data, and waits for the reply with a timeout in milliseconds.
    ///
    /// # Errors
    /// The timeout passed, or the address cannot be reached.
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
