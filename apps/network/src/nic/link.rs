//! Exclusive access to a network interface: the `NicDevice` contract as functions.
//!
//! Deliberately not here: the meaning of packets.

use core::fmt;

use client::access::AccessError;
use client::answer::{DEVICE_LIMIT, wait};
use client::namespace::Namespace;
use contracts::nic_device::{self, states};
use contracts::nic_events;
use sip::exheap::ExVec;
use sip::{Deadline, Status};

/// Buffers in each direction.
const PACKETS: u32 = 8;
/// Length of an Ethernet header with a VLAN tag, in bytes.
const HEADER_BYTES: usize = 18;

/// Error of an interface operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkError {
    /// The interface could not be opened, or its driver ended.
    Access(AccessError),
    /// The driver refused the number or the size of packets.
    Refused,
}

impl<E: Into<AccessError>> From<E> for LinkError {
    fn from(error: E) -> LinkError {
        LinkError::Access(error.into())
    }
}

impl fmt::Display for LinkError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LinkError::Access(error) => error.fmt(formatter),
            LinkError::Refused => formatter.write_str("its driver does not take packets or buffers of this size"),
        }
    }
}

/// An open interface.
pub struct Interface {
    /// MAC address.
    pub mac: [u8; 6],
    /// Maximum packet size in bytes, without the Ethernet header.
    pub mtu: u32,
    /// Link speed in bits per second: 0 if down, the maximum if unknown.
    pub link_bits_per_s: u64,
    endpoint: nic_device::Imp<states::IoConfigureBegin>,
}

/// A started interface.
pub struct Running {
    endpoint: Option<nic_device::Imp<states::IoRunning>>,
    events: Option<nic_events::Imp<nic_events::states::Ready>>,
    buffer_bytes: usize,
}

impl Interface {
    /// Opens the interface at a path.
    pub fn open(namespace: &mut Namespace, path: &str) -> Result<Interface, LinkError> {
        Ok(namespace.open(path, nic_device::new_channel, |importer| match wait(importer, DEVICE_LIMIT)? {
            nic_device::ImpStart::DeviceInfo { mac_address, mtu, link_bits_per_s, features: _, next } => {
                Ok(Interface { mac: mac_address, mtu, link_bits_per_s, endpoint: next })
            }
            nic_device::ImpStart::ChannelClosed(_) => Err(AccessError::ServerEnded),
        })?)
    }

    /// Starts sending and receiving.
    pub fn start(self) -> Result<Running, LinkError> {
        let (events, announcer) = nic_events::new_channel()?;
        let asked = self.endpoint.register_for_events(announcer).set_parameters(PACKETS, PACKETS);
        let configured = match wait(asked, DEVICE_LIMIT)? {
            nic_device::ImpIoConfigureAck::Success { next } => next,
            nic_device::ImpIoConfigureAck::InvalidParameters { .. } => return Err(LinkError::Refused),
            nic_device::ImpIoConfigureAck::ChannelClosed(_) => return Err(AccessError::ServerEnded.into()),
        };
        let mut running = Running {
            endpoint: Some(configured.start_io()),
            events: Some(events),
            buffer_bytes: self.mtu as usize + HEADER_BYTES,
        };
        for _ in 0..PACKETS {
            let buffer = ExVec::new(running.buffer_bytes)?;
            running.give(buffer)?;
        }
        Ok(running)
    }
}

impl Running {
    fn take(&mut self) -> Result<nic_device::Imp<states::IoRunning>, LinkError> {
        self.endpoint.take().ok_or(LinkError::Access(AccessError::ServerEnded))
    }

    /// Adds a receive buffer.
    fn give(&mut self, buffer: ExVec<u8>) -> Result<(), LinkError> {
        match wait(self.take()?.packet_for_receive(buffer), DEVICE_LIMIT)? {
            nic_device::ImpIoRunningAfterPacketForReceive::Success { next } => {
                self.endpoint = Some(next);
                Ok(())
            }
            nic_device::ImpIoRunningAfterPacketForReceive::BadPacketSize { .. } => Err(LinkError::Refused),
            nic_device::ImpIoRunningAfterPacketForReceive::ChannelClosed(_) => Err(AccessError::ServerEnded.into()),
        }
    }

    /// Sends a packet.
    pub fn send(&mut self, packet: &[u8]) -> Result<(), LinkError> {
        let buffer = ExVec::from_slice(packet)?;
        match wait(self.take()?.packet_for_transmit(buffer, packet.len() as u32), DEVICE_LIMIT)? {
            nic_device::ImpIoRunningAfterPacketForTransmit::Success { next } => {
                self.endpoint = Some(next);
                Ok(())
            }
            nic_device::ImpIoRunningAfterPacketForTransmit::BadPacketSize { .. } => Err(LinkError::Refused),
            nic_device::ImpIoRunningAfterPacketForTransmit::ChannelClosed(_) => Err(AccessError::ServerEnded.into()),
        }
    }

    /// Receives packets until `wanted` returns a value for one; `None` at the deadline.
    pub fn receive_until<T>(
        &mut self,
        deadline: Deadline,
        wanted: impl Fn(&[u8]) -> Option<T>,
    ) -> Result<Option<T>, LinkError> {
        loop {
            while let Some((buffer, length)) = self.received()? {
                if let Some(found) = buffer.get(..length).and_then(&wanted) {
                    return Ok(Some(found));
                }
                self.give(buffer)?;
            }
            if !self.wait_for_event(deadline)? {
                return Ok(None);
            }
        }
    }

    /// Returns the next received packet and its length.
    fn received(&mut self) -> Result<Option<(ExVec<u8>, usize)>, LinkError> {
        match wait(self.take()?.get_received_packet(), DEVICE_LIMIT)? {
            nic_device::ImpIoRunningAfterGetReceivedPacket::ReceivedPacket { mut p, next } => {
                self.endpoint = Some(next);
                let buffer = p.detach()?.ok_or(AccessError::System(Status::NotFound))?;
                let buffer = buffer.into_vec().map_err(|_| AccessError::System(Status::BadArgument))?;
                Ok(Some((buffer, p.length as usize)))
            }
            nic_device::ImpIoRunningAfterGetReceivedPacket::NoPacket { next } => {
                self.endpoint = Some(next);
                Ok(None)
            }
            nic_device::ImpIoRunningAfterGetReceivedPacket::ChannelClosed(_) => Err(AccessError::ServerEnded.into()),
        }
    }

    /// Waits for any event; returns whether one came before the deadline.
    fn wait_for_event(&mut self, deadline: Deadline) -> Result<bool, LinkError> {
        let events = self.events.take().ok_or(AccessError::ServerEnded)?;
        match events.receive_by(deadline) {
            Ok(nic_events::ImpReady::NicEvent { next, .. }) => {
                self.events = Some(next.ack_event());
                Ok(true)
            }
            Ok(nic_events::ImpReady::ChannelClosed(_)) => Err(AccessError::ServerEnded.into()),
            Err(events) => {
                self.events = Some(events);
                Ok(false)
            }
        }
    }
}
