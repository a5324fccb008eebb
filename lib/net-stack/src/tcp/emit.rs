//! Conversion between segments and packets: smoltcp's wire formats on one side, the crate `tcp`'s on the other.

use ::tcp::{Options, Path, Seq, Transmit};
use smoltcp::phy::{Checksum, ChecksumCapabilities};
use smoltcp::wire::{IpAddress, IpProtocol, IpRepr, TcpControl, TcpOption, TcpPacket, TcpRepr, TcpSeqNumber};

use crate::ends::End;
use crate::output::{Buffer, MAX_TSO_PAYLOAD_BYTES, Output};
use crate::packet::Segment;

/// Length of the IP and TCP headers without options, in bytes.
const HEADERS_4: usize = 40;
const HEADERS_6: usize = 60;
const HOP_LIMIT: u8 = 64;

/// Returns the MSS of the path to a host, and the maximum TSO burst.
pub(super) fn path<B: Buffer>(output: &Output<B>, remote: &IpAddress) -> Path {
    let (mtu, link_mtu) = (output.mtu_to(remote), output.mtu);
    let (headers, is_version_4) = match remote {
        IpAddress::Ipv4(_) => (HEADERS_4, true),
        IpAddress::Ipv6(_) => (HEADERS_6, false),
    };
    let mss = mtu.saturating_sub(headers);
    let features = output.features;
    let is_cut = is_version_4 && features.segmentation_version_4 && features.checksum && mtu == link_mtu;
    let burst_bytes = if is_cut && !output.addresses.is_local(remote) { MAX_TSO_PAYLOAD_BYTES.max(mss) } else { mss };
    Path { mss, burst_bytes }
}

/// Parses the options of a segment, up to the first malformed one.
pub(super) fn options(segment: &[u8]) -> Options {
    let mut found = Options::default();
    let Ok(packet) = TcpPacket::new_checked(segment) else { return found };
    let mut left = packet.options();
    while !left.is_empty() {
        match TcpOption::parse(left) {
            Ok((_, TcpOption::EndOfList)) | Err(_) => break,
            Ok((rest, option)) => {
                match option {
                    TcpOption::MaxSegmentSize(bytes) => found.mss = Some(bytes),
                    TcpOption::WindowScale(shift) => found.window_scale = Some(shift),
                    TcpOption::SackPermitted => found.sack_permitted = true,
                    TcpOption::SackRange(ranges) => {
                        found.sack = ranges.map(|range| range.map(|(start, end)| (Seq(start), Seq(end))));
                    }
                    _ => {}
                }
                left = rest;
            }
        }
    }
    found
}

/// Sends a segment, whose payload is copied by `fill`.
pub(super) fn send<B: Buffer>(
    output: &mut Output<B>,
    (local, remote): (End, End),
    transmit: &Transmit,
    fill: impl FnOnce(&mut [u8]),
) {
    let control = match () {
        () if transmit.is_reset => TcpControl::Rst,
        () if transmit.is_syn => TcpControl::Syn,
        () if transmit.is_fin => TcpControl::Fin,
        () if transmit.is_push => TcpControl::Psh,
        () => TcpControl::None,
    };
    let header = TcpRepr {
        src_port: local.port,
        dst_port: remote.port,
        control,
        // A bit-for-bit reinterpretation.
        seq_number: TcpSeqNumber(transmit.seq.0 as i32),
        ack_number: transmit.ack.map(|ack| TcpSeqNumber(ack.0 as i32)),
        window_len: transmit.window,
        window_scale: transmit.options.window_scale,
        max_seg_size: transmit.options.mss,
        sack_permitted: transmit.options.sack_permitted,
        sack_ranges: transmit.options.sack.map(|block| block.map(|(start, end)| (start.0, end.0))),
        timestamp: None,
        payload: &[],
    };
    let header_bytes = header.header_len();
    let tcp_bytes = header_bytes + transmit.payload_bytes;
    let ip = IpRepr::new(local.address, remote.address, IpProtocol::Tcp, tcp_bytes, HOP_LIMIT);
    output.counters.tcp_retransmitted += u64::from(transmit.is_retransmission);
    output.send(ip.header_len() + tcp_bytes, transmit.segment_bytes, |packet| {
        // The TCP checksum is filled in once the packet is complete.
        let mut checksums = ChecksumCapabilities::ignored();
        checksums.ipv4 = Checksum::Tx;
        ip.emit(&mut *packet, &checksums);
        let segment = &mut packet[ip.header_len()..];
        header.emit(&mut TcpPacket::new_unchecked(&mut *segment), &local.address, &remote.address, &checksums);
        fill(&mut segment[header_bytes..]);
    });
}

/// Sends a segment without data.
pub(super) fn send_bare<B: Buffer>(output: &mut Output<B>, ends: (End, End), sequence: u32, expected: u32) {
    let transmit = Transmit { seq: Seq(sequence), ack: Some(Seq(expected)), ..Transmit::default() };
    send(output, ends, &transmit, |_| ());
}

/// Answers a segment that belongs to no connection with a reset (RFC 9293, section 3.10.7.1).
pub(super) fn refuse<B: Buffer>(output: &mut Output<B>, (local, remote): (End, End), segment: &Segment) {
    if segment.is_reset || !output.has_room() {
        return;
    }
    let (seq, ack) = match segment.is_ack {
        true => (Seq(segment.acknowledged), None),
        false => (Seq(0), Some(Seq(segment.sequence) + segment.sequence_bytes())),
    };
    let reset = Transmit { seq, ack, is_reset: true, ..Transmit::default() };
    send(output, (local, remote), &reset, |_| ());
}
