//! The interface's buffers in flight, and the validation of the device's answers.
//!
//! Key type: [`Net`]. Neighbours: `sip-virtio` (the queues). A packet starts at the first byte of its buffer: the
//! device's own header lies elsewhere. Deliberately not here: clients, waiting, and the meaning of packets.

use alloc::collections::VecDeque;

use layout::Access;
use nic_server::Events;
use sip_virtio::{
    Core, Data, Device, DeviceError, DeviceMemory, Direction, Kind, Platform, Queue, Refused, Reply, Request,
    TIME_LIMIT_MS,
};

use crate::offload::{self, Offered};

/// Maximum packets in flight in each direction.
pub const MAX_PACKETS: u32 = (QUEUE_SIZE / DESCRIPTORS) as u32;

const QUEUE_SIZE: usize = 256;
/// Descriptors per packet: header and data.
const DESCRIPTORS: usize = 2;
const RECEIVE_QUEUE: u16 = 0;
const TRANSMIT_QUEUE: u16 = 1;
const HEADER_BYTES: usize = offload::BYTES;

/// `VIRTIO_NET_F_CSUM`: the device computes checksums.
const CHECKSUM: u64 = 1;
/// `VIRTIO_NET_F_GUEST_CSUM`: the device may report verified checksums, and pass on packets with partial ones.
const RECEIVED_CHECKSUM: u64 = 1 << 1;
/// `VIRTIO_NET_F_MTU`.
const MTU: u64 = 1 << 3;
/// `VIRTIO_NET_F_MAC`.
const MAC: u64 = 1 << 5;
/// `VIRTIO_NET_F_HOST_TSO4`: TCP segmentation offload for IPv4.
const TSO_V4: u64 = 1 << 11;
/// `VIRTIO_NET_F_HOST_TSO6`: TCP segmentation offload for IPv6.
const TSO_V6: u64 = 1 << 12;
/// `VIRTIO_NET_F_STATUS`.
const STATUS: u64 = 1 << 16;
/// `VIRTIO_NET_F_SPEED_DUPLEX`.
const SPEED: u64 = 1 << 63;

/// The configuration space. Its first six bytes are the interface's address.
#[layout::registers(bytes = 16)]
struct Configuration {
    /// Link status.
    #[at(6)]
    status: ReadOnly<LinkStatus>,
    /// Maximum bytes of a packet without its Ethernet header.
    #[at(10)]
    mtu: ReadOnly<u16>,
    /// Speed of the link in Mbit/s.
    #[at(12)]
    speed: ReadOnly<u32>,
}

#[layout::bits(u16)]
struct LinkStatus {
    /// The link is up.
    #[bit(0)]
    up: bool,
}

const DEFAULT_MTU: u32 = 1500;
/// Minimum MTU that a device may offer (virtio 1.2, section 5.1.4.1).
const MIN_MTU: u32 = 68;

/// Properties of the interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Description {
    /// Its address.
    pub mac: [u8; 6],
    /// Maximum bytes of a packet without its Ethernet header.
    pub mtu: u32,
    /// Speed of the link: 0 if it is down, [`u64::MAX`] if unknown.
    pub link_bits_per_s: u64,
    /// Its offloads.
    pub offered: Offered,
}

/// A received packet.
#[derive(Debug)]
pub struct Received<M> {
    /// The buffer.
    pub memory: M,
    /// Length of the packet in it.
    pub bytes: usize,
    /// Time of reception by the driver, in nanoseconds of the platform's clock.
    pub received_ns: u64,
    /// Whether its checksums are known to be correct.
    pub is_checked: bool,
}

/// A virtio network interface. `M` is the memory of packets.
pub struct Net<P: Platform, M: DeviceMemory> {
    device: Device<P>,
    receive: Queue<P, QUEUE_SIZE, M, ()>,
    transmit: Queue<P, QUEUE_SIZE, M, ()>,
    received: VecDeque<Received<M>>,
    sent: VecDeque<M>,
    link_bits_per_s: u64,
    events: Events,
    /// Whether the device interrupts for sent packets.
    notifies_sent: bool,
}

impl<P: Platform, M: DeviceMemory> Net<P, M> {
    /// Resets and starts the device.
    ///
    /// # Errors
    /// The device is not a network interface that this driver supports.
    pub fn start(platform: P) -> Result<Net<P, M>, DeviceError> {
        let needed = [(MAC, "VIRTIO_NET_F_MAC, an address of its own")];
        let offloads = CHECKSUM | RECEIVED_CHECKSUM | TSO_V4 | TSO_V6;
        let wanted = MTU | STATUS | SPEED;
        let mut device = Device::start(platform.clone(), Kind::Network, &needed, wanted | offloads)?;
        if !device.has(CHECKSUM) {
            // The client's checksum offload covers both directions or none.
            device = Device::start(platform, Kind::Network, &needed, wanted)?;
        }
        let (receive, transmit) = (device.queue(RECEIVE_QUEUE)?, device.queue(TRANSMIT_QUEUE)?);
        device.ready()?;
        let mut net = Net {
            device,
            receive,
            transmit,
            received: VecDeque::new(),
            sent: VecDeque::new(),
            link_bits_per_s: 0,
            events: Events::default(),
            notifies_sent: true,
        };
        net.link_bits_per_s = net.description()?.link_bits_per_s;
        Ok(net)
    }

    /// Returns the interface's current properties.
    ///
    /// # Errors
    /// The configuration is invalid.
    pub fn description(&self) -> Result<Description, DeviceError> {
        let has = |feature| self.device.has(feature);
        let offered = Offered {
            checksum: has(CHECKSUM),
            segmentation_version_4: has(CHECKSUM) && has(TSO_V4),
            segmentation_version_6: has(CHECKSUM) && has(TSO_V6),
        };
        let description = self.device.configuration(|from| {
            let registers = Configuration::over(from);
            Description {
                mac: core::array::from_fn(|index| from.read(index as u64)),
                mtu: if has(MTU) { registers.mtu().read().into() } else { DEFAULT_MTU },
                link_bits_per_s: match (has(STATUS), has(SPEED)) {
                    (true, _) if !registers.status().read().up() => 0,
                    (_, true) => bits_per_s(registers.speed().read()),
                    (_, false) => u64::MAX,
                },
                offered,
            }
        })?;
        if description.mtu < MIN_MTU {
            return Err(DeviceError::Nonsense { what: "the size of its packets", value: description.mtu.into() });
        }
        Ok(description)
    }

    /// Adds a buffer for receiving, without notifying the device; see [`Net::notify`].
    ///
    /// # Errors
    /// The queue is full; the buffer is returned.
    pub fn add_buffer(&mut self, memory: M, bytes: usize) -> Result<(), M> {
        let data = Data { memory, offset: 0, bytes, direction: Direction::FromDevice };
        let request = Request { header: &[], data: Some(data), reply: Reply::BeforeData(HEADER_BYTES) };
        self.receive.add(request, ()).map_err(memory_of)
    }

    /// Adds a packet to send: the first `bytes` bytes of a buffer, not 0, with the device's header for them. Does not
    /// notify the device; see [`Net::notify`].
    ///
    /// # Errors
    /// The queue is full; the buffer is returned.
    pub fn send(&mut self, memory: M, bytes: usize, header: &[u8; HEADER_BYTES]) -> Result<(), M> {
        let data = Data { memory, offset: 0, bytes, direction: Direction::ToDevice };
        let request = Request { header, data: Some(data), reply: Reply::None };
        self.transmit.add(request, ()).map_err(memory_of)
    }

    /// Notifies the device of added buffers and packets.
    pub fn notify(&mut self) {
        self.receive.notify();
        self.transmit.notify();
    }

    /// Polls for completions, and enables interrupts for those that follow: for each received packet, but for sent ones
    /// only on request.
    ///
    /// # Errors
    /// The device has failed and must not be used any longer.
    pub fn poll(&mut self, notify_sent: bool) -> Result<(), DeviceError> {
        self.collect()?;
        self.receive.set_interrupts(true);
        if core::mem::replace(&mut self.notifies_sent, notify_sent) != notify_sent {
            self.transmit.set_interrupts(notify_sent);
        }
        if self.receive.has_answer() || notify_sent && self.transmit.has_answer() {
            self.collect()?;
        }
        Ok(())
    }

    fn collect(&mut self) -> Result<(), DeviceError> {
        let mut received_ns = None;
        while let Some(completion) = self.receive.complete()? {
            let Some(bytes) = (completion.written as usize).checked_sub(HEADER_BYTES) else {
                return Err(DeviceError::TooLittleWritten { needed: HEADER_BYTES as u32, written: completion.written });
            };
            if let Some(data) = completion.data {
                let received_ns = *received_ns.get_or_insert_with(|| self.device.platform().now_ns());
                let is_checked = self.device.has(RECEIVED_CHECKSUM) && offload::is_checked(&completion.reply);
                self.received.push_back(Received { memory: data.memory, bytes, received_ns, is_checked });
                self.events.received = true;
            }
        }
        while let Some(completion) = self.transmit.complete()? {
            self.sent.extend(completion.data.map(|data| data.memory));
            self.events.sent = true;
        }
        Ok(())
    }

    /// Takes the oldest received packet. With the last one the pending event is cleared.
    pub fn take_received(&mut self) -> Option<Received<M>> {
        let received = self.received.pop_front();
        self.events.received &= !self.received.is_empty();
        received
    }

    /// Takes the buffer of the oldest sent packet.
    pub fn take_sent(&mut self) -> Option<M> {
        let sent = self.sent.pop_front();
        self.events.sent &= !self.sent.is_empty();
        sent
    }

    /// Returns whether a received packet can be taken.
    pub fn has_received(&self) -> bool {
        !self.received.is_empty()
    }

    /// Returns the number of receive buffers held, filled or not.
    pub fn receive_buffers(&self) -> usize {
        self.receive.in_flight() + self.received.len()
    }

    /// Returns the number of packets for sending held, sent or not.
    pub fn transmit_buffers(&self) -> usize {
        self.transmit.in_flight() + self.sent.len()
    }

    /// Takes the events since the last call.
    pub fn take_events(&mut self) -> Events {
        core::mem::take(&mut self.events)
    }

    fn update_link(&mut self) -> Result<(), DeviceError> {
        let now = self.description()?.link_bits_per_s;
        self.events.link |= now != self.link_bits_per_s;
        self.link_bits_per_s = now;
        Ok(())
    }
}

fn memory_of<M>(refused: Refused<M, ()>) -> M {
    match refused.data {
        Some(data) => data.memory,
        None => unreachable!("the data was passed in"),
    }
}

/// Converts the device's Mbit/s, which are invalid if greater than [`i32::MAX`] (unknown).
fn bits_per_s(megabits: u32) -> u64 {
    match i32::try_from(megabits) {
        Ok(known) if known > 0 => u64::from(megabits) * 1_000_000,
        _ => u64::MAX,
    }
}

impl<P: Platform, M: DeviceMemory + 'static> Core for Net<P, M> {
    fn serve(&mut self) -> Result<(), DeviceError> {
        if self.device.interrupted()?.configuration {
            self.update_link()?;
        }
        self.collect()?;
        if self.events.received {
            // No more interrupts until the client has been notified and polls.
            self.receive.set_interrupts(false);
        }
        // No timeout for receiving; sending must complete in time.
        self.transmit.check_time(TIME_LIMIT_MS)
    }
}
