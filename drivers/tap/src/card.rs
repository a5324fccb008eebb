//! The link as a card of `nic-server`.

use alloc::vec::Vec;

use contracts::Packet;
use contracts::nic_device::NicFeatures;
use network::packets::{self, Filled};
use nic_server::{Card, Client, Description, Events, Refusal};
use sip::exheap::ExVec;

use crate::link::{Link, MAX_PACKETS};

impl Card for Link {
    const MAX_PACKETS: u32 = MAX_PACKETS;

    fn is_open(&self) -> bool {
        self.is_taken()
    }

    fn open(&self) -> (u64, Description) {
        let sip::device::Link { hardware, mtu, features } = self.description;
        let features = NicFeatures::from_bits(features).unwrap_or(NicFeatures::empty());
        // The speed of a link within a host is unknown.
        let description = Description { mac: hardware, mtu: mtu.into(), link_bits_per_s: u64::MAX, features };
        (self.take(), description)
    }

    fn close(&self, client: u64) {
        self.release(client);
    }

    fn give(&self, client: &Client, buffer: ExVec<u8>) -> Result<(), ExVec<u8>> {
        if self.receive_buffers() >= client.receive_packets {
            return Err(buffer);
        }
        self.add(buffer);
        Ok(())
    }

    fn send(&self, client: &Client, record: &Packet, buffer: ExVec<u8>) -> Result<(), (ExVec<u8>, Refusal)> {
        if self.sent_buffers() >= client.transmit_packets {
            return Err((buffer, Refusal::Full));
        }
        self.write(record, buffer);
        Ok(())
    }

    /// Nothing is queued: the host has a packet when [`Card::send`] returns.
    fn flush(&self, _: &Client) {}

    fn collect(&self, client: &Client, taken: &mut Vec<Filled>, most: usize) {
        self.receive();
        while taken.len() < most {
            // Received packets go first.
            let sent = || Some((packets::empty(), self.take_sent(client)?));
            let Some(packet) = self.take_received(client).or_else(sent) else { break };
            taken.push(packet);
        }
        self.notify_rest();
    }

    fn take_received(&self, _: &Client) -> Option<Filled> {
        self.next_received()
    }

    fn take_sent(&self, _: &Client) -> Option<ExVec<u8>> {
        self.next_sent()
    }

    /// Sent packets are no event: they are sent at once.
    async fn events(&self, client: u64, pending: &mut Events) -> bool {
        if pending.is_empty() {
            pending.received = self.event(client).await;
        }
        !pending.is_empty()
    }
}
