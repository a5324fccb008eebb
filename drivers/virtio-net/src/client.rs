//! The client's channel, and the events sent to it.

use alloc::sync::Arc;
use alloc::vec::Vec;

use contracts::nic_device::{self, ExpIoConfigureBegin, ExpIoConfigured, ExpIoRunning, NicFeatures, states};
use contracts::nic_events::{self, NicEventType};
use contracts::packets::{self, Filled};
use contracts::{Packet, PacketFlags};
use sip::executor;
use sip::exheap::{ExBox, ExVec};
use sip::hardware::DmaBlock;
use sip_virtio::{DeviceError, Running, System, give_up};

use crate::net::{ETHERNET_HEADER_BYTES, MAX_PACKETS, Received};
use crate::offload::{self, Asked, Offered};
use crate::{Interface, Nic};

/// Value of `bad_packet_size` for a client that has reached its packet limit.
const NO_ROOM: i32 = 0;
/// Maximum length of a packet that the device segments: a maximal IP packet with its Ethernet header.
const LONGEST: usize = u16::MAX as usize + ETHERNET_HEADER_BYTES;

type Device = Arc<Running<Nic>>;

/// The client's parameters.
struct Client {
    number: u64,
    system: System,
    device: Device,
    receive_packets: usize,
    transmit_packets: usize,
    /// Maximum bytes of a packet with its Ethernet header.
    packet_bytes: usize,
    offered: Offered,
}

/// A returned buffer, and the size for `bad_packet_size`.
type Back = (ExVec<u8>, i32);

/// Starts the device for a client and serves it as a task.
pub fn take(client: nic_device::Exp<states::Start>, system: &System, device: &Device) {
    let opened = device.with(|nic| -> Result<_, DeviceError> {
        let number = nic.open()?;
        let description = nic.interface.as_ref().map(|interface| interface.description()).transpose()?;
        Ok((number, description))
    });
    let (number, description) = match opened {
        Ok((number, Some(description))) => (number, description),
        Ok((_, None)) => return,
        Err(error) => give_up(&error),
    };
    let features = features(description.offered);
    let ready = client.device_info(description.mac, description.mtu, description.link_bits_per_s, features);
    let mut client = Client {
        number,
        system: system.clone(),
        device: Arc::clone(device),
        receive_packets: 0,
        transmit_packets: 0,
        packet_bytes: description.mtu as usize + ETHERNET_HEADER_BYTES,
        offered: description.offered,
    };
    drop(executor::spawn(async move {
        if let Some(running) = client.configure(ready).await {
            client.run(running).await;
        }
        client.device.with(|nic| nic.close(client.number));
    }));
}

fn features(offered: Offered) -> NicFeatures {
    NicFeatures::CHECKSUM_OFFLOAD.when(offered.checksum)
        | NicFeatures::SEGMENTATION_IPV4.when(offered.segmentation_version_4)
        | NicFeatures::SEGMENTATION_IPV6.when(offered.segmentation_version_6)
}

impl Client {
    /// Serves the configuration states until the client starts the device; `None` if it is gone before.
    async fn configure(
        &mut self,
        mut begin: nic_device::Exp<states::IoConfigureBegin>,
    ) -> Option<nic_device::Exp<states::IoRunning>> {
        loop {
            let ExpIoConfigureBegin::RegisterForEvents { c, next } = begin.receive_async().await else { return None };
            let nic_device::ExpIoConfigureBeginAfterRegisterForEvents::SetParameters {
                receive_packets,
                transmit_packets,
                next,
            } = next.receive_async().await
            else {
                return None;
            };
            let possible = 1..=MAX_PACKETS;
            if !possible.contains(&receive_packets) || !possible.contains(&transmit_packets) {
                begin = next.invalid_parameters(MAX_PACKETS, MAX_PACKETS);
                continue;
            }
            self.receive_packets = receive_packets as usize;
            self.transmit_packets = transmit_packets as usize;
            match next.success().receive_async().await {
                ExpIoConfigured::StartIO { next } => {
                    drop(executor::spawn(announce(Arc::clone(&self.device), self.number, c)));
                    return Some(next);
                }
                ExpIoConfigured::ConfigureIO { next } => begin = next,
                ExpIoConfigured::ChannelClosed(_) => return None,
            }
        }
    }

    async fn run(&mut self, mut running: nic_device::Exp<states::IoRunning>) {
        loop {
            running = match running.receive_async().await {
                ExpIoRunning::PacketForReceive { p, next } => match self.give_one(p) {
                    Ok(()) => next.success(),
                    Err((p, expected)) => next.bad_packet_size(p, expected),
                },
                ExpIoRunning::PacketForTransmit { p, length, next } => match self.send_one(p, length) {
                    Ok(()) => next.success(),
                    Err((p, expected)) => next.bad_packet_size(p, expected),
                },
                ExpIoRunning::GetReceivedPacket { next } => match self.received() {
                    Some(packet) => next.received_packet(packet),
                    None => next.no_packet(),
                },
                ExpIoRunning::GetTransmittedPacket { next } => match self.sent() {
                    Some(buffer) => next.transmitted_packet(buffer),
                    None => next.no_packet(),
                },
                ExpIoRunning::Exchange { given, most, next } => match self.exchange(given, most as usize) {
                    Some(taken) => next.exchanged(taken),
                    None => return,
                },
                ExpIoRunning::ChannelClosed(_) => return,
            };
        }
    }

    /// Takes the client's packets and buffers, and returns those for it; `None` if there is no memory for the
    /// reply, which ends the channel. The device is notified once.
    fn exchange(&self, given: ExVec<Packet>, most: usize) -> Option<ExVec<Packet>> {
        let mut back = Vec::new();
        for (record, buffer) in packets::unpack(given) {
            let refused = if record.length == 0 { self.give(buffer) } else { self.send(buffer, &record) };
            if let Err((buffer, _)) = refused {
                back.push((packets::empty(), buffer));
            }
        }
        self.device.with(|nic| {
            let interface = nic.of_client(self.number)?;
            interface.tell();
            self.take(interface, &mut back, most);
            if back.len() < most {
                // Buffers of sent packets can wait for the next exchange, unless the client may soon run out of them.
                let is_short = back.is_empty() || interface.transmit_buffers() * 4 >= self.transmit_packets * 3;
                look(interface, is_short);
                self.take(interface, &mut back, most);
            }
            Some(())
        });
        packets::pack(back.into_iter())
    }

    /// Adds packets and buffers for the client.
    fn take(&self, interface: &mut Interface, back: &mut Vec<Filled>, most: usize) {
        while back.len() < most {
            let next = match interface.take_received() {
                Some(received) => self.filled(received),
                None => match interface.take_sent() {
                    Some(memory) => (packets::empty(), memory.end()),
                    None => return,
                },
            };
            back.push(next);
        }
    }

    fn filled(&self, received: Received<DmaBlock<ExVec<u8>>>) -> Filled {
        let Received { memory, bytes, received_ns, is_checked } = received;
        let flags = PacketFlags::CHECKSUM.when(is_checked && self.offered.checksum);
        // A packet is not longer than its buffer, so its length fits.
        (Packet { received_ns, flags, ..packets::sent(bytes as u32) }, memory.end())
    }

    fn give_one(&self, buffer: ExVec<u8>) -> Result<(), Back> {
        self.give(buffer).inspect(|()| self.tell())
    }

    fn send_one(&self, buffer: ExVec<u8>, length: u32) -> Result<(), Back> {
        if length == 0 {
            let most = buffer.len().min(self.packet_bytes) as i32;
            return Err((buffer, most));
        }
        self.send(buffer, &packets::sent(length)).inspect(|()| self.tell())
    }

    fn tell(&self) {
        self.device.with(|nic| {
            if let Some(interface) = nic.of_client(self.number) {
                interface.tell();
            }
        });
    }

    fn give(&self, buffer: ExVec<u8>) -> Result<(), Back> {
        let bytes = buffer.len();
        if bytes < self.packet_bytes {
            return Err((buffer, self.packet_bytes as i32));
        }
        let buffer = self.system.pin(buffer).map_err(|(buffer, _)| (buffer, NO_ROOM))?;
        self.device
            .with(|nic| match nic.of_client(self.number) {
                Some(interface) if interface.receive_buffers() < self.receive_packets => interface.give(buffer, bytes),
                _ => Err(buffer),
            })
            .map_err(|buffer| (buffer.end(), NO_ROOM))
    }

    fn send(&self, buffer: ExVec<u8>, record: &Packet) -> Result<(), Back> {
        let length = record.length as usize;
        let most = buffer.len().min(if record.segment_bytes == 0 { self.packet_bytes } else { LONGEST });
        let checksum = record.flags.contains(PacketFlags::CHECKSUM);
        let asked = Asked { checksum, segment_bytes: record.segment_bytes };
        let header = buffer.get(..length.min(most)).and_then(|packet| offload::header(packet, asked, self.offered));
        let Some(header) = header.filter(|_| length <= most) else { return Err((buffer, most as i32)) };
        let buffer = self.system.pin(buffer).map_err(|(buffer, _)| (buffer, NO_ROOM))?;
        self.device
            .with(|nic| match nic.of_client(self.number) {
                Some(interface) if interface.transmit_buffers() < self.transmit_packets => {
                    interface.send(buffer, length, &header)
                }
                _ => Err(buffer),
            })
            .map_err(|buffer| (buffer.end(), NO_ROOM))
    }

    fn received(&self) -> Option<ExBox<Packet>> {
        let received = self.device.with(|nic| {
            let interface = nic.of_client(self.number)?;
            if !interface.has_received() {
                look(interface, true);
            }
            interface.take_received()
        });
        let (record, buffer) = self.filled(received?);
        // A packet is dropped if there is no memory for it.
        let mut packet = ExBox::new(record).ok()?;
        packet.attach(buffer).ok()?;
        Some(packet)
    }

    fn sent(&self) -> Option<ExVec<u8>> {
        self.device.with(|nic| nic.of_client(self.number)?.take_sent()).map(DmaBlock::end)
    }
}

/// Polls the device. A [`DeviceError`] ends the process, which is then restarted with the device reset.
fn look(interface: &mut Interface, tell_of_sent: bool) {
    if let Err(error) = interface.look(tell_of_sent) {
        give_up(&error);
    }
}

/// Notifies the client of events, one at a time; those that occur meanwhile are merged.
async fn announce(device: Device, client: u64, mut events: nic_events::Exp<nic_events::states::Ready>) {
    let mut news = crate::net::News::default();
    loop {
        let more = device
            .until(|nic| match nic.of_client(client) {
                None => Some(None),
                Some(interface) => {
                    let new = interface.take_news();
                    news.received |= new.received;
                    news.sent |= new.sent;
                    news.link |= new.link;
                    (news != crate::net::News::default()).then_some(Some(()))
                }
            })
            .await;
        if more.is_none() {
            return;
        }
        let event = if core::mem::take(&mut news.link) {
            NicEventType::LinkEvent
        } else if core::mem::take(&mut news.received) {
            NicEventType::ReceiveEvent
        } else {
            news.sent = false;
            NicEventType::TransmitEvent
        };
        match events.nic_event(event).receive_async().await {
            nic_events::ExpReadyAfterNicEvent::AckEvent { next } => events = next,
            nic_events::ExpReadyAfterNicEvent::ChannelClosed(_) => return,
        }
    }
}
