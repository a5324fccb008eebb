//! What a stack has done since it was made.

/// Counts; they only grow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Packets that came.
    pub received_packets: u64,
    /// Their bytes.
    pub received_bytes: u64,
    /// Packets that were given out to be sent.
    pub sent_packets: u64,
    /// Their bytes.
    pub sent_bytes: u64,
    /// Packets that came and were of no use: for nobody, of no known kind, or with no room left for them.
    pub dropped: u64,
    /// Packets that were not sent because no buffer was free.
    pub without_buffer: u64,
    /// Packets that came and were malformed, or whose checksum was wrong.
    pub malformed: u64,
    /// Connections that were made from here.
    pub tcp_connected: u64,
    /// Connections that were made from elsewhere.
    pub tcp_accepted: u64,
    /// Connections that were refused or forgotten because too many waited.
    pub tcp_overflowed: u64,
    /// Connections that ended by a reset of the other end.
    pub tcp_reset: u64,
    /// Segments with data that were sent once more.
    pub tcp_retransmitted: u64,
    /// Sockets of TCP that were looked at for packets and timers. Divided by the packets it tells whether a packet
    /// costs more where there are more connections.
    pub tcp_looked_at: u64,
    /// Datagrams that found their socket full.
    pub udp_overflowed: u64,
    /// Errors that were sent because nobody was at the port of a datagram.
    pub udp_refused: u64,
    /// Errors that came and were about a packet of this machine that is still of interest.
    pub errors_believed: u64,
    /// Errors that came and were about nothing that this machine has under way.
    pub errors_ignored: u64,
    /// Packets that were put together of parts.
    pub joined: u64,
    /// Parts of packets that were lost: they overlapped, came without the rest, or there was no room.
    pub parts_lost: u64,
    /// Addresses that this machine has, or was about to have, and somebody else on the link claims.
    pub duplicate_addresses: u64,
}
