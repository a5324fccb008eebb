//! Asking name servers for the addresses of names: smoltcp's resolver.

use alloc::vec::Vec;
use core::task::{Poll, Waker};

use smoltcp::iface::{Interface, PollResult, SocketHandle, SocketSet};
use smoltcp::socket::dns::{self, GetQueryResultError, QueryHandle, StartQueryError};
use smoltcp::wire::{DnsQueryType, IpAddress};

use crate::ends::Failure;
use crate::output::{Buffer, Output};
use crate::port::Port;
use crate::tcp::{instant, nanoseconds};

/// Questions at once.
const MOST: usize = 64;
/// Name servers at most.
pub(crate) const MOST_SERVERS: usize = 4;

/// A question, until it is forgotten.
#[must_use]
pub struct NameQuery(QueryHandle);

/// The resolver.
pub(crate) struct Names {
    set: SocketSet<'static>,
    handle: SocketHandle,
    servers: Vec<IpAddress>,
    asked: usize,
}

impl Names {
    pub(crate) fn new() -> Names {
        let mut set = SocketSet::new(Vec::with_capacity(1));
        let handle = set.add(dns::Socket::new(&[], Vec::new()));
        Names { set, handle, servers: Vec::new(), asked: 0 }
    }

    pub(crate) fn servers(&self) -> &[IpAddress] {
        &self.servers
    }

    pub(crate) fn set_servers(&mut self, servers: &[IpAddress]) {
        self.servers = servers.iter().copied().take(MOST_SERVERS).collect();
        let resolver = self.set.get_mut::<dns::Socket>(self.handle);
        resolver.update_servers(&self.servers);
    }

    pub(crate) fn ask(
        &mut self,
        interface: &mut Interface,
        name: &str,
        is_version_6: bool,
    ) -> Result<NameQuery, Failure> {
        if self.asked >= MOST {
            return Err(Failure::Exhausted);
        }
        let kind = if is_version_6 { DnsQueryType::Aaaa } else { DnsQueryType::A };
        let started = self.set.get_mut::<dns::Socket>(self.handle).start_query(interface.context(), name, kind);
        match started {
            Ok(handle) => {
                self.asked += 1;
                Ok(NameQuery(handle))
            }
            Err(StartQueryError::NoFreeSlot) => Err(Failure::Exhausted),
            Err(StartQueryError::InvalidName | StartQueryError::NameTooLong) => Err(Failure::BadAddress),
        }
    }

    /// The answer, with which the question is over; none: there are no such addresses, or nobody answered.
    pub(crate) fn poll(&mut self, query: &NameQuery, waker: &Waker) -> Poll<Vec<IpAddress>> {
        let resolver = self.set.get_mut::<dns::Socket>(self.handle);
        match resolver.get_query_result(query.0) {
            Ok(addresses) => {
                self.asked -= 1;
                Poll::Ready(addresses.to_vec())
            }
            Err(GetQueryResultError::Failed) => {
                self.asked -= 1;
                Poll::Ready(Vec::new())
            }
            Err(GetQueryResultError::Pending) => {
                resolver.register_query_waker(query.0, waker);
                Poll::Pending
            }
        }
    }

    pub(crate) fn forget(&mut self, query: NameQuery) {
        self.asked -= 1;
        self.set.get_mut::<dns::Socket>(self.handle).cancel_query(query.0);
    }

    /// Takes a datagram that is nobody else's.
    pub(crate) fn receive<B: Buffer>(&mut self, interface: &mut Interface, output: &mut Output<B>, packet: &[u8]) {
        let now = instant(output.now_ns);
        interface.poll_ingress_single(now, &mut Port { output, input: Some(packet) }, &mut self.set);
    }

    pub(crate) fn serve<B: Buffer>(&mut self, interface: &mut Interface, output: &mut Output<B>) {
        let now = instant(output.now_ns);
        while self.asked > 0
            && interface.poll_egress(now, &mut Port { output, input: None }, &mut self.set)
                == PollResult::SocketStateChanged
        {}
    }

    pub(crate) fn next_time_ns(&self, interface: &mut Interface, now_ns: u64) -> Option<u64> {
        if self.asked == 0 {
            return None;
        }
        interface.poll_at(instant(now_ns), &self.set).map(|time| nanoseconds(time).max(now_ns + 1_000_000))
    }
}
