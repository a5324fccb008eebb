//! The device `sockets0` of the hosted machine: the host's sockets, non-blocking.
//!
//! The offset of a Read or Write selects its meaning:
//!
//! * A *token* identifies a socket. A Read receives bytes into the block, a Write sends them; both complete at once, with
//!   [`Failure::WouldBlock`] if they would block. A Read of 0 bytes is the end of the peer's stream.
//! * A token with [`SENDER`] in a Read: one datagram is received, with its sender.
//! * A token with [`MORE`] in a Write: the bytes are buffered and sent before those of the next Write, which would block
//!   as long as some of them are left.
//! * [`CONTROL`] in a Write: the block begins with a command of [`RECORD_BYTES`], which the answer overwrites. Names
//!   are resolved by a host thread; all other commands complete at once.
//! * [`EVENTS`] in a Read: readiness of sockets, as records of [`EVENT_BYTES`]. It blocks until there is an event.
//!   There is one such Read at a time: a later one cancels an earlier one, which fails. A Flush makes a pending one
//!   poll again.
//!
//! An answer of at least [`FAILURE`] is the sum of that and a [`Failure`]. Readiness is edge-triggered, and reported
//! only after a call that would have blocked: a short result counts as such. Closing the device closes all sockets;
//! unfinished connections are reset. Numbers are little-endian.

/// Offset of a Write with a command.
pub const CONTROL: u64 = u64::MAX;
/// Offset of a Read of events.
pub const EVENTS: u64 = u64::MAX - 1;
/// Added to a token in a Write: more data follows.
pub const MORE: u64 = 1 << 62;
/// Added to the token of a socket for datagrams in a Read: the last [`SENDER_BYTES`] of the block are written to.
pub const SENDER: u64 = 1 << 61;
/// Maximum bytes buffered with [`MORE`].
pub const MAX_KEPT_BYTES: usize = 16 << 10;
/// Answers from this number on are failures: this plus a [`Failure`].
pub const FAILURE: u64 = 1 << 32;

/// Size of a command, and of an answer without its list, in bytes.
///
/// Bytes 0 to 7 are the [`Command`], 8 to 15 a token, 16 to 23 and 24 to 31 arguments, from [`NAME_AT`] on a socket
/// name. Lists and texts follow.
pub const RECORD_BYTES: usize = 64;
/// Offset of the token.
pub const TOKEN_AT: usize = 8;
/// Offset of the first argument, or of the number of records in an answer.
pub const FIRST_AT: usize = 16;
/// Offset of the second argument.
pub const SECOND_AT: usize = 24;
/// Offset of the socket name.
pub const NAME_AT: usize = 32;
/// Size of a socket name: an IPv6 address (IPv4 is mapped), a port (2 bytes), 2 zero bytes, the scope id of a
/// link-local address (4 bytes).
pub const NAME_BYTES: usize = 24;
/// Size of a record of an accepted connection: token, local name, remote name.
pub const ACCEPTED_BYTES: usize = 8 + 2 * NAME_BYTES;
/// Size of an event: a token, and its readiness.
pub const EVENT_BYTES: usize = 16;
/// Bytes at the end of a block for a received datagram's sender; the rest is for the datagram. An echo reply has the
/// remaining TTL or hop limit in place of the port.
pub const SENDER_BYTES: usize = NAME_BYTES;

/// Event: readable, acceptable, or the peer has finished.
pub const READABLE: u64 = 1;
/// Event: writable, or connected.
pub const WRITABLE: u64 = 2;
/// Event: the peer has finished, or the connection has ended.
pub const ENDING: u64 = 4;

numbered! {
    /// Commands.
    Command {
        /// Listens at a name, with a backlog (first argument). Answer: token and bound name.
        Listen = 1, "listen";
        /// Accepts at most this many (first argument) connections. Answer: their number and records.
        Accept = 2, "accept";
        /// Connects to a name. Answer: token. The socket becomes writable when the connection is established or fails.
        Connect = 3, "connect";
        /// The outcome of connecting. Answer: local name.
        Connected = 4, "connected";
        /// Shuts down the sending direction.
        Finish = 5, "finish";
        /// Closes a socket. With 1 as first argument the connection is reset. The answer has the counter of `Describe`
        /// in place of a name.
        Close = 6, "close";
        /// Whether small segments are sent at once (no Nagle; first argument), and the keep-alive idle time in seconds
        /// (second argument, 0: none).
        SetOptions = 7, "set options";
        /// Binds a datagram socket to a name. Answer: token and bound name.
        Bind = 8, "bind";
        /// Sets the destination of the datagrams of later Writes.
        SetRemote = 9, "set remote";
        /// Creates a socket for echo requests of ICMP (first argument 4) or ICMPv6 (6). Answer: token.
        OpenEcho = 10, "open echo";
        /// Resolves the name of this length (second argument) after the record to IPv4 (first argument 4), IPv6 (6) or
        /// all (0) addresses, 16 bytes each.
        Resolve = 11, "resolve";
        /// Lists the host's interfaces, as `InterfaceRecord` of the contract IpConfiguration. If the block is too
        /// short, the number still counts all of them; likewise in the lists below.
        Interfaces = 12, "interfaces";
        /// Lists their addresses, as `AddressRecord`.
        Addresses = 13, "addresses";
        /// Lists the host's routes, as `RouteRecord`.
        Routes = 14, "routes";
        /// Lists the host's name servers, 16 bytes each.
        NameServers = 15, "name servers";
        /// Of a connection: its state as in `SocketRecord` (first), bytes to be read (the second's upper half) and
        /// unacknowledged ones (its lower half). Of any socket, in place of a name: retransmitted segments of a
        /// connection, connections dropped for a full backlog, or datagrams dropped for a full queue.
        Describe = 16, "describe";
    }
}

numbered! {
    /// Why a request failed.
    Failure {
        /// It would block.
        WouldBlock = 1, "it would have to wait";
        /// The host does not permit it.
        NotPermitted = 2, "the host does not permit it";
        /// The address is not one of this host's, or makes no sense.
        BadAddress = 3, "the address is not one of this host's, or makes no sense";
        /// Address in use.
        AddressInUse = 4, "the address is in use";
        /// Connection refused.
        ConnectionRefused = 5, "nobody listens there";
        /// Connection reset by the peer, or by a host on the path.
        Reset = 6, "the connection was reset";
        /// Timed out.
        TimedOut = 7, "timed out";
        /// No route.
        Unreachable = 8, "there is no way to it";
        /// The socket is shut down or was never connected.
        Closed = 9, "it is finished";
        /// The host is out of memory or ports.
        Exhausted = 10, "the host has no room for it";
        /// Socket limit of this process.
        TooManySockets = 11, "this process may have no more sockets";
        /// The datagram is too long.
        TooLong = 12, "it is too long";
        /// No such name or object.
        NotFound = 13, "there is no such thing";
        /// A name server failed.
        ServerFailed = 14, "a name server failed";
        /// Not supported by the host.
        NotSupported = 15, "the host cannot do that";
        /// The token is invalid, or of another kind of socket.
        BadToken = 16, "no socket has that token";
        /// Malformed command.
        BadCommand = 17, "the command makes no sense";
        /// Any other error.
        Other = 18, "the host failed";
    }
}
