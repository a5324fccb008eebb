//! smoltcp's view of the interface: one packet in at most, packets out, no link below IP.

use smoltcp::phy::{Checksum, Device, DeviceCapabilities, Medium, PacketMeta, RxToken, TxToken};
use smoltcp::time::Instant;

use crate::output::{Buffer, Features, Output};

/// Bytes of the longest packet that an interface cuts, without its Ethernet header.
pub const LONGEST_CUT: usize = 40 + LONGEST_CUT_PAYLOAD;
/// Bytes of its payload where there are no options: whole segments of the usual links.
pub(crate) const LONGEST_CUT_PAYLOAD: usize = 42 * 1460;

/// What smoltcp is told of the interface. Checksums of TCP and UDP are not its matter: those of packets that come
/// were looked at before, those of packets that go are made when all is known.
pub(crate) fn capabilities(mtu: usize, features: Features) -> DeviceCapabilities {
    let mut capabilities = DeviceCapabilities::default();
    capabilities.medium = Medium::Ip;
    capabilities.max_transmission_unit = mtu;
    capabilities.checksum.ipv4 = Checksum::Tx;
    capabilities.checksum.tcp = Checksum::None;
    capabilities.checksum.udp = Checksum::None;
    if features.segmentation_version_4 && features.checksum {
        capabilities.segmentation.tcpv4 = core::num::NonZeroUsize::new(LONGEST_CUT.max(mtu));
    }
    capabilities
}

/// The interface for the time of one call of smoltcp.
pub(crate) struct Port<'a, B> {
    pub(crate) output: &'a mut Output<B>,
    pub(crate) input: Option<&'a [u8]>,
    /// Most bytes of a packet that gets where it is to go.
    pub(crate) mtu: usize,
}

impl<B: Buffer> Device for Port<'_, B> {
    type RxToken<'t>
        = Received<'t>
    where
        Self: 't;
    type TxToken<'t>
        = Room<'t, B>
    where
        Self: 't;

    fn receive(&mut self, _now: Instant) -> Option<(Received<'_>, Room<'_, B>)> {
        let packet = self.input.take()?;
        Some((Received(packet), Room { output: self.output, segment_bytes: 0 }))
    }

    fn transmit(&mut self, _now: Instant) -> Option<Room<'_, B>> {
        self.output.has_room().then_some(Room { output: self.output, segment_bytes: 0 })
    }

    fn capabilities(&self) -> DeviceCapabilities {
        capabilities(self.mtu, self.output.features)
    }
}

/// The packet that came.
pub(crate) struct Received<'a>(&'a [u8]);

impl RxToken for Received<'_> {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, take: F) -> R {
        take(self.0)
    }
}

/// Room for a packet to send.
pub(crate) struct Room<'a, B> {
    output: &'a mut Output<B>,
    segment_bytes: u16,
}

impl<B: Buffer> TxToken for Room<'_, B> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, bytes: usize, fill: F) -> R {
        self.output.send(bytes, self.segment_bytes, fill)
    }

    fn set_meta(&mut self, meta: PacketMeta) {
        self.segment_bytes = meta.segmentation_offload_size.map_or(0, core::num::NonZeroU16::get);
    }
}
