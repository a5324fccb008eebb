//! DNS resolution from servers that respond properly, late, never, or maliciously.

mod wire;

use std::task::{Poll, Waker};

use net_stack::{ConnectionId, Datagram, IpAddress, ListenerId, NameFailure, NameQuery, UdpId};
use wire::{Network, address};

const ALIAS: u16 = 5;

/// Name servers at hosts 0 to `count`, and a resolver at host `count`.
struct Resolver {
    network: Network,
    servers: Vec<UdpId>,
    caller: usize,
}

type Answer = Result<Vec<IpAddress>, NameFailure>;

fn wire_name(text: &str) -> Vec<u8> {
    let mut name = Vec::new();
    for label in text.split('.').filter(|label| !label.is_empty()) {
        name.push(label.len() as u8);
        name.extend(label.bytes());
    }
    name.push(0);
    name
}

fn record(owner: &[u8], kind: u16, seconds: u32, data: &[u8]) -> Vec<u8> {
    let mut record = owner.to_vec();
    record.extend(kind.to_be_bytes());
    record.extend([0, 1]);
    record.extend(seconds.to_be_bytes());
    record.extend((data.len() as u16).to_be_bytes());
    record.extend(data);
    record
}

/// A response to a question: the code in its two bytes of flags, and records.
fn answer(question: &[u8], code: u16, records: &[Vec<u8>]) -> Vec<u8> {
    let mut message = question.to_vec();
    message[2..4].copy_from_slice(&(0x8180 | code).to_be_bytes());
    message[7] = records.len() as u8;
    message.extend(records.concat());
    message
}

/// Returns the name and type of a question.
fn asked(question: &[u8]) -> (String, u16) {
    let (mut at, mut name) = (12, String::new());
    while question[at] > 0 {
        let length = usize::from(question[at]);
        name += std::str::from_utf8(&question[at + 1..at + 1 + length]).expect("a name");
        name.push('.');
        at += 1 + length;
    }
    (name, u16::from_be_bytes([question[at + 1], question[at + 2]]))
}

const OWN: [u8; 2] = [0xc0, 12];

impl Resolver {
    fn new(count: usize) -> Resolver {
        let mut network = Network::new(count + 1);
        let bind = |server: usize| network.stacks[server].udp_bind(None, 53).expect("a port").0;
        let servers = (0..count).map(bind).collect();
        let own: Vec<IpAddress> = (0..count).map(address).collect();
        network.stacks[count].set_name_servers(&own);
        Resolver { network, servers, caller: count }
    }

    fn begin(&mut self, name: &str, is_version_6: bool) -> NameQuery {
        let now_ns = self.network.now_ns;
        let stack = &mut self.network.stacks[self.caller];
        stack.set_time(now_ns);
        stack.resolve(name, is_version_6).expect("a question")
    }

    /// Queries, and lets servers respond: the callback gets the server's index and the question; `None` is no
    /// response.
    fn ask_with(
        &mut self,
        name: &str,
        is_version_6: bool,
        mut answers: impl FnMut(usize, &[u8]) -> Vec<Vec<u8>>,
    ) -> Answer {
        let query = self.begin(name, is_version_6);
        let (servers, caller) = (self.servers.clone(), self.caller);
        let done = self.network.until(100, |network| {
            for (number, server) in servers.iter().enumerate() {
                while let Poll::Ready(Ok(Datagram { remote, data })) =
                    network.stacks[number].poll_udp(*server, Waker::noop())
                {
                    for message in answers(number, &data) {
                        network.stacks[number].udp_send(*server, remote, &message).expect("it is sent");
                    }
                }
            }
            network.stacks[caller].poll_resolved(&query, Waker::noop())
        });
        done.expect("an end")
    }

    fn ask(&mut self, name: &str, mut answers: impl FnMut(usize, &[u8]) -> Vec<Vec<u8>>) -> Answer {
        self.ask_with(name, false, &mut answers)
    }
}

fn one(question: &[u8], seconds: u32) -> Vec<Vec<u8>> {
    vec![answer(question, 0, &[record(&OWN, 1, seconds, &[198, 51, 100, 7])])]
}

fn expected() -> Answer {
    Ok(vec![IpAddress::v4(198, 51, 100, 7)])
}

#[test]
fn addresses_of_both_versions_are_found_and_kept_for_their_time() {
    let mut resolver = Resolver::new(1);
    let mut count = 0;
    let mut server = |_: usize, question: &[u8]| {
        count += 1;
        assert_eq!(asked(question).0, "www.example.");
        match asked(question).1 {
            1 => one(question, 10),
            28 => {
                vec![answer(question, 0, &[record(&OWN, 28, 10, &wire::raw::octets("2001:db8::7".parse().unwrap()))])]
            }
            other => panic!("kind {other}"),
        }
    };
    assert_eq!(resolver.ask("WWW.example", &mut server), expected());
    assert_eq!(resolver.ask_with("www.example.", true, &mut server), Ok(vec!["2001:db8::7".parse().unwrap()]));
    assert_eq!(resolver.ask("www.EXAMPLE", &mut server), expected());
    resolver.network.pass_ms(11_000);
    assert_eq!(resolver.ask("www.example", &mut server), expected());
    assert_eq!(count, 3, "cached names are not queried");
    assert!(resolver.network.stacks[1].resolve("not a name", false).is_err());
}

#[test]
fn cname_chains_are_followed() {
    let mut resolver = Resolver::new(1);
    let chain = |question: &[u8]| {
        vec![answer(
            question,
            0,
            &[
                record(&OWN, ALIAS, 60, &wire_name("b.example")),
                record(&wire_name("b.example"), ALIAS, 60, &wire_name("c.example")),
                record(&wire_name("c.example"), 1, 60, &[198, 51, 100, 7]),
            ],
        )]
    };
    assert_eq!(resolver.ask("a.example", |_, question| chain(question)), expected());
    // A server that returns only the CNAME is queried again.
    let mut names = Vec::new();
    let found = resolver.ask("x.example", |_, question| {
        names.push(asked(question).0);
        match names.len() {
            1 => vec![answer(question, 0, &[record(&OWN, ALIAS, 60, &wire_name("y.example"))])],
            _ => one(question, 60),
        }
    });
    assert_eq!((found, names), (expected(), vec!["x.example.".to_owned(), "y.example.".to_owned()]));
    // An endless CNAME chain is not followed.
    let mut count = 0;
    let found = resolver.ask("z.example", |_, question| {
        count += 1;
        vec![answer(question, 0, &[record(&OWN, ALIAS, 60, &wire_name(&format!("z{count}.example")))])]
    });
    assert_eq!((found, count), (Err(NameFailure::Failed), 17));
    // A CNAME loop in one response ends too.
    let ring = resolver.ask("r.example", |_, question| {
        let records = [
            record(&OWN, ALIAS, 60, &wire_name("s.example")),
            record(&wire_name("s.example"), ALIAS, 60, &wire_name("r.example")),
        ];
        vec![answer(question, 0, &records)]
    });
    assert_eq!(ring, Err(NameFailure::Failed));
}

#[test]
fn nonexistence_and_failure_are_told_apart() {
    let mut resolver = Resolver::new(1);
    let mut soa = vec![0, 0];
    soa.extend([0; 16]);
    soa.extend(20u32.to_be_bytes());
    let mut count = 0;
    let mut none = |question: &[u8]| {
        count += 1;
        let mut message = answer(question, 3, &[]);
        message[9] = 1;
        message.extend(record(&wire_name("example"), 6, 3600, &soa));
        vec![message]
    };
    assert_eq!(resolver.ask("none.example", |_, question| none(question)), Err(NameFailure::NotFound));
    assert_eq!(resolver.ask("none.example", |_, question| none(question)), Err(NameFailure::NotFound));
    resolver.network.pass_ms(21_000);
    assert_eq!(resolver.ask("none.example", |_, question| none(question)), Err(NameFailure::NotFound));
    assert_eq!(count, 2, "the negative TTL is that of the zone");
    let empty = resolver.ask("empty.example", |_, question| vec![answer(question, 0, &[])]);
    assert_eq!(empty, Err(NameFailure::NotFound));
    for code in [1, 2, 5] {
        let failed = resolver.ask("failed.example", |_, question| vec![answer(question, code, &[])]);
        assert_eq!(failed, Err(NameFailure::Failed), "code {code}");
    }
    resolver.network.stacks[1].set_name_servers(&[]);
    assert_eq!(resolver.ask("a.example", |_, _| Vec::new()), Err(NameFailure::Failed));
}

#[test]
fn silent_or_failing_servers_are_skipped() {
    let mut resolver = Resolver::new(3);
    let before_ns = resolver.network.now_ns;
    let mut order = Vec::new();
    let found = resolver.ask("a.example", |server, question| {
        order.push(server);
        match server {
            0 => Vec::new(),
            1 => vec![answer(question, 2, &[])],
            _ => one(question, 60),
        }
    });
    assert_eq!((found, order), (expected(), vec![0, 1, 2]));
    assert!(resolver.network.now_ns - before_ns < 500_000_000, "only the silent one was waited for");
    let before_ns = resolver.network.now_ns;
    let mut count = 0;
    let found = resolver.ask("b.example", |_, _| {
        count += 1;
        Vec::new()
    });
    assert_eq!((found, count), (Err(NameFailure::TimedOut), 9));
    let took_ns = resolver.network.now_ns - before_ns;
    assert!((6_900_000_000..7_200_000_000).contains(&took_ns), "{took_ns}");
    // A late response is accepted all the same.
    let mut first = None;
    let found = resolver.ask("c.example", |server, question| match first.take() {
        None => {
            first = Some(question.to_vec());
            assert_eq!(server, 0);
            Vec::new()
        }
        Some(_) => one(question, 60),
    });
    assert_eq!(found, expected());
    // An ICMP error from a host without a name server makes the resolver try the next one immediately.
    let gone = resolver.servers[0];
    resolver.network.stacks[0].udp_close(gone);
    let before_ns = resolver.network.now_ns;
    let found = resolver.ask("d.example", |_, question| one(question, 60));
    assert_eq!(found, expected());
    assert!(resolver.network.now_ns - before_ns < 10_000_000);
}

#[test]
fn forged_responses_are_ignored() {
    let mut resolver = Resolver::new(1);
    let found = resolver.ask("a.example", |_, question| {
        let right = one(question, 60).remove(0);
        let lie = |change: fn(&mut Vec<u8>)| {
            let mut message = right.clone();
            let end = message.len();
            message[end - 4..].copy_from_slice(&[6, 6, 6, 6]);
            change(&mut message);
            message
        };
        vec![
            lie(|message| message[0] ^= 1),
            lie(|message| message[13] = b'b'),
            lie(|message| message[2] = 1),
            lie(|message| message[2] |= 0x10),
            lie(|message| message[5] = 2),
            lie(|message| message[24] = 2),
            // Compression pointers to themselves, forward, and out of the message.
            lie(|message| message[28] = 27),
            lie(|message| message[28] = 40),
            lie(|message| message[27] = 0xff),
            lie(|message| message[38] = 200),
            lie(|message| message.truncate(20)),
            lie(Vec::clear),
            // An address of an unrequested name.
            answer(question, 0, &[record(&wire_name("b.example"), 1, 60, &[6, 6, 6, 6])])[..11].to_vec(),
            right,
        ]
    });
    assert_eq!(found, expected());
    let foreign = resolver.ask("c.example", |_, question| {
        vec![answer(question, 0, &[record(&wire_name("b.example"), 1, 60, &[6, 6, 6, 6])])]
    });
    assert_eq!(foreign, Err(NameFailure::NotFound));
    // A host that is no name server responds before the name server does.
    let mut resolver = Resolver::new(2);
    resolver.network.stacks[2].set_name_servers(&[address(0)]);
    let liar = resolver.servers[1];
    let query = resolver.begin("d.example", false);
    let (servers, mut seen) = (resolver.servers.clone(), None);
    let found = resolver.network.until(5, |network| {
        if let Poll::Ready(Ok(datagram)) = network.stacks[0].poll_udp(servers[0], Waker::noop()) {
            let mut message = one(&datagram.data, 60).remove(0);
            let end = message.len();
            message[end - 4..].copy_from_slice(&[6, 6, 6, 6]);
            network.stacks[1].udp_send(liar, datagram.remote, &message).expect("it is sent");
            seen = Some(datagram);
        } else if let Some(Datagram { remote, data }) = seen.take() {
            network.stacks[0].udp_send(servers[0], remote, &one(&data, 60)[0]).expect("it is sent");
        }
        network.stacks[2].poll_resolved(&query, Waker::noop())
    });
    assert_eq!(found, Some(expected()));
}

/// The response to a question over TCP.
type ByStream<'a> = &'a dyn Fn(&[u8]) -> Vec<u8>;

/// A name server over TCP: requests received, and the connections to respond on.
struct Streams {
    listener: ListenerId,
    open: Vec<(ConnectionId, Vec<u8>)>,
}

impl Streams {
    fn serve(&mut self, network: &mut Network, answers: ByStream) {
        while let Poll::Ready(Ok(id)) = network.stacks[0].poll_accept(self.listener, Waker::noop()) {
            self.open.push((id, Vec::new()));
        }
        for (id, got) in &mut self.open {
            while let Poll::Ready(Ok(bytes)) = network.try_read(0, *id, 1000) {
                if bytes.is_empty() {
                    break;
                }
                got.extend(bytes);
                if got.len() > 2 {
                    let message = answers(&got[2..]);
                    let _ = network.try_write(0, *id, &message);
                }
            }
        }
    }
}

#[test]
fn truncated_responses_are_repeated_over_tcp() {
    let long = |question: &[u8]| {
        let records: Vec<_> = (0..60).map(|number| record(&OWN, 1, 60, &[198, 51, 100, number])).collect();
        let message = answer(question, 0, &records);
        [&(message.len() as u16).to_be_bytes()[..], &message].concat()
    };
    let cut = |question: &[u8]| {
        let mut message = answer(question, 0x200, &[]);
        message[0..2].copy_from_slice(&question[0..2]);
        [&(message.len() as u16).to_be_bytes()[..], &message].concat()
    };
    let nothing = |_: &[u8]| Vec::new();
    let huge = |_: &[u8]| vec![0xff; 3000];
    let right = (0..16).map(|number| IpAddress::v4(198, 51, 100, number)).collect();
    let cases: [(&str, ByStream, Answer); 4] = [
        ("an answer", &long, Ok(right)),
        ("cut again", &cut, Err(NameFailure::Failed)),
        ("silence", &nothing, Err(NameFailure::Failed)),
        ("too much", &huge, Err(NameFailure::Failed)),
    ];
    for (what, by_stream, expected) in cases {
        let mut resolver = Resolver::new(1);
        let listener = resolver.network.listen(0, 53, 4);
        let mut streams = Streams { listener, open: Vec::new() };
        let query = resolver.begin("long.example", false);
        let (server, caller) = (resolver.servers[0], resolver.caller);
        let found = resolver.network.until(100, |network| {
            if let Poll::Ready(Ok(Datagram { remote, data })) = network.stacks[0].poll_udp(server, Waker::noop()) {
                network.stacks[0].udp_send(server, remote, &answer(&data, 0x200, &[])).expect("it is sent");
            }
            streams.serve(network, by_stream);
            network.stacks[caller].poll_resolved(&query, Waker::noop())
        });
        assert_eq!(found, Some(expected), "{what}");
        for (id, _) in streams.open {
            resolver.network.stacks[0].release(id);
        }
        resolver.network.pass_ms(200_000);
        assert_eq!(resolver.network.stacks[caller].tcp_sockets(), 0, "{what}");
    }
    // There is no server over TCP, and a forgotten question leaves nothing.
    let mut resolver = Resolver::new(1);
    let refused = resolver.ask("a.example", |_, question| vec![answer(question, 0x200, &[])]);
    assert_eq!(refused, Err(NameFailure::Failed));
    let listener = resolver.network.listen(0, 53, 4);
    let query = resolver.begin("b.example", false);
    let server = resolver.servers[0];
    resolver.network.until(1, |network| -> Poll<()> {
        if let Poll::Ready(Ok(Datagram { remote, data })) = network.stacks[0].poll_udp(server, Waker::noop()) {
            network.stacks[0].udp_send(server, remote, &answer(&data, 0x200, &[])).expect("it is sent");
        }
        Poll::Pending
    });
    let accepted = resolver.network.accept(0, listener);
    resolver.network.stacks[1].forget_query(query);
    resolver.network.stacks[0].release(accepted);
    resolver.network.pass_ms(200_000);
    assert_eq!(resolver.network.stacks[1].tcp_sockets(), 0);
    assert_eq!(resolver.network.stacks[1].next_time_ns(), None);
}

#[test]
fn queries_are_bounded_and_time_out() {
    let mut resolver = Resolver::new(1);
    let queries: Vec<_> = (0..64).map(|number| resolver.begin(&format!("{number}.example"), false)).collect();
    assert!(resolver.network.stacks[1].resolve("one.more.example", false).is_err());
    resolver.network.pass_ms(20_000);
    for query in queries {
        let ended = resolver.network.stacks[1].poll_resolved(&query, Waker::noop());
        assert_eq!(ended, Poll::Ready(Err(NameFailure::TimedOut)));
    }
    assert_eq!(resolver.ask("again.example", |_, question| one(question, 60)), expected());
}

#[test]
fn responses_do_not_go_to_other_sockets() {
    let mut resolver = Resolver::new(1);
    // The maximum, which take a quarter of all ports.
    let bound = |resolver: &mut Resolver| resolver.network.stacks[1].udp_bind(None, 0).is_ok();
    while bound(&mut resolver) {}
    for number in 0..40 {
        assert_eq!(resolver.ask(&format!("{number}.example"), |_, question| one(question, 60)), expected());
    }
}
