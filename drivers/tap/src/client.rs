//! The client's channel, and the events sent to it.

use alloc::rc::Rc;
use alloc::vec::Vec;

use contracts::Packet;
use contracts::nic_device::{self, ExpIoConfigureBegin, ExpIoConfigured, ExpIoRunning, NicFeatures, states};
use contracts::nic_events::{self, NicEventType};
use contracts::packets::{self, Filled};
use sip::executor;
use sip::exheap::{ExBox, ExVec};

use crate::link::{ETHERNET_HEADER_BYTES, Link, MAX_PACKETS};

/// Value of `bad_packet_size` for a client that has reached its packet limit.
const NO_ROOM: i32 = 0;

/// Maximum length of a packet that the host segments: a maximal IP packet with its Ethernet header.
const LONGEST: usize = u16::MAX as usize + ETHERNET_HEADER_BYTES;

/// The client's parameters.
struct Client {
    link: Rc<Link>,
    number: u64,
    receive_packets: usize,
    transmit_packets: usize,
}

/// Serves a client as a task of its own.
pub fn take(client: nic_device::Exp<states::Start>, link: &Rc<Link>) {
    let number = link.take();
    let sip::device::Link { hardware, mtu, features } = link.description;
    let features = NicFeatures::from_bits(features).unwrap_or(NicFeatures::empty());
    // The speed of a link within a host is unknown.
    let ready = client.device_info(hardware, mtu.into(), u64::MAX, features);
    let mut client = Client { link: Rc::clone(link), number, receive_packets: 0, transmit_packets: 0 };
    drop(executor::spawn(async move {
        if let Some(running) = client.configure(ready).await {
            client.run(running).await;
        }
        client.link.leave();
    }));
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
                    drop(executor::spawn(announce(Rc::clone(&self.link), self.number, c)));
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
                ExpIoRunning::PacketForTransmit { p, length, next } => match self.send(&packets::sent(length), p) {
                    Ok(()) => next.success(),
                    Err((p, expected)) => next.bad_packet_size(p, expected),
                },
                ExpIoRunning::GetReceivedPacket { next } => match self.received() {
                    Some(packet) => next.received_packet(packet),
                    None => next.no_packet(),
                },
                ExpIoRunning::GetTransmittedPacket { next } => match self.link.take_sent() {
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
    /// reply, which ends the channel.
    fn exchange(&self, given: ExVec<Packet>, most: usize) -> Option<ExVec<Packet>> {
        let mut back = Vec::new();
        for (record, buffer) in packets::unpack(given) {
            let refused = match record.length {
                0 => self.give(buffer),
                _ => self.send(&record, buffer),
            };
            if let Err((buffer, _)) = refused {
                back.push((packets::empty(), buffer));
            }
        }
        self.link.receive();
        while back.len() < most {
            let Some(packet) = self.next() else { break };
            back.push(packet);
        }
        self.link.tell_of_rest();
        packets::pack(back.into_iter())
    }

    /// Returns the next packet for the client: received ones first, then buffers of sent ones.
    fn next(&self) -> Option<Filled> {
        self.link.take_received().or_else(|| Some((packets::empty(), self.link.take_sent()?)))
    }

    fn give(&self, buffer: ExVec<u8>) -> Result<(), (ExVec<u8>, i32)> {
        let least = self.link.packet_bytes();
        if buffer.len() < least {
            return Err((buffer, least as i32));
        }
        if self.link.receive_buffers() >= self.receive_packets {
            return Err((buffer, NO_ROOM));
        }
        self.link.give(buffer);
        Ok(())
    }

    fn send(&self, record: &Packet, buffer: ExVec<u8>) -> Result<(), (ExVec<u8>, i32)> {
        let longest = if record.segment_bytes == 0 { self.link.packet_bytes() } else { LONGEST };
        let most = buffer.len().min(longest);
        if record.length == 0 || record.length as usize > most {
            return Err((buffer, most as i32));
        }
        if self.link.sent_buffers() >= self.transmit_packets {
            return Err((buffer, NO_ROOM));
        }
        self.link.send(record, buffer);
        Ok(())
    }

    fn received(&self) -> Option<ExBox<Packet>> {
        let (record, buffer) = self.link.take_received()?;
        // A packet is dropped if there is no memory for it.
        let mut packet = ExBox::new(record).ok()?;
        packet.attach(buffer).ok()?;
        Some(packet)
    }
}

/// Notifies the client of received packets, one event at a time. Sent ones need no event: they are sent at once.
async fn announce(link: Rc<Link>, client: u64, mut events: nic_events::Exp<nic_events::states::Ready>) {
    while link.news(client).await {
        match events.nic_event(NicEventType::ReceiveEvent).receive_async().await {
            nic_events::ExpReadyAfterNicEvent::AckEvent { next } => events = next,
            nic_events::ExpReadyAfterNicEvent::ChannelClosed(_) => return,
        }
    }
}
