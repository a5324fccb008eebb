//! Shared server code of drivers of network cards: the `NicDevice` and `NicEvents` contracts for one client at a time.
//!
//! Key types: [`Card`] (implemented by the driver), [`Description`] (the card's properties), [`Client`] (its number and
//! limits), [`Events`]. Packets stay in the client's blocks, which the card gets and returns: there is no copy. A block
//! that the card cannot take goes back with the reply, so a client that sends faster than the card is throttled by its
//! own limits. Neighbours: [`network::packets`] has the batches. Deliberately not here: devices, implementations of
//! offloads, and protocols.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod session;
mod sizes;

use alloc::rc::Rc;
use alloc::vec::Vec;
use core::future::Future;
use core::mem;

use contracts::Packet;
use contracts::nic_device::{self, NicFeatures, states};
use contracts::nic_events::NicEventType;
use contracts::service_provider::{self, ConnectError, ExpReady};
use network::packets::Filled;
use sip::exheap::ExVec;

pub use sizes::ETHERNET_HEADER_BYTES;

/// Properties of a card, as in `DeviceInfo`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Description {
    /// Address of the interface.
    pub mac: [u8; 6],
    /// Maximum bytes of a packet without its Ethernet header.
    pub mtu: u32,
    /// Speed of the link: 0 while it is down, [`u64::MAX`] if unknown.
    pub link_bits_per_s: u64,
    /// Offloads of the card for the network stack.
    pub features: NicFeatures,
}

/// The client that a card serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Client {
    /// Unique among all clients so far.
    pub number: u64,
    /// Maximum buffers for receiving that the card holds, filled or not.
    pub receive_packets: usize,
    /// Maximum buffers for sending that the card holds, sent or not.
    pub transmit_packets: usize,
}

/// Reason why a card returns a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// It holds as many as it can, or as its client agreed on.
    Full,
    /// The packet does not allow the offload that is requested for it.
    Malformed,
}

/// Events that the client has not been notified of. Those that occur again meanwhile are merged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Events {
    /// Packets were received.
    pub received: bool,
    /// Packets were sent.
    pub sent: bool,
    /// The link went up or down.
    pub link: bool,
}

impl Events {
    /// Returns whether there are none.
    pub fn is_empty(self) -> bool {
        self == Events::default()
    }

    /// Adds others.
    pub fn merge(&mut self, others: Events) {
        self.received |= others.received;
        self.sent |= others.sent;
        self.link |= others.link;
    }

    /// Takes the most urgent one.
    pub fn take(&mut self) -> Option<NicEventType> {
        let events = [
            (&mut self.link, NicEventType::LinkEvent),
            (&mut self.received, NicEventType::ReceiveEvent),
            (&mut self.sent, NicEventType::TransmitEvent),
        ];
        events.into_iter().find_map(|(occurred, event)| mem::take(occurred).then_some(event))
    }
}

/// A network card with one client at a time. A former client's number has no effect and gets no packets.
pub trait Card: 'static {
    /// Maximum packets in each direction.
    const MAX_PACKETS: u32;

    /// Returns whether it has a client.
    fn is_open(&self) -> bool;

    /// Starts the card for a client, whose number it returns. Only called while it has none.
    fn open(&self) -> (u64, Description);

    /// Ends the service of a client and drops its buffers.
    fn close(&self, client: u64);

    /// Adds an empty buffer for a packet to receive. It is large enough for any.
    ///
    /// # Errors
    /// The buffer, if the card holds as many as it can or the client agreed on.
    fn give(&self, client: &Client, buffer: ExVec<u8>) -> Result<(), ExVec<u8>>;

    /// Queues the first `record.length` bytes of a buffer for sending, with the offloads of the record. The length is
    /// neither 0 nor greater than the buffer or the card's maximum.
    ///
    /// # Errors
    /// The buffer, and the reason it is not sent.
    fn send(&self, client: &Client, record: &Packet, buffer: ExVec<u8>) -> Result<(), (ExVec<u8>, Refusal)>;

    /// Notifies the device of added buffers and packets.
    fn flush(&self, client: &Client);

    /// Notifies the device, then adds received packets and the buffers of sent ones to `taken`, up to `most` in all. If
    /// fewer are available, the client is notified of the next.
    fn collect(&self, client: &Client, taken: &mut Vec<Filled>, most: usize);

    /// Takes the oldest received packet.
    fn take_received(&self, client: &Client) -> Option<Filled>;

    /// Takes the buffer of the oldest sent packet.
    fn take_sent(&self, client: &Client) -> Option<ExVec<u8>>;

    /// Waits until `pending` has an event and merges new ones into it; false if the client has left.
    fn events(&self, client: u64, pending: &mut Events) -> impl Future<Output = bool>;
}

/// Accepts clients, one at a time, and serves each as a task. Returns when the provider channel closes.
pub async fn accept<C: Card>(mut provider: service_provider::Exp<service_provider::states::Ready>, card: Rc<C>) {
    loop {
        provider = match provider.receive_async().await {
            ExpReady::Connect { path, rest, endpoint, next, .. } if (rest as usize) < path.len() => {
                next.nack(ConnectError::NotFound, endpoint)
            }
            ExpReady::Connect { endpoint, next, .. } if card.is_open() => next.nack(ConnectError::Busy, endpoint),
            ExpReady::Connect { endpoint, next, .. } => match endpoint.downcast::<nic_device::Exp<states::Start>>() {
                Ok(client) => {
                    session::start(client, &card);
                    next.ack()
                }
                Err(endpoint) => next.nack(ConnectError::WrongContract, endpoint),
            },
            ExpReady::ChannelClosed(_) => return,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_taken_once_link_first() {
        let mut events = Events { sent: true, ..Events::default() };
        events.merge(Events { received: true, link: true, sent: false });
        let taken: Vec<NicEventType> = core::iter::from_fn(|| events.take()).collect();
        assert!(matches!(
            taken[..],
            [NicEventType::LinkEvent, NicEventType::ReceiveEvent, NicEventType::TransmitEvent]
        ));
        assert!(events.is_empty());
    }
}
