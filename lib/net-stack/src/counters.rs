//! Statistics of a stack since it was created.

/// Counters; they only increase.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Packets received.
    pub received_packets: u64,
    /// Bytes received.
    pub received_bytes: u64,
    /// Packets handed out for transmission.
    pub sent_packets: u64,
    /// Bytes handed out for transmission.
    pub sent_bytes: u64,
    /// Received packets dropped: no matching socket, unknown protocol, or no room.
    pub dropped: u64,
    /// Packets dropped for lack of a free buffer.
    pub without_buffer: u64,
    /// Received packets that were malformed or failed their checksum.
    pub malformed: u64,
    /// Connections opened actively.
    pub tcp_connected: u64,
    /// Connections opened passively.
    pub tcp_accepted: u64,
    /// Connections refused or dropped because a backlog was full.
    pub tcp_overflowed: u64,
    /// Connections reset by the peer.
    pub tcp_reset: u64,
    /// Data segments retransmitted.
    pub tcp_retransmitted: u64,
    /// TCP sockets visited for packets and timers. Divided by the packets, this shows whether the cost per packet
    /// grows with the number of connections.
    pub tcp_looked_at: u64,
    /// Datagrams dropped because the socket's receive queue was full.
    pub udp_overflowed: u64,
    /// ICMP port-unreachable errors sent for datagrams.
    pub udp_refused: u64,
    /// ICMP errors accepted: they quote a packet of this machine that is still relevant.
    pub errors_believed: u64,
    /// ICMP errors ignored: they match nothing that this machine has in flight.
    pub errors_ignored: u64,
    /// Packets reassembled from fragments.
    pub joined: u64,
    /// Fragments dropped: overlapping, incomplete at the timeout, or no room.
    pub parts_lost: u64,
    /// Duplicate addresses: owned or tentative here, and claimed by another host on the link.
    pub duplicate_addresses: u64,
}
