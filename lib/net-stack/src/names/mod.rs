//! DNS stub resolver (RFC 1035).
//!
//! Each query tries the servers round-robin over UDP; after a truncated response it is repeated over TCP. A response
//! is accepted only if it matches the query and comes from a queried server, to the query's source port and with its
//! identifier. Neighbours: `message` (wire format), `cache`, `stream` (TCP).

mod cache;
mod message;
mod stream;

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::task::{Poll, Waker};

use smoltcp::wire::IpAddress;

use crate::ends::{End, Failure, NameFailure};
use crate::icmp::{Error, ErrorKind};
use crate::output::{Buffer, Output};
use crate::packet::IpHeader;
use crate::tcp::Tcp;
use crate::udp::{self, Udp};

use cache::Cache;
use message::{Kind, Reply};
use stream::{Progress, Stream};

/// Maximum simultaneous queries.
const MAX_QUERIES: usize = 64;
/// Maximum number of name servers.
pub(crate) const MAX_SERVERS: usize = 4;
/// Port of name servers.
pub(crate) const PORT: u16 = 53;
/// Rounds over all servers, and the timeout of the first; it doubles each round.
const ROUNDS: u32 = 3;
const TIMEOUT_NS: u64 = 1_000_000_000;
/// Minimum timeout per server, in nanoseconds.
const MIN_TIMEOUT_NS: u64 = 300_000_000;
/// Retry interval when no buffer is free, in nanoseconds.
const RETRY_NS: u64 = 10_000_000;

/// A query, until it is released.
#[must_use]
pub struct NameQuery(u64);

enum State {
    Asking,
    Streaming(Stream),
    Done(Result<Vec<IpAddress>, NameFailure>),
}

struct Question {
    /// The requested name, and the one queried now: they differ after a CNAME.
    wanted: Vec<u8>,
    name: Vec<u8>,
    kind: Kind,
    aliases: usize,
    /// Minimum TTL so far, in seconds.
    seconds: u32,
    id: u16,
    port: u16,
    /// Servers tried so far.
    tries: u32,
    next_ns: u64,
    /// Whether a server reported failure.
    has_failed: bool,
    state: State,
    waker: Option<Waker>,
}

/// The resolver.
#[derive(Default)]
pub(crate) struct Names {
    servers: Vec<IpAddress>,
    queries: BTreeMap<u64, Question>,
    next: u64,
    cache: Cache,
}

impl Question {
    fn finish(&mut self, answer: Result<Vec<IpAddress>, NameFailure>) {
        self.state = State::Done(answer);
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }

    /// Returns whether a response at a port may be for it.
    fn is_sent_from(&self, port: u16) -> bool {
        self.port == port && self.tries > 0 && matches!(self.state, State::Asking)
    }

    /// Returns the server queried last.
    fn server(&self, servers: &[IpAddress]) -> Option<IpAddress> {
        let last = self.tries.checked_sub(1)? as usize;
        servers.get(last % servers.len().max(1)).copied()
    }

    /// Processes a server's response.
    fn take(&mut self, server: IpAddress, reply: Reply, cache: &mut Cache, now_ns: u64) {
        match reply {
            Reply::Addresses(addresses, seconds) => {
                let seconds = self.seconds.min(seconds);
                cache.keep(self.wanted.clone(), self.kind, addresses.clone(), seconds, now_ns);
                self.finish(Ok(addresses));
            }
            Reply::Nothing(seconds) => {
                let seconds = self.seconds.min(seconds);
                cache.keep(self.wanted.clone(), self.kind, Vec::new(), seconds, now_ns);
                self.finish(Err(NameFailure::NotFound));
            }
            Reply::Alias(..) if self.aliases >= message::MAX_ALIASES => self.finish(Err(NameFailure::Failed)),
            Reply::Alias(name, seconds) => {
                self.name = name;
                self.aliases += 1;
                self.seconds = self.seconds.min(seconds);
                (self.state, self.tries, self.next_ns) = (State::Asking, 0, now_ns);
            }
            Reply::Cut if matches!(self.state, State::Asking) => {
                self.state = State::Streaming(Stream::new(server, self.question(), now_ns));
            }
            Reply::Cut | Reply::Failed => self.ask_next(now_ns),
        }
    }

    /// Advances to the server after the one queried last.
    fn ask_next(&mut self, now_ns: u64) {
        self.has_failed = true;
        (self.state, self.next_ns) = (State::Asking, now_ns);
    }

    fn question(&self) -> Vec<u8> {
        message::question(self.id, &self.name, self.kind)
    }

    /// Queries the next server; if none is left to try, the query ends.
    fn ask<B: Buffer>(&mut self, output: &mut Output<B>, servers: &[IpAddress]) {
        let count = servers.len() as u32;
        if self.tries >= ROUNDS * count {
            let failure = if self.has_failed { NameFailure::Failed } else { NameFailure::TimedOut };
            return self.finish(Err(failure));
        }
        if !output.has_room() {
            self.next_ns = output.now_ns + RETRY_NS;
            return;
        }
        let round = self.tries / count;
        self.tries += 1;
        let Some(server) = self.server(servers) else { return };
        self.next_ns = output.now_ns + ((TIMEOUT_NS << round) / u64::from(count)).max(MIN_TIMEOUT_NS);
        let sent = udp::send_from(output, None, self.port, End::new(server, PORT), &self.question());
        if sent.is_err() {
            self.next_ns = output.now_ns;
        }
    }
}

/// Whether a text can be a name: labels of at most 63 printable ASCII characters, 253 in all (RFC 1035, section 2.3.4).
pub fn is_name(text: &str) -> bool {
    message::name(text).is_some()
}

impl Names {
    pub(crate) fn servers(&self) -> &[IpAddress] {
        &self.servers
    }

    pub(crate) fn set_servers(&mut self, servers: &[IpAddress]) {
        let new: Vec<IpAddress> = servers.iter().copied().take(MAX_SERVERS).collect();
        if new != self.servers {
            self.servers = new;
            self.cache.clear();
        }
    }

    /// Returns whether a query uses this source port.
    pub(crate) fn has_port(&self, port: u16) -> bool {
        self.queries.values().any(|question| question.port == port)
    }

    /// Starts a query, from a port without a bound socket, which would otherwise receive the responses.
    pub(crate) fn ask(
        &mut self,
        tcp: &mut Tcp,
        udp: &Udp,
        now_ns: u64,
        name: &str,
        is_version_6: bool,
    ) -> Result<NameQuery, Failure> {
        let name = message::name(name).ok_or(Failure::BadAddress)?;
        if self.queries.len() >= MAX_QUERIES {
            return Err(Failure::Exhausted);
        }
        let kind = if is_version_6 { Kind::Version6 } else { Kind::Version4 };
        let state = match self.cache.get(&name, kind, now_ns) {
            Some([]) => State::Done(Err(NameFailure::NotFound)),
            Some(addresses) => State::Done(Ok(addresses.to_vec())),
            None if self.servers.is_empty() => State::Done(Err(NameFailure::Failed)),
            None => State::Asking,
        };
        let port = tcp.free_port(|_, port| !self.has_port(port) && !udp.is_taken(None, port))?;
        let number = self.next;
        self.next += 1;
        let question = Question {
            wanted: name.clone(),
            name,
            kind,
            aliases: 0,
            seconds: u32::MAX,
            id: tcp.secret() as u16,
            port,
            tries: 0,
            next_ns: now_ns,
            has_failed: false,
            state,
            waker: None,
        };
        self.queries.insert(number, question);
        Ok(NameQuery(number))
    }

    /// Polls for the result, which ends the query.
    pub(crate) fn poll(&mut self, query: &NameQuery, waker: &Waker) -> Poll<Result<Vec<IpAddress>, NameFailure>> {
        let Some(question) = self.queries.get_mut(&query.0) else {
            return Poll::Ready(Err(NameFailure::Failed));
        };
        if let State::Done(answer) = &mut question.state {
            let answer = core::mem::replace(answer, Err(NameFailure::Failed));
            self.queries.remove(&query.0);
            return Poll::Ready(answer);
        }
        question.waker = Some(waker.clone());
        Poll::Pending
    }

    pub(crate) fn forget(&mut self, tcp: &mut Tcp, now_ns: u64, query: NameQuery) {
        if let Some(Question { state: State::Streaming(stream), .. }) = self.queries.remove(&query.0) {
            stream.close(tcp, now_ns);
        }
    }

    /// Processes a datagram from a name server's port that matches no socket; returns `false` if it matches no query.
    pub(crate) fn receive(&mut self, now_ns: u64, header: &IpHeader, packet: &[u8]) -> bool {
        let payload = header.payload(packet);
        let Some(udp::Header { destination_port: port, bytes, .. }) = udp::Header::parse(payload) else { return false };
        let data = payload.get(udp::HEADER_BYTES..usize::from(bytes));
        let server = header.source;
        let Names { servers, queries, cache, .. } = self;
        let asked = queries.values_mut().find(|question| question.is_sent_from(port));
        let Some(question) = asked.filter(|_| servers.contains(&server)) else { return false };
        let reply = data.and_then(|data| message::read(data, question.id, &question.name, question.kind));
        if let Some(reply) = reply {
            // A late response from another server is accepted too, unless it reports failure.
            let is_late = question.server(servers) != Some(server);
            if !(is_late && reply == Reply::Failed) {
                question.take(server, reply, cache, now_ns);
            }
        }
        true
    }

    /// Processes an error about a query to a server; returns `false` if there is no such query.
    pub(crate) fn receive_error(&mut self, error: &Error, own_port: u16, port: u16, now_ns: u64) -> bool {
        let server = error.header.destination;
        let Names { servers, queries, .. } = self;
        let asked = queries.values_mut().find(|question| port == PORT && question.is_sent_from(own_port));
        let Some(question) = asked.filter(|question| question.server(servers) == Some(server)) else { return false };
        if !matches!(error.kind, ErrorKind::TooLong { .. }) {
            // It may be forged; the others are queried, and this one again later.
            question.next_ns = now_ns;
        }
        true
    }

    pub(crate) fn serve<B: Buffer>(&mut self, tcp: &mut Tcp, output: &mut Output<B>) {
        let Names { servers, queries, cache, .. } = self;
        let now_ns = output.now_ns;
        for question in queries.values_mut() {
            if let State::Streaming(stream) = &mut question.state {
                let reply = match stream.serve(tcp, output) {
                    Progress::Waits => continue,
                    Progress::Answer(data) => message::read(&data, question.id, &question.name, question.kind),
                    Progress::Failed => None,
                };
                let server = stream.server();
                if let State::Streaming(stream) = core::mem::replace(&mut question.state, State::Asking) {
                    stream.close(tcp, now_ns);
                }
                match reply {
                    Some(Reply::Cut) | None => question.ask_next(now_ns),
                    Some(reply) => question.take(server, reply, cache, now_ns),
                }
            }
            while matches!(question.state, State::Asking) && question.next_ns <= now_ns {
                question.ask(output, servers);
            }
        }
    }

    pub(crate) fn next_time_ns(&self) -> Option<u64> {
        let times = self.queries.values().filter_map(|question| match &question.state {
            State::Asking => Some(question.next_ns),
            State::Streaming(stream) => Some(stream.until_ns()),
            State::Done(_) => None,
        });
        times.min()
    }
}
