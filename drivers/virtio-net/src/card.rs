//! The interface as a card of `nic-server`.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::cell::Cell;

use contracts::nic_device::NicFeatures;
use contracts::{Packet, PacketFlags};
use network::packets::{self, Filled};
use nic_server::{Card, Client, Description, Events, Refusal};
use sip::exheap::ExVec;
use sip::hardware::DmaBlock;
use sip_virtio::{Core, DeviceError, Running, System, give_up};

use crate::net::{self, MAX_PACKETS, Net, Received};
use crate::offload::{self, Offered, Request};

type Buffer = DmaBlock<ExVec<u8>>;
type Link = Net<System, Buffer>;

/// The device: with a client it runs; without one it is reset and has no buffers.
pub struct Nic {
    system: System,
    link: Option<Link>,
    /// Number of the last client.
    client: u64,
}

impl Nic {
    /// Starts the device once, to check that it works.
    pub fn start(system: System) -> Result<Nic, DeviceError> {
        drop(Link::start(system.clone())?);
        Ok(Nic { system, link: None, client: 0 })
    }

    /// Starts the device for a client, and returns the client's number.
    fn open(&mut self) -> Result<(u64, net::Description), DeviceError> {
        // Dropping the former link resets the device, so it is dropped first.
        self.link = None;
        let link = Link::start(self.system.clone())?;
        let description = link.description()?;
        self.link = Some(link);
        self.client += 1;
        Ok((self.client, description))
    }

    fn close(&mut self, client: u64) {
        if self.client == client {
            self.link = None;
        }
    }

    /// Returns the link, while it belongs to this client.
    fn of_client(&mut self, client: u64) -> Option<&mut Link> {
        self.link.as_mut().filter(|_| self.client == client)
    }
}

impl Core for Nic {
    fn serve(&mut self) -> Result<(), DeviceError> {
        self.link.as_mut().map_or(Ok(()), Core::serve)
    }
}

/// The running device, and its offer to the current client.
pub struct Interface {
    system: System,
    device: Arc<Running<Nic>>,
    offered: Cell<Offered>,
}

impl Interface {
    pub fn new(system: System, device: Arc<Running<Nic>>) -> Interface {
        Interface { system, device, offered: Cell::default() }
    }

    /// Adds packets and buffers for the client.
    fn take(&self, from: &mut Link, taken: &mut Vec<Filled>, most: usize) {
        while taken.len() < most {
            let next = match from.take_received() {
                Some(received) => self.filled(received),
                None => match from.take_sent() {
                    Some(memory) => (packets::empty(), memory.end()),
                    None => return,
                },
            };
            taken.push(next);
        }
    }

    fn filled(&self, received: Received<Buffer>) -> Filled {
        let Received { memory, bytes, received_ns, is_checked } = received;
        let flags = PacketFlags::CHECKSUM.when(is_checked && self.offered.get().checksum);
        // A packet is not longer than its buffer, so its length fits.
        (Packet { received_ns, flags, ..packets::sent(bytes as u32) }, memory.end())
    }
}

impl Card for Interface {
    const MAX_PACKETS: u32 = MAX_PACKETS;

    fn is_open(&self) -> bool {
        self.device.with(|nic| nic.link.is_some())
    }

    fn open(&self) -> (u64, Description) {
        let (client, net::Description { mac, mtu, link_bits_per_s, offered }) = match self.device.with(Nic::open) {
            Ok(opened) => opened,
            Err(error) => give_up(&error),
        };
        self.offered.set(offered);
        (client, Description { mac, mtu, link_bits_per_s, features: features(offered) })
    }

    fn close(&self, client: u64) {
        self.device.with(|nic| nic.close(client));
    }

    fn give(&self, client: &Client, buffer: ExVec<u8>) -> Result<(), ExVec<u8>> {
        let bytes = buffer.len();
        let buffer = self.system.pin(buffer).map_err(|(buffer, _)| buffer)?;
        let given = self.device.with(|nic| match nic.of_client(client.number) {
            Some(link) if link.receive_buffers() < client.receive_packets => link.add_buffer(buffer, bytes),
            _ => Err(buffer),
        });
        given.map_err(DmaBlock::end)
    }

    fn send(&self, client: &Client, record: &Packet, buffer: ExVec<u8>) -> Result<(), (ExVec<u8>, Refusal)> {
        let bytes = record.length as usize;
        let checksum = record.flags.contains(PacketFlags::CHECKSUM);
        let request = Request { checksum, segment_bytes: record.segment_bytes };
        let header = buffer.get(..bytes).and_then(|packet| offload::header(packet, request, self.offered.get()));
        let Some(header) = header else { return Err((buffer, Refusal::Malformed)) };
        let buffer = self.system.pin(buffer).map_err(|(buffer, _)| (buffer, Refusal::Full))?;
        let queued = self.device.with(|nic| match nic.of_client(client.number) {
            Some(link) if link.transmit_buffers() < client.transmit_packets => link.send(buffer, bytes, &header),
            _ => Err(buffer),
        });
        queued.map_err(|buffer| (buffer.end(), Refusal::Full))
    }

    fn flush(&self, client: &Client) {
        self.device.with(|nic| {
            if let Some(link) = nic.of_client(client.number) {
                link.notify();
            }
        });
    }

    fn collect(&self, client: &Client, taken: &mut Vec<Filled>, most: usize) {
        self.device.with(|nic| {
            let Some(link) = nic.of_client(client.number) else { return };
            link.notify();
            self.take(link, taken, most);
            if taken.len() < most {
                // Buffers of sent packets can wait for the next exchange, unless the client may soon run out of
                // buffers.
                let is_short = taken.is_empty() || link.transmit_buffers() * 4 >= client.transmit_packets * 3;
                poll(link, is_short);
                self.take(link, taken, most);
            }
        });
    }

    fn take_received(&self, client: &Client) -> Option<Filled> {
        let received = self.device.with(|nic| {
            let link = nic.of_client(client.number)?;
            if !link.has_received() {
                poll(link, true);
            }
            link.take_received()
        });
        received.map(|received| self.filled(received))
    }

    fn take_sent(&self, client: &Client) -> Option<ExVec<u8>> {
        self.device.with(|nic| nic.of_client(client.number)?.take_sent()).map(DmaBlock::end)
    }

    async fn events(&self, client: u64, pending: &mut Events) -> bool {
        let occurred = self.device.until(|nic| {
            let Some(link) = nic.of_client(client) else { return Some(false) };
            pending.merge(link.take_events());
            (!pending.is_empty()).then_some(true)
        });
        occurred.await
    }
}

fn features(offered: Offered) -> NicFeatures {
    NicFeatures::CHECKSUM_OFFLOAD.when(offered.checksum)
        | NicFeatures::SEGMENTATION_IPV4.when(offered.segmentation_version_4)
        | NicFeatures::SEGMENTATION_IPV6.when(offered.segmentation_version_6)
}

/// Polls the device. A [`DeviceError`] ends the process, which is then restarted with the device reset.
fn poll(link: &mut Link, notify_sent: bool) {
    if let Err(error) = link.poll(notify_sent) {
        give_up(&error);
    }
}
