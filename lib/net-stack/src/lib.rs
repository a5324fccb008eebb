//! IP, TCP and UDP over one network interface: packets and the time go in, packets and sockets come out.
//!
//! Key type: [`Stack`]. The state machine of a TCP connection is the crate `tcp`'s, packet formats are smoltcp's; here
//! is the rest: the connection table and timers (`tcp`), neighbours and routes (`neighbours`, `routes`), datagrams
//! (`udp`), echoes (`echo`). Nothing here blocks: a pending poll registers a `Waker`. Deliberately not here: channels,
//! threads, clocks and the network interface itself.
#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]

extern crate alloc;

mod addresses;
mod checksum;
mod counters;
mod dhcp;
mod discovery;
mod echo;
mod ends;
mod fragments;
mod icmp;
mod input;
mod names;
mod neighbours;
mod output;
mod packet;
mod paths;
mod random;
mod routes;
mod socket_info;
mod stack;
mod tcp;
mod udp;

pub use addresses::{Address, Origin};
pub use counters::Counters;
pub use echo::{Echo, EchoId};
pub use ends::{End, Failure, NameFailure};
pub use names::{NameQuery, is_name};
pub use output::{Buffer, Features, MAX_TSO_BYTES, Outgoing};
pub use routes::Route;
pub use smoltcp::wire::{EthernetAddress, IpAddress, IpCidr};
pub use socket_info::SocketInfo;
pub use stack::{Configuration, Stack};
pub use tcp::{ConnectionId, Limits, ListenerId};
pub use udp::{Datagram, UdpId};
