//! Connects to the interface's driver, exchanges batches of packets, and reconnects when the driver ends.
//!
//! Buffer ownership: this process gives its driver empty receive buffers and filled transmit buffers, and gets them
//! back; when the driver ends, the kernel frees those it held, and new ones are allocated. One exchange moves packets
//! in both directions; without packets there is no exchange.

use alloc::rc::Rc;
use alloc::string::String;
use alloc::vec::Vec;
use core::cell::Cell;
use core::future::{Future, poll_fn};
use core::pin::pin;
use core::task::Poll;

use client::access::AccessError;
use client::answer::{DEVICE_LIMIT, wait_async};
use client::namespace::{Namespace, TIMEOUT_MS};
use contracts::directory::NameError;
use contracts::nic_device::{self, NicFeatures, states};
use contracts::nic_events::{self, NicEventType};
use contracts::{Packet, PacketFlags};
use net_stack::{EthernetAddress, Features, MAX_TSO_BYTES};
use network::packets::{self, Filled};
use sip::exheap::ExVec;
use sip::{Deadline, executor};
use stdio::report;
use task_sync::Notify;

use crate::shared::{Block, Link, Shared};

/// Buffers per direction; a driver may take fewer.
const PACKETS: u32 = 256;
/// Length of an Ethernet header with a VLAN tag, in bytes.
const HEADER_BYTES: usize = 18;
/// Excess length of a transmit buffer over a receive buffer, in bytes, which distinguishes the two.
const SENT_BYTES: usize = 16;
/// Initial and maximum delay before reconnecting to a driver, in milliseconds.
const MIN_RETRY_MS: u64 = 1;
const MAX_RETRY_MS: u64 = 10;

/// A bound interface.
pub struct Interface {
    pub hardware: EthernetAddress,
    pub mtu: usize,
    pub features: Features,
    pub link: Link,
    /// Length of a transmit buffer, in bytes.
    sent_bytes: usize,
    endpoint: nic_device::Imp<states::IoConfigureBegin>,
}

impl Interface {
    /// Binds the interface, waiting for a driver that is starting.
    pub async fn open(namespace: &mut Namespace, path: &str) -> Result<Interface, AccessError> {
        let deadline = Deadline::after_ms(TIMEOUT_MS);
        let mut pause_ms = MIN_RETRY_MS;
        loop {
            match Interface::try_open(namespace, path).await {
                Err(error) if error.may_pass() && !deadline.has_passed() => {
                    executor::sleep_until(Deadline::after_ms(pause_ms)).await;
                    pause_ms = (pause_ms * 2).min(MAX_RETRY_MS);
                }
                other => return other,
            }
        }
    }

    async fn try_open(namespace: &mut Namespace, path: &str) -> Result<Interface, AccessError> {
        let (importer, exporter) = nic_device::new_channel()?;
        namespace.bind(path, exporter)?;
        match wait_async(importer, DEVICE_LIMIT).await? {
            nic_device::ImpStart::DeviceInfo { mac_address, mtu, link_bits_per_s, features, next } => Ok(Interface {
                link: Link { hardware: mac_address, mtu, bits_per_s: link_bits_per_s },
                hardware: EthernetAddress(mac_address),
                mtu: mtu as usize,
                features: Features {
                    checksum: features.contains(NicFeatures::CHECKSUM_OFFLOAD),
                    segmentation_version_4: features.contains(NicFeatures::SEGMENTATION_IPV4),
                },
                sent_bytes: match features.contains(NicFeatures::SEGMENTATION_IPV4) {
                    false => mtu as usize + HEADER_BYTES + SENT_BYTES,
                    true => MAX_TSO_BYTES.max(mtu as usize) + HEADER_BYTES + SENT_BYTES,
                },
                endpoint: next,
            }),
            nic_device::ImpStart::ChannelClosed(_) => Err(AccessError::ServerEnded),
        }
    }

    /// Starts sending and receiving.
    ///
    /// # Errors
    /// The driver ended, does not answer, or takes no packets.
    async fn start(self) -> Result<Running, AccessError> {
        let (mut begin, mut receive, mut transmit) = (self.endpoint, PACKETS, PACKETS);
        loop {
            let (events, announcer) = nic_events::new_channel()?;
            let pending = begin.register_for_events(announcer).set_parameters(receive, transmit);
            begin = match wait_async(pending, DEVICE_LIMIT).await? {
                nic_device::ImpIoConfigureAck::Success { next } => {
                    return Ok(Running {
                        endpoint: next.start_io(),
                        events,
                        receive: receive as usize,
                        transmit: transmit as usize,
                        frame_bytes: self.mtu + HEADER_BYTES,
                        sent_bytes: self.sent_bytes,
                    });
                }
                nic_device::ImpIoConfigureAck::InvalidParameters {
                    max_receive_packets,
                    max_transmit_packets,
                    next,
                } => {
                    let (before, now) = ((receive, transmit), (max_receive_packets, max_transmit_packets));
                    if now.0 == 0 || now.1 == 0 || before <= now {
                        return Err(NameError::DeviceError.into());
                    }
                    (receive, transmit) = (receive.min(now.0), transmit.min(now.1));
                    next
                }
                nic_device::ImpIoConfigureAck::ChannelClosed(_) => return Err(AccessError::ServerEnded),
            };
        }
    }
}

/// An interface that sends and receives.
struct Running {
    endpoint: nic_device::Imp<states::IoRunning>,
    events: nic_events::Imp<nic_events::states::Ready>,
    receive: usize,
    transmit: usize,
    /// Maximum length of a frame, with its Ethernet header, in bytes.
    frame_bytes: usize,
    sent_bytes: usize,
}

/// Exchanges packets for the life of the process, reconnecting whenever the driver ends.
pub async fn maintain(shared: Rc<Shared>, mut namespace: Namespace, path: String, first: Interface) {
    let mut interface = first;
    loop {
        // Connections within this machine need no driver.
        shared.gate.leave_open();
        {
            shared.link.set(interface.link);
            let mut stack = shared.stack();
            stack.renew_link(interface.hardware, interface.mtu, interface.features);
        }
        let link = interface.link;
        let ended = match interface.start().await {
            Ok(running) => run(&shared, running).await,
            Err(error) => Err(error),
        };
        if let Err(error @ AccessError::NoAnswer { .. }) = ended {
            report::error(format_args!("{path}: {error}"));
        }
        shared.link.set(Link { bits_per_s: 0, ..link });
        interface = loop {
            match Interface::open(&mut namespace, &path).await {
                Ok(interface) => break interface,
                Err(error) if error.may_pass() => {}
                Err(error) => {
                    report::error(format_args!("{path}: {error}"));
                    executor::sleep_until(Deadline::after_ms(TIMEOUT_MS)).await;
                }
            }
        };
    }
}

/// Driver notifications since the last check.
#[derive(Default)]
struct DriverEvents {
    received: Cell<bool>,
    has_ended: Cell<bool>,
    /// Whether the packet task waits for a notification. While it does not, it polls by itself, and a driver without
    /// notification requests has nothing to wait for.
    is_enabled: Cell<bool>,
    enabled: Notify,
}

impl DriverEvents {
    /// Enables notifications.
    fn enable(&self) {
        if !self.is_enabled.replace(true) {
            self.enabled.notify_all();
        }
    }

    /// Waits until notifications are enabled.
    async fn enabled(&self) {
        self.enabled.until(|| self.is_enabled.get()).await;
    }
}

/// Receives the driver's notifications until it ends.
async fn receive_events(
    shared: Rc<Shared>,
    news: Rc<DriverEvents>,
    mut events: nic_events::Imp<nic_events::states::Ready>,
) {
    while let nic_events::ImpReady::NicEvent { e, next } = events.receive_async().await {
        if e != NicEventType::TransmitEvent || shared.stack().free_buffers() == 0 {
            // Transmitted buffers return with the next exchange, unless one is wanted at once.
            news.received.set(true);
            shared.work.notify_one();
        }
        news.enabled().await;
        events = next.ack_event();
    }
    news.has_ended.set(true);
    shared.work.notify_one();
}

/// Exchanges packets until the driver ends.
async fn run(shared: &Rc<Shared>, running: Running) -> Result<(), AccessError> {
    let news = Rc::new(DriverEvents::default());
    let ended = exchange(shared, &news, running).await;
    // Wakes the notification task, which has to detect the end of the driver.
    news.enable();
    ended
}

async fn exchange(shared: &Rc<Shared>, news: &Rc<DriverEvents>, running: Running) -> Result<(), AccessError> {
    let Running { endpoint, events, receive, transmit, frame_bytes, sent_bytes } = running;
    drop(executor::spawn(receive_events(Rc::clone(shared), Rc::clone(news), events)));
    let mut empty: Vec<Filled> = Vec::new();
    for _ in 0..receive {
        // With fewer buffers the interface only drops more packets.
        let Ok(buffer) = ExVec::new(frame_bytes) else { break };
        empty.push((packets::empty(), buffer));
    }
    {
        let mut stack = shared.stack();
        for _ in 0..transmit {
            let Ok(buffer) = ExVec::new(sent_bytes) else { break };
            stack.give(Block(buffer));
        }
        stack.announce();
    }
    let mut endpoint = endpoint;
    loop {
        shared.gate.open();
        // Batches what clients have requested meanwhile into this exchange, instead of one exchange each.
        executor::idle().await;
        shared.stack().serve();
        let mut given = core::mem::take(&mut empty);
        collect(shared, &mut given);
        // While readers are queued, an exchange yields the processor to those serving the last ones.
        if given.is_empty() && !news.received.take() && !shared.gate.has_waiting() {
            if news.has_ended.get() {
                return Ok(());
            }
            wait(shared, news).await;
            continue;
        }
        let Some(batch) = packets::pack(given.into_iter()) else { return Ok(()) };
        let most = (receive + transmit) as u32;
        let taken = match wait_async(endpoint.exchange(batch, most), DEVICE_LIMIT).await? {
            nic_device::ImpIoRunningAfterExchange::Exchanged { taken, next } => {
                endpoint = next;
                taken
            }
            nic_device::ImpIoRunningAfterExchange::ChannelClosed(_) => return Ok(()),
        };
        let taken = packets::unpack(taken);
        if taken.len() >= most as usize {
            news.received.set(true);
        }
        let mut stack = shared.stack();
        for (record, buffer) in taken {
            if record.length == 0 && buffer.len() != frame_bytes {
                stack.give(Block(buffer));
                continue;
            }
            if let Some(packet) = buffer.get(..record.length as usize).filter(|packet| !packet.is_empty()) {
                stack.receive(packet, record.flags.contains(PacketFlags::CHECKSUM));
            }
            empty.push((packets::empty(), buffer));
        }
    }
}

/// Collects the packets that the stack has to send.
fn collect(shared: &Shared, given: &mut Vec<Filled>) {
    let mut stack = shared.stack();
    while let Some(packet) = stack.take() {
        let record = Packet {
            flags: PacketFlags::CHECKSUM.when(packet.needs_checksum),
            segment_bytes: packet.segment_bytes,
            // A packet is no longer than its buffer, whose length fits.
            ..packets::sent(packet.length as u32)
        };
        given.push((record, packet.buffer.0));
    }
}

/// Waits until there is work.
async fn wait(shared: &Shared, news: &DriverEvents) {
    let next_ns = shared.stack().next_time_ns();
    let mut sleep = pin!(async {
        match next_ns {
            Some(time_ns) => executor::sleep_until(Deadline::at(time_ns)).await,
            None => core::future::pending().await,
        }
    });
    let mut work = pin!(shared.work.notified());
    let mut has_waited = false;
    poll_fn(|context| {
        // Whatever woke this task is for `serve` to handle, even if only an earlier deadline.
        if core::mem::replace(&mut has_waited, true) || work.as_mut().poll(context).is_ready() {
            return Poll::Ready(());
        }
        let mut stack = shared.stack();
        if stack.has_ready() || stack.has_work() {
            return Poll::Ready(());
        }
        stack.set_worker(context.waker());
        drop(stack);
        let slept = sleep.as_mut().poll(context);
        if slept.is_pending() {
            news.enable();
        }
        slept
    })
    .await;
    news.is_enabled.set(false);
}
