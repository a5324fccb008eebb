//! DHCP: obtaining, renewing and losing a lease. The server is part of the test.

mod wire;

use std::cell::RefCell;
use std::rc::Rc;

use net_stack::{Address, End, IpAddress, IpCidr, Origin};
use wire::{Network, hardware, raw};

const DISCOVER: u8 = 1;
const OFFER: u8 = 2;
const REQUEST: u8 = 3;
const ACK: u8 = 5;
const NAK: u8 = 6;

const SERVER: [u8; 4] = [198, 51, 100, 1];
const LENT: [u8; 4] = [198, 51, 100, 20];
const SERVER_HARDWARE: [u8; 6] = [2, 0, 0, 0, 0, 0x55];

/// A client's message.
#[derive(Clone, Debug)]
struct Asked {
    kind: u8,
    number: [u8; 4],
    /// Source address, and whether it was broadcast.
    source: [u8; 4],
    is_for_all: bool,
    at_s: u64,
}

/// The server's side of the link of host 0.
struct Server {
    network: Network,
    asked: Rc<RefCell<Vec<Asked>>>,
    now_s: Rc<RefCell<u64>>,
    begun_s: u64,
}

fn option(message: &[u8], wanted: u8) -> Option<&[u8]> {
    let mut rest = message.get(240..)?;
    while let [kind, length, after @ ..] = rest {
        if *kind == 255 {
            return None;
        }
        let (data, next) = after.split_at_checked(usize::from(*length))?;
        if *kind == wanted {
            return Some(data);
        }
        rest = next;
    }
    None
}

/// A server's reply.
fn frame(to: &Asked, kind: u8, lent: [u8; 4], seconds: u32, options: &[u8]) -> Vec<u8> {
    let mut message = vec![0; 236];
    message[..4].copy_from_slice(&[2, 1, 6, 0]);
    message[4..8].copy_from_slice(&to.number);
    message[16..20].copy_from_slice(&lent);
    message[28..34].copy_from_slice(&hardware(0).0);
    message.extend([0x63, 0x82, 0x53, 0x63, 53, 1, kind, 54, 4]);
    message.extend(SERVER);
    if kind != NAK {
        message.extend([51, 4]);
        message.extend(seconds.to_be_bytes());
        message.extend([1, 4, 255, 255, 255, 0]);
        message.extend(options);
    }
    message.push(255);
    let mut udp = vec![0, 67, 0, 68];
    udp.extend((8 + message.len() as u16).to_be_bytes());
    udp.extend([0, 0]);
    udp.extend(message);
    let (source, destination) = (IpAddress::Ipv4(SERVER.into()), IpAddress::v4(255, 255, 255, 255));
    raw::ip([0xff; 6], SERVER_HARDWARE, source, destination, 17, &udp)
}

impl Server {
    fn new() -> Server {
        let mut network = Network::new(1);
        let asked: Rc<RefCell<Vec<Asked>>> = Rc::default();
        let now_s = Rc::new(RefCell::new(0));
        let (seen, now) = (Rc::clone(&asked), Rc::clone(&now_s));
        network.filter = Some(Box::new(move |_, frame| {
            if frame[12..14] == [8, 0] && frame[23] == 17 && frame[36..38] == [0, 67] {
                let message = &frame[42..];
                seen.borrow_mut().push(Asked {
                    kind: option(message, 53).expect("a kind")[0],
                    number: message[4..8].try_into().unwrap(),
                    source: frame[26..30].try_into().unwrap(),
                    is_for_all: frame[30..34] == [255; 4],
                    at_s: *now.borrow(),
                });
            }
            true
        }));
        network.stacks[0].set_dhcp(true);
        let begun_s = network.now_ns / 1_000_000_000;
        Server { network, asked, now_s, begun_s }
    }

    fn answer(&mut self, to: &Asked, kind: u8, lent: [u8; 4], seconds: u32, more: &[u8]) {
        let options = [&[3, 4], &SERVER[..], more].concat();
        self.network.put(0, frame(to, kind, lent, seconds, &options));
    }

    /// Grants a lease of this many seconds with these options and no others.
    fn lend_with(&mut self, seconds: u32, options: &[u8]) {
        for (asked, answered) in [(DISCOVER, OFFER), (REQUEST, ACK)] {
            let asked_for = self.wait(30);
            assert_eq!(asked_for.kind, asked);
            self.network.put(0, frame(&asked_for, answered, LENT, seconds, options));
        }
        self.network.pass_ms(10);
    }

    /// Advances one second; returns the messages sent in it.
    fn second(&mut self) -> Vec<Asked> {
        self.network.pass_ms(1000);
        *self.now_s.borrow_mut() = self.network.now_ns / 1_000_000_000 - self.begun_s;
        // The client resolves the server's address to renew.
        let arp = [
            &hardware(0).0[..],
            &SERVER_HARDWARE,
            &[8, 6, 0, 1, 8, 0, 6, 4, 0, 2],
            &SERVER_HARDWARE,
            &SERVER,
            &hardware(0).0,
            &LENT,
        ];
        self.network.put(0, arp.concat());
        self.asked.take()
    }

    /// Waits for a message.
    fn wait(&mut self, max_s: u64) -> Asked {
        for _ in 0..max_s {
            if let Some(asked) = self.second().pop() {
                return asked;
            }
        }
        panic!("no message for {max_s} s");
    }

    /// Grants a lease of this many seconds to a client without one.
    fn lend(&mut self, lent: [u8; 4], seconds: u32) {
        let discover = self.wait(30);
        assert_eq!((discover.kind, discover.source, discover.is_for_all), (DISCOVER, [0; 4], true));
        self.answer(&discover, OFFER, lent, seconds, &[]);
        let request = self.wait(5);
        assert_eq!((request.kind, request.source), (REQUEST, [0; 4]));
        self.answer(&request, ACK, lent, seconds, &[6, 8, 198, 51, 100, 53, 198, 51, 100, 54]);
        self.network.pass_ms(10);
    }

    fn lent(&self) -> Option<IpCidr> {
        let all = self.network.stacks[0].addresses().iter();
        all.filter(|own| own.origin == Origin::Dhcp).map(|own| own.network).next()
    }

    fn ways(&self) -> usize {
        self.network.stacks[0].routes().len()
    }
}

fn network_of(address: [u8; 4]) -> Option<IpCidr> {
    Some(IpCidr::new(IpAddress::Ipv4(address.into()), 24))
}

#[test]
fn a_lease_has_an_address_a_router_and_name_servers() {
    let mut server = Server::new();
    server.lend(LENT, 600);
    assert_eq!(server.lent(), network_of(LENT));
    let route = server.network.stacks[0].routes()[0];
    assert_eq!((route.gateway, route.learnt), (IpAddress::Ipv4(SERVER.into()), true));
    let servers = [[198, 51, 100, 53], [198, 51, 100, 54]].map(|address: [u8; 4]| IpAddress::Ipv4(address.into()));
    assert_eq!(server.network.stacks[0].name_servers(), servers);
    server.network.stacks[0].set_dhcp(false);
    assert_eq!((server.lent(), server.ways()), (None, 0));
    assert_eq!(server.network.stacks[0].addresses().len(), 1, "what somebody set stays");
    assert_eq!(server.network.stacks[0].name_servers(), [], "name servers of the old network remain");
}

#[test]
fn of_several_routers_the_first_is_taken() {
    let mut server = Server::new();
    server.lend_with(
        600,
        &[&[0, 3, 12], &SERVER[..], &[198, 51, 100, 2, 198, 51, 100, 3, 6, 4, 198, 51, 100, 53]].concat(),
    );
    let ways: Vec<IpAddress> = server.network.stacks[0].routes().iter().map(|route| route.gateway).collect();
    assert_eq!(ways, [IpAddress::Ipv4(SERVER.into())]);
    assert_eq!(server.network.stacks[0].name_servers(), [IpAddress::v4(198, 51, 100, 53)]);
}

#[test]
fn malformed_options_are_skipped() {
    for options in [&[3][..], &[3, 12, 1], &[3, 255], &[3, 0], &[3, 5, 1, 2, 3, 4], &[0, 0, 3], &[1, 0, 3, 200, 9]] {
        let mut server = Server::new();
        server.lend_with(600, options);
        assert!(server.lent().is_none_or(|lent| Some(lent) == network_of(LENT)), "{options:?}");
    }
}

#[test]
fn checksums_are_verified_unless_the_interface_did() {
    let mut server = Server::new();
    let discover = server.wait(30);
    let mut offer = frame(&discover, OFFER, LENT, 600, &[]);
    offer[40] ^= 1;
    server.network.put(0, offer.clone());
    server.network.pass_ms(2000);
    assert!(server.asked.take().iter().all(|asked| asked.kind == DISCOVER));
    // A reply from the same physical host, which never crossed a wire, has only the pseudo-header sum.
    let discover = server.wait(30);
    offer[46..50].copy_from_slice(&discover.number);
    server.network.stacks[0].receive(&offer, true);
    assert_eq!(server.wait(5).kind, REQUEST);
}

#[test]
fn a_lease_and_its_connections_survive_a_restart_of_the_driver() {
    let mut server = Server::new();
    server.lend(LENT, 600);
    let lent_s = *server.now_s.borrow();
    let listener = server.network.stacks[0].listen(None, 80, 4).expect("a port").0;
    let own = IpAddress::Ipv4(LENT.into());
    let client = server.network.connect(0, End::new(own, 80)).expect("a connection");
    let accepted = server.network.accept(0, listener);
    let renew = |server: &mut Server, card: usize| {
        server.network.stacks[0].renew_link(hardware(card), 1500, net_stack::Features::default());
        for _ in 0..wire::BUFFERS {
            server.network.stacks[0].give(vec![0; 1514]);
        }
        server.network.pass_ms(100);
    };
    renew(&mut server, 0);
    assert_eq!((server.lent(), server.ways()), (network_of(LENT), 1));
    assert!(server.network.carry((0, client), (0, accepted), &[7; 1000]) == [7; 1000]);
    let renewal = server.wait(400);
    assert_eq!((renewal.kind, renewal.source), (REQUEST, LENT));
    assert!((290..=310).contains(&(renewal.at_s - lent_s)), "after {} s", renewal.at_s - lent_s);
    // Another interface may be on another network.
    renew(&mut server, 7);
    assert_eq!((server.lent(), server.ways()), (None, 0));
    assert_eq!(server.wait(5).kind, DISCOVER);
}

#[test]
fn static_name_servers_survive_the_lease() {
    let mut server = Server::new();
    server.lend(LENT, 600);
    let own = [IpAddress::v4(203, 0, 113, 53)];
    server.network.stacks[0].set_name_servers(&own);
    server.network.stacks[0].set_dhcp(false);
    assert_eq!(server.network.stacks[0].name_servers(), own);
}

#[test]
fn a_lease_is_renewed_in_time() {
    let mut server = Server::new();
    server.lend(LENT, 600);
    let lent_s = *server.now_s.borrow();
    let renewal = server.wait(400);
    assert_eq!((renewal.kind, renewal.source, renewal.is_for_all), (REQUEST, LENT, false));
    assert!((290..=310).contains(&(renewal.at_s - lent_s)), "after {} s", renewal.at_s - lent_s);
    server.answer(&renewal, ACK, LENT, 600, &[]);
    // Renewed.
    let renewed_s = renewal.at_s;
    let again = server.wait(400);
    assert!((290..=310).contains(&(again.at_s - renewed_s)), "after {} s", again.at_s - renewed_s);
    assert_eq!(server.lent(), network_of(LENT));
}

#[test]
fn an_unrenewed_lease_is_rebound_and_expires() {
    let mut server = Server::new();
    server.lend(LENT, 600);
    let listener = server.network.stacks[0].listen(None, 80, 4).expect("a port").0;
    let connection = server.network.stacks[0].connect(End::new(IpAddress::v4(198, 51, 100, 9), 80)).expect("begun");
    let lent_s = *server.now_s.borrow();
    let (mut of_one, mut of_all, mut ended_s) = (0, 0, None);
    for _ in 0..700 {
        let asked_now = server.second();
        if server.lent().is_none() {
            ended_s.get_or_insert(*server.now_s.borrow() - lent_s);
        }
        for asked in asked_now {
            match (asked.kind, asked.is_for_all) {
                (REQUEST, false) => of_one += 1,
                (REQUEST, true) => {
                    of_all += 1;
                    assert!(asked.at_s - lent_s >= 520, "asked of all after {} s", asked.at_s - lent_s);
                }
                _ => assert!(ended_s.is_some(), "{asked:?}"),
            }
        }
    }
    assert!(of_one >= 1 && of_all >= 1, "{of_one} of one, {of_all} of all");
    let ended_s = ended_s.expect("an end");
    assert!((595..=605).contains(&ended_s), "expired after {ended_s} s");
    assert_eq!(server.ways(), 0);
    assert!(server.network.stacks[0].ends(connection).is_some());
    server.network.stacks[0].release(connection);
    server.network.stacks[0].close_listener(listener);
    server.network.pass_ms(100);
    assert_eq!(server.network.stacks[0].tcp_sockets(), 0);
    // Another server appears later.
    server.asked.take();
    server.lend([198, 51, 100, 30], 600);
    assert_eq!(server.lent(), network_of([198, 51, 100, 30]));
}

#[test]
fn a_nak_ends_the_lease_at_once() {
    let mut server = Server::new();
    server.lend(LENT, 600);
    let renewal = server.wait(400);
    server.answer(&renewal, NAK, [0; 4], 0, &[]);
    server.network.pass_ms(100);
    assert_eq!((server.lent(), server.ways()), (None, 0));
    server.asked.take();
    server.lend([198, 51, 100, 40], 600);
    assert_eq!(server.lent(), network_of([198, 51, 100, 40]));
}

#[test]
fn a_withdrawn_offer_is_not_used() {
    let mut server = Server::new();
    let discover = server.wait(30);
    server.answer(&discover, OFFER, LENT, 600, &[]);
    let request = server.wait(5);
    server.answer(&request, NAK, [0; 4], 0, &[]);
    server.network.pass_ms(10);
    assert_eq!(server.lent(), None);
    server.asked.take();
    server.lend(LENT, 600);
    assert_eq!(server.lent(), network_of(LENT));
}

#[test]
fn replies_to_others_and_malformed_ones_are_ignored() {
    let mut server = Server::new();
    let discover = server.wait(30);
    let mut other = discover.clone();
    other.number[0] ^= 1;
    server.answer(&other, OFFER, LENT, 600, &[]);
    server.answer(&other, ACK, LENT, 600, &[]);
    server.answer(&discover, ACK, LENT, 600, &[]);
    // An invalid host address.
    server.answer(&discover, OFFER, [255; 4], 600, &[]);
    server.network.pass_ms(2000);
    let asked = server.asked.take();
    assert!(asked.iter().all(|asked| asked.kind == DISCOVER), "{asked:?}");
    assert_eq!(server.lent(), None);
    server.lend(LENT, 600);
    // A statically configured address that is also leased is kept.
    let own = Address { network: IpCidr::new(IpAddress::v4(198, 51, 100, 99), 24), origin: Origin::Set };
    server.network.stacks[0].add_address(own).expect("room");
    assert_eq!(server.lent(), network_of(LENT));
}
