//! The client's conversation, and what it is told of meanwhile.

use alloc::sync::Arc;
use alloc::vec::Vec;

use contracts::Packet;
use contracts::nic_device::{self, ExpIoConfigureBegin, ExpIoConfigured, ExpIoRunning, states};
use contracts::nic_events::{self, NicEventType};
use contracts::packets::{self, Filled};
use sip::executor;
use sip::exheap::{ExBox, ExVec};
use sip::hardware::DmaBlock;
use sip_virtio::{Running, System, Trouble, give_up};

use crate::Nic;
use crate::net::{ETHERNET_HEADER_BYTES, MOST_PACKETS, Received};

/// How the driver says that it has as many packets as were agreed on.
const NO_ROOM: i32 = 0;

type Device = Arc<Running<Nic>>;

/// What was agreed on with the client.
struct Client {
    number: u64,
    system: System,
    device: Device,
    receive_packets: usize,
    transmit_packets: usize,
    /// Most bytes of a packet with its Ethernet header.
    packet_bytes: usize,
}

/// Starts the device for a client and serves it as a task of its own.
pub fn take(client: nic_device::Exp<states::Start>, system: &System, device: &Device) {
    let opened = device.with(|nic| -> Result<_, Trouble> {
        let number = nic.open()?;
        let description = nic.interface.as_ref().map(|interface| interface.description()).transpose()?;
        Ok((number, description))
    });
    let (number, description) = match opened {
        Ok((number, Some(description))) => (number, description),
        Ok((_, None)) => return,
        Err(trouble) => give_up(&trouble),
    };
    let ready = client.device_info(description.mac, description.mtu, description.link_bits_per_s, 0);
    let mut client = Client {
        number,
        system: system.clone(),
        device: Arc::clone(device),
        receive_packets: 0,
        transmit_packets: 0,
        packet_bytes: description.mtu as usize + ETHERNET_HEADER_BYTES,
    };
    drop(executor::spawn(async move {
        if let Some(running) = client.configure(ready).await {
            client.run(running).await;
        }
        client.device.with(|nic| nic.close(client.number));
    }));
}

impl Client {
    /// Until the client starts the device. Nothing where it is gone before.
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
            let possible = 1..=MOST_PACKETS;
            if !possible.contains(&receive_packets) || !possible.contains(&transmit_packets) {
                begin = next.invalid_parameters(MOST_PACKETS, MOST_PACKETS);
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
                ExpIoRunning::PacketForReceive { p, next } => match self.give(p) {
                    Ok(()) => next.success(),
                    Err((p, expected)) => next.bad_packet_size(p, expected),
                },
                ExpIoRunning::PacketForTransmit { p, length, next } => match self.send(p, length as usize) {
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

    /// Takes what the client gives and answers with what there is for it; nothing when not even the answer finds
    /// memory, which ends the conversation.
    fn exchange(&self, given: ExVec<Packet>, most: usize) -> Option<ExVec<Packet>> {
        let mut back = Vec::new();
        for (record, buffer) in packets::unpack(given) {
            let refused = match record.length {
                0 => self.give(buffer),
                length => self.send(buffer, length as usize),
            };
            if let Err((buffer, _)) = refused {
                back.push((packets::empty(), buffer));
            }
        }
        while back.len() < most {
            let Some((record, buffer)) = self.next_received().or_else(|| Some((packets::empty(), self.sent()?))) else {
                break;
            };
            back.push((record, buffer));
        }
        packets::pack(back.into_iter())
    }

    fn give(&self, buffer: ExVec<u8>) -> Result<(), (ExVec<u8>, i32)> {
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

    fn send(&self, buffer: ExVec<u8>, length: usize) -> Result<(), (ExVec<u8>, i32)> {
        if length == 0 || length > buffer.len().min(self.packet_bytes) {
            let most = buffer.len().min(self.packet_bytes) as i32;
            return Err((buffer, most));
        }
        let buffer = self.system.pin(buffer).map_err(|(buffer, _)| (buffer, NO_ROOM))?;
        self.device
            .with(|nic| match nic.of_client(self.number) {
                Some(interface) if interface.transmit_buffers() < self.transmit_packets => {
                    interface.send(buffer, length)
                }
                _ => Err(buffer),
            })
            .map_err(|buffer| (buffer.end(), NO_ROOM))
    }

    fn received(&self) -> Option<ExBox<Packet>> {
        let (record, buffer) = self.next_received()?;
        // A packet for which there is no memory is lost, as packets are.
        let mut packet = ExBox::new(record).ok()?;
        packet.attach(buffer).ok()?;
        Some(packet)
    }

    fn next_received(&self) -> Option<Filled> {
        let Received { memory, bytes, received_ns } =
            self.device.with(|nic| nic.of_client(self.number)?.take_received())?;
        let length = u32::try_from(bytes).ok()?;
        Some((Packet { received_ns, ..packets::sent(length) }, memory.end()))
    }

    fn sent(&self) -> Option<ExVec<u8>> {
        self.device.with(|nic| nic.of_client(self.number)?.take_sent()).map(DmaBlock::end)
    }
}

/// Tells the client of what happens, one event at a time; what happens meanwhile is merged.
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
