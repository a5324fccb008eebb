//! DHCP client: smoltcp's, with a view of the link of its own.

use alloc::vec::Vec;

use smoltcp::iface::{Config, Interface, PollResult, SocketHandle, SocketSet};
use smoltcp::phy::{Device, DeviceCapabilities, Medium, RxToken, TxToken};
use smoltcp::socket::dhcpv4;
use smoltcp::time::Instant;
use smoltcp::wire::{EthernetAddress, HardwareAddress, IpAddress, IpCidr};

use crate::checksum;
use crate::input::Checked;
use crate::output::{Buffer, Output};
use crate::packet::{ETHERNET_BYTES, IpHeader};
use crate::udp;

/// Offset of the options in a message, after the magic cookie (RFC 2131, 2).
const OPTIONS_AT: usize = 240;
/// Option numbers (RFC 2132, 3).
const PAD: u8 = 0;
const ROUTERS: u8 = 3;
const END: u8 = 255;
const ADDRESS_BYTES: usize = 4;

/// Converts a time to smoltcp's unit, microseconds.
fn instant(now_ns: u64) -> Instant {
    Instant::from_micros(i64::try_from(now_ns / 1000).unwrap_or(i64::MAX))
}

fn nanoseconds(instant: Instant) -> u64 {
    // Rounded up; otherwise a timer that expires at the end of a microsecond would be polled repeatedly until then.
    u64::try_from(instant.total_micros()).unwrap_or(0).saturating_mul(1000)
}

/// A lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Lease {
    pub(crate) network: IpCidr,
    pub(crate) gateway: Option<IpAddress>,
    pub(crate) name_servers: Vec<IpAddress>,
}

/// A change of the lease.
#[derive(Debug)]
pub(crate) enum Change {
    Lent(Lease),
    Over,
}

/// The link as seen by the client.
struct Link<'a, B> {
    output: &'a mut Output<B>,
    input: Option<&'a [u8]>,
}

struct Frame<'a>(&'a [u8]);

impl RxToken for Frame<'_> {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, take: F) -> R {
        take(self.0)
    }
}

struct Room<'a, B>(&'a mut Output<B>);

impl<B: Buffer> TxToken for Room<'_, B> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, bytes: usize, fill: F) -> R {
        self.0.send_frame(bytes, fill)
    }
}

impl<B: Buffer> Device for Link<'_, B> {
    type RxToken<'t>
        = Frame<'t>
    where
        Self: 't;
    type TxToken<'t>
        = Room<'t, B>
    where
        Self: 't;

    fn receive(&mut self, _now: Instant) -> Option<(Frame<'_>, Room<'_, B>)> {
        Some((Frame(self.input.take()?), Room(self.output)))
    }

    fn transmit(&mut self, _now: Instant) -> Option<Room<'_, B>> {
        self.output.has_room().then_some(Room(self.output))
    }

    fn capabilities(&self) -> DeviceCapabilities {
        let mut capabilities = DeviceCapabilities::default();
        capabilities.medium = Medium::Ethernet;
        capabilities.max_transmission_unit = self.output.mtu + ETHERNET_BYTES;
        capabilities
    }
}

/// The DHCP client.
pub(crate) struct Dhcp {
    interface: Interface,
    set: SocketSet<'static>,
    handle: SocketHandle,
    next_ns: Option<u64>,
}

impl Dhcp {
    pub(crate) fn new<B: Buffer>(output: &mut Output<B>, seed: u64) -> Dhcp {
        let mut config = Config::new(HardwareAddress::Ethernet(output.hardware));
        config.random_seed = seed;
        let now = instant(output.now_ns);
        let interface = Interface::new(config, &mut Link { output, input: None }, now);
        let mut set = SocketSet::new(Vec::with_capacity(1));
        let handle = set.add(dhcpv4::Socket::new());
        Dhcp { interface, set, handle, next_ns: Some(0) }
    }

    /// Requests the address again, because the interface was replaced or the link was down.
    pub(crate) fn begin_again(&mut self, hardware: EthernetAddress) {
        self.interface.set_hardware_addr(HardwareAddress::Ethernet(hardware));
        self.set.get_mut::<dhcpv4::Socket>(self.handle).reset();
        self.next_ns = Some(0);
    }

    /// Processes a frame with a server's reply.
    pub(crate) fn receive_answer<B: Buffer>(&mut self, output: &mut Output<B>, frame: &[u8], checked: Checked) {
        match readable(frame, checked) {
            Some(frame) => self.receive(output, &frame),
            None => output.counters.malformed += 1,
        }
    }

    /// Processes a frame that may be for the client.
    pub(crate) fn receive<B: Buffer>(&mut self, output: &mut Output<B>, frame: &[u8]) {
        let now = instant(output.now_ns);
        self.interface.poll_ingress_single(now, &mut Link { output, input: Some(frame) }, &mut self.set);
        self.next_ns = Some(0);
    }

    pub(crate) fn next_time_ns(&self) -> Option<u64> {
        self.next_ns
    }

    /// Runs expired timers; returns what changed.
    pub(crate) fn serve<B: Buffer>(&mut self, output: &mut Output<B>) -> Option<Change> {
        if self.next_ns.is_none_or(|time_ns| time_ns > output.now_ns) || !output.has_room() {
            return None;
        }
        let now = instant(output.now_ns);
        while self.interface.poll_egress(now, &mut Link { output, input: None }, &mut self.set)
            == PollResult::SocketStateChanged
        {}
        let change = match self.set.get_mut::<dhcpv4::Socket>(self.handle).poll() {
            None => None,
            Some(dhcpv4::Event::Deconfigured) => Some(Change::Over),
            Some(dhcpv4::Event::Configured(config)) => Some(Change::Lent(Lease {
                network: IpCidr::Ipv4(config.address),
                gateway: config.router.map(IpAddress::Ipv4),
                name_servers: config.dns_servers.iter().copied().map(IpAddress::Ipv4).collect(),
            })),
        };
        if let Some(change) = &change {
            self.interface.update_ip_addrs(|own| {
                own.clear();
                if let Change::Lent(lease) = change {
                    // It is the only one.
                    let _ = own.push(lease.network);
                }
            });
        }
        let next = self.interface.poll_at(now, &self.set).map(nanoseconds);
        self.next_ns = next.map(|time_ns| time_ns.max(output.now_ns + 1_000_000));
        change
    }
}

/// Converts a server's reply to a form that smoltcp accepts: without the checksum, which is verified here because the
/// interface may already have done so, and with a single router, because smoltcp ignores a list of several. `None` if
/// the checksum is wrong.
fn readable(frame: &[u8], checked: Checked) -> Option<Vec<u8>> {
    let packet = frame.get(ETHERNET_BYTES..)?;
    let header = IpHeader::read(packet)?;
    if checked == Checked::No && !checksum::is_right(header.whole(packet), &header) {
        return None;
    }
    let mut frame = frame.to_vec();
    let datagram = frame.get_mut(ETHERNET_BYTES + header.header_bytes..)?;
    datagram.get_mut(6..udp::HEADER_BYTES)?.fill(0);
    keep_first_router(datagram.get_mut(udp::HEADER_BYTES + OPTIONS_AT..)?);
    Some(frame)
}

/// Routers are listed in order of preference (RFC 2132, 3.5).
fn keep_first_router(options: &mut [u8]) {
    let mut rest = options;
    loop {
        match rest {
            [PAD, after @ ..] => rest = after,
            [END, ..] | [_] | [] => return,
            [kind, length, after @ ..] => {
                let bytes = usize::from(*length);
                let Some((data, following)) = after.split_at_mut_checked(bytes) else { return };
                if *kind == ROUTERS && bytes > ADDRESS_BYTES {
                    *length = ADDRESS_BYTES as u8;
                    data[ADDRESS_BYTES..].fill(PAD);
                }
                rest = following;
            }
        }
    }
}
