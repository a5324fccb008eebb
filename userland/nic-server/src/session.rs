//! One client's channel, and the events sent to it.

use alloc::rc::Rc;
use alloc::vec::Vec;

use contracts::Packet;
use contracts::nic_device::{self, ExpIoConfigureBegin, ExpIoConfigured, ExpIoRunning, states};
use contracts::nic_events;
use network::packets;
use sip::executor;
use sip::exheap::{ExBox, ExVec};

use crate::{Card, Client, Events, Refusal, sizes};

/// Value of `bad_packet_size` for a client that has reached its packet limit.
const NO_ROOM: i32 = 0;

/// A returned buffer, and the size for `bad_packet_size`.
type Returned = (ExVec<u8>, i32);

struct Session<C> {
    card: Rc<C>,
    client: Client,
    /// Maximum bytes of a packet with its Ethernet header.
    packet_bytes: usize,
}

/// Starts the card for a client and serves it as a task.
pub fn start<C: Card>(channel: nic_device::Exp<states::Start>, card: &Rc<C>) {
    let (number, description) = card.open();
    let begin =
        channel.device_info(description.mac, description.mtu, description.link_bits_per_s, description.features);
    let mut session = Session {
        card: Rc::clone(card),
        client: Client { number, receive_packets: 0, transmit_packets: 0 },
        packet_bytes: sizes::packet_bytes(description.mtu),
    };
    drop(executor::spawn(async move {
        if let Some(running) = session.configure(begin).await {
            session.run(running).await;
        }
        session.card.close(number);
    }));
}

impl<C: Card> Session<C> {
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
            let possible = 1..=C::MAX_PACKETS;
            if !possible.contains(&receive_packets) || !possible.contains(&transmit_packets) {
                begin = next.invalid_parameters(C::MAX_PACKETS, C::MAX_PACKETS);
                continue;
            }
            self.client.receive_packets = receive_packets as usize;
            self.client.transmit_packets = transmit_packets as usize;
            match next.success().receive_async().await {
                ExpIoConfigured::StartIO { next } => {
                    drop(executor::spawn(announce(Rc::clone(&self.card), self.client.number, c)));
                    return Some(next);
                }
                ExpIoConfigured::ConfigureIO { next } => begin = next,
                ExpIoConfigured::ChannelClosed(_) => return None,
            }
        }
    }

    async fn run(&self, mut running: nic_device::Exp<states::IoRunning>) {
        let (card, client) = (&*self.card, &self.client);
        loop {
            running = match running.receive_async().await {
                ExpIoRunning::PacketForReceive { p, next } => match self.give(p).inspect(|()| card.flush(client)) {
                    Ok(()) => next.success(),
                    Err((p, expected)) => next.bad_packet_size(p, expected),
                },
                ExpIoRunning::PacketForTransmit { p, length, next } => {
                    match self.send(&packets::sent(length), p).inspect(|()| card.flush(client)) {
                        Ok(()) => next.success(),
                        Err((p, expected)) => next.bad_packet_size(p, expected),
                    }
                }
                ExpIoRunning::GetReceivedPacket { next } => match self.received() {
                    Some(packet) => next.received_packet(packet),
                    None => next.no_packet(),
                },
                ExpIoRunning::GetTransmittedPacket { next } => match card.take_sent(client) {
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

    /// Takes the client's packets and buffers, and returns those due to it; `None` if there is no memory for the reply,
    /// which ends the channel.
    fn exchange(&self, given: ExVec<Packet>, most: usize) -> Option<ExVec<Packet>> {
        let mut taken = Vec::new();
        for (record, buffer) in packets::unpack(given) {
            let added = if record.length == 0 { self.give(buffer) } else { self.send(&record, buffer) };
            if let Err((buffer, _)) = added {
                taken.push((packets::empty(), buffer));
            }
        }
        self.card.collect(&self.client, &mut taken, most);
        packets::pack(taken.into_iter())
    }

    fn give(&self, buffer: ExVec<u8>) -> Result<(), Returned> {
        if buffer.len() < self.packet_bytes {
            return Err((buffer, self.packet_bytes as i32));
        }
        self.card.give(&self.client, buffer).map_err(|buffer| (buffer, NO_ROOM))
    }

    fn send(&self, record: &Packet, buffer: ExVec<u8>) -> Result<(), Returned> {
        if let Err(most) = sizes::check_length(record, buffer.len(), self.packet_bytes) {
            return Err((buffer, most as i32));
        }
        self.card.send(&self.client, record, buffer).map_err(|(buffer, refusal)| match refusal {
            Refusal::Full => (buffer, NO_ROOM),
            Refusal::Malformed => {
                let most = sizes::max_length(record, buffer.len(), self.packet_bytes);
                (buffer, most as i32)
            }
        })
    }

    fn received(&self) -> Option<ExBox<Packet>> {
        let (record, buffer) = self.card.take_received(&self.client)?;
        // A packet is dropped if there is no memory for it.
        let mut packet = ExBox::new(record).ok()?;
        packet.attach(buffer).ok()?;
        Some(packet)
    }
}

/// Notifies the client of events, one at a time.
async fn announce<C: Card>(card: Rc<C>, client: u64, mut channel: nic_events::Exp<nic_events::states::Ready>) {
    let mut pending = Events::default();
    while card.events(client, &mut pending).await {
        let Some(event) = pending.take() else { continue };
        match channel.nic_event(event).receive_async().await {
            nic_events::ExpReadyAfterNicEvent::AckEvent { next } => channel = next,
            nic_events::ExpReadyAfterNicEvent::ChannelClosed(_) => return,
        }
    }
}
