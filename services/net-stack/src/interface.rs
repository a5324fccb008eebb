//! The way to the interface's driver: batches of packets, and another driver when one ends.
//!
//! Who owns a buffer: this process gives its driver empty ones to receive in and filled ones to send, and gets them
//! back; when the driver ends, the kernel frees those it had, and new ones are made. One exchange moves what there is
//! both ways; where there is nothing to move, there is none.

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

/// Buffers that are wanted in each direction; a driver may take fewer.
const PACKETS: u32 = 256;
/// Bytes of an Ethernet header with a VLAN tag.
const HEADER_BYTES: usize = 18;
/// By so many bytes a buffer to send is longer than one to receive in, which tells the two apart.
const SENT_BYTES: usize = 16;
/// How long to wait before a driver that ended is looked for again, at first and at most.
const AGAIN_AFTER_MS: u64 = 1;
const MAX_RETRY_MS: u64 = 10;

/// An interface that was bound.
pub struct Interface {
    pub hardware: EthernetAddress,
    pub mtu: usize,
    pub features: Features,
    pub link: Link,
    /// Bytes of a buffer to send.
    sent_bytes: usize,
    endpoint: nic_device::Imp<states::IoConfigureBegin>,
}

impl Interface {
    /// Binds the interface, and waits for a driver that is just being started.
    pub async fn open(namespace: &mut Namespace, path: &str) -> Result<Interface, AccessError> {
        let deadline = Deadline::after_ms(TIMEOUT_MS);
        let mut pause_ms = AGAIN_AFTER_MS;
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

    /// Starts to send and receive.
    ///
    /// # Errors
    /// The driver ended, does not answer, or takes no packets.
    async fn start(self) -> Result<Running, AccessError> {
        let (mut begin, mut receive, mut transmit) = (self.endpoint, PACKETS, PACKETS);
        loop {
            let (events, announcer) = nic_events::new_channel()?;
            let asked = begin.register_for_events(announcer).set_parameters(receive, transmit);
            begin = match wait_async(asked, DEVICE_LIMIT).await? {
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
    /// Bytes of a packet with its Ethernet header, at most.
    frame_bytes: usize,
    sent_bytes: usize,
}

/// Moves packets as long as this process lives, over one driver after the other.
pub async fn keep(shared: Rc<Shared>, mut namespace: Namespace, path: String, first: Interface) {
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

/// What the driver said since it was last asked.
#[derive(Default)]
struct News {
    received: Cell<bool>,
    has_ended: Cell<bool>,
    /// Whether the task that moves packets waits to be told. While it does not it asks by itself, and a driver that is
    /// not to tell anything has nothing to wait for.
    is_wanted: Cell<bool>,
    wanted: Notify,
}

impl News {
    /// The driver may tell from now on.
    fn want(&self) {
        if !self.is_wanted.replace(true) {
            self.wanted.notify_all();
        }
    }

    /// Waits until something is wanted.
    async fn wanted(&self) {
        self.wanted.until(|| self.is_wanted.get()).await;
    }
}

/// Hears what the driver announces, until it ends.
async fn receive_events(shared: Rc<Shared>, news: Rc<News>, mut events: nic_events::Imp<nic_events::states::Ready>) {
    while let nic_events::ImpReady::NicEvent { e, next } = events.receive_async().await {
        if e != NicEventType::TransmitEvent || shared.stack().free_buffers() == 0 {
            // Buffers of packets that were sent come with the next exchange, unless one is wanted now.
            news.received.set(true);
            shared.work.notify_one();
        }
        news.wanted().await;
        events = next.ack_event();
    }
    news.has_ended.set(true);
    shared.work.notify_one();
}

/// Moves packets until the driver ends.
async fn run(shared: &Rc<Shared>, running: Running) -> Result<(), AccessError> {
    let news = Rc::new(News::default());
    let ended = exchange(shared, &news, running).await;
    // The task that hears is to hear that it has ended.
    news.want();
    ended
}

async fn exchange(shared: &Rc<Shared>, news: &Rc<News>, running: Running) -> Result<(), AccessError> {
    let Running { endpoint, events, receive, transmit, frame_bytes, sent_bytes } = running;
    drop(executor::spawn(receive_events(Rc::clone(shared), Rc::clone(news), events)));
    let mut empty: Vec<Filled> = Vec::new();
    for _ in 0..receive {
        // With fewer buffers the interface loses more packets, that is all.
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
        // What clients have asked meanwhile goes with this exchange, rather than each with one of its own.
        executor::idle().await;
        shared.stack().serve();
        let mut given = core::mem::take(&mut empty);
        collect(shared, &mut given);
        // While readers wait, an exchange lets those who work for the last ones have the processor.
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

/// Adds what the stack has to send.
fn collect(shared: &Shared, given: &mut Vec<Filled>) {
    let mut stack = shared.stack();
    while let Some(packet) = stack.take() {
        let record = Packet {
            flags: PacketFlags::CHECKSUM.when(packet.needs_checksum),
            segment_bytes: packet.segment_bytes,
            // No packet is longer than its buffer, which is far shorter than that.
            ..packets::sent(packet.length as u32)
        };
        given.push((record, packet.buffer.0));
    }
}

/// Waits until there is something to do.
async fn wait(shared: &Shared, news: &News) {
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
        // Whoever wakes this task has a reason that `serve` knows, if only an earlier time than the one waited for.
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
            news.want();
        }
        slept
    })
    .await;
    news.is_wanted.set(false);
}
