//! The device `sockets0` of the hosted machine: the host's own sockets, none of whose calls wait.
//!
//! What a Read or a Write of it means depends on its offset:
//!
//! * A *token* names a socket. Read takes bytes (or one datagram) into the block, Write sends them from it; both
//!   complete at once, and end with the [`Failure::WouldBlock`] where they would have to wait. An answer of 0 bytes
//!   is the end of what the other end sends.
//! * A token with [`MORE`] in a Write: the bytes are kept and sent together with those of the next Write, whose
//!   answer counts both.
//! * [`CONTROL`] in a Write: the block begins with a command of [`RECORD_BYTES`], which the answer overwrites. Names
//!   are resolved by a host thread; all other commands complete at once.
//! * [`EVENTS`] in a Read: what sockets have become able to do, as records of [`EVENT_BYTES`]. It completes at once
//!   where there is something, else when something happens. One at a time: a later one takes the place of an earlier
//!   one, which fails. A Flush lets the one that waits look again now.
//!
//! An answer from [`FAILURE`] on is that and a [`Failure`]. A socket tells of a readiness once (edge-triggered), and
//! only after a call that would have had to wait: whoever gets less than it asked for has seen the end for now. When
//! the device is closed, all sockets are, and connections that were not finished are reset. Numbers are
//! little-endian.

/// Offset of a Write that carries a command.
pub const CONTROL: u64 = u64::MAX;
/// Offset of a Read that waits for events.
pub const EVENTS: u64 = u64::MAX - 1;
/// Added to a token in a Write: more comes.
pub const MORE: u64 = 1 << 62;
/// What is kept with [`MORE`] at most, in bytes.
pub const MAX_KEPT_BYTES: usize = 16 << 10;
/// An answer that is not less is this and a [`Failure`].
pub const FAILURE: u64 = 1 << 32;

/// Bytes of a command, and of an answer without its list.
///
/// Bytes 0 to 7 the [`Command`], 8 to 15 a token, 16 to 23 and 24 to 31 arguments, from [`NAME_AT`] on a name. Lists and
/// texts come after it.
pub const RECORD_BYTES: usize = 64;
/// Where a command's or an answer's token is.
pub const TOKEN_AT: usize = 8;
/// Where its first argument, or the number of an answer's records, is.
pub const FIRST_AT: usize = 16;
/// Where its second argument is.
pub const SECOND_AT: usize = 24;
/// Where its name is.
pub const NAME_AT: usize = 32;
/// Bytes of a socket's name: an IPv6 address (one of IPv4 is mapped), a port (2 bytes), 2 of zero, the number of a
/// link-local address's interface (4 bytes).
pub const NAME_BYTES: usize = 24;
/// Bytes of a connection that was accepted: its token, the local name, the remote name.
pub const ACCEPTED_BYTES: usize = 8 + 2 * NAME_BYTES;
/// Bytes of an event: a token, and what it is ready for.
pub const EVENT_BYTES: usize = 16;
/// Bytes at the end of a block into which a datagram is read: who sent it. The datagram has the rest. An echo request
/// has no port; where its answer's would be is how many hops were left.
pub const SENDER_BYTES: usize = NAME_BYTES;

/// In an event: there is something to read or accept, or the other end has finished.
pub const READABLE: u64 = 1;
/// In an event: there is room to write, or the connection stands.
pub const WRITABLE: u64 = 2;
/// In an event: no more than what is there will come, or the connection is closed.
pub const ENDING: u64 = 4;

numbered! {
    /// What a command asks for.
    Command {
        /// Take connections at a name, with a backlog (first argument): token and the name that it got.
        Listen = 1, "listen";
        /// Accept at most so many (first argument) connections: how many, and their records.
        Accept = 2, "accept";
        /// Connect to a name: token. The connection stands or fails when the socket becomes writable.
        Connect = 3, "connect";
        /// How connecting went: the local name.
        Connected = 4, "connected";
        /// No more will be written to a connection.
        Finish = 5, "finish";
        /// Give a socket up. With 1 as first argument the other end is told of a reset. Where a name would be the answer
        /// has what `Describe` has there.
        Close = 6, "close";
        /// Whether small pieces are sent at once (first argument), and seconds of silence before the other end is
        /// asked whether it is there (second argument, 0: never).
        SetOptions = 7, "set options";
        /// A socket for datagrams at a name: token and the name that it got.
        Bind = 8, "bind";
        /// Whereto the datagrams of the next Writes go.
        SetRemote = 9, "set remote";
        /// A socket for echo requests of ICMP (first argument 4) or ICMPv6 (6): token.
        OpenEcho = 10, "open echo";
        /// Addresses (16 bytes each) of a name of so many bytes (second argument) after the record; of IPv4 (first
        /// argument 4), of IPv6 (6) or all (0).
        Resolve = 11, "resolve";
        /// The host's interfaces: records as `InterfaceRecord` of the contract IpConfiguration. If the block is too
        /// short, the number still tells how many there are; likewise in the lists below.
        Interfaces = 12, "interfaces";
        /// Their addresses: records as `AddressRecord`.
        Addresses = 13, "addresses";
        /// The host's routes: records as `RouteRecord`.
        Routes = 14, "routes";
        /// The host's name servers: 16 bytes each.
        NameServers = 15, "name servers";
        /// Of a connection: its state as in `SocketRecord` (first), bytes that wait to be read (the second's upper
        /// half) and to be sent or acknowledged (its lower half). Of any socket, where a name would be: segments that a
        /// connection sent once more, connections for which a listener had no room, or datagrams that found no room.
        Describe = 16, "describe";
    }
}

numbered! {
    /// Why something was not done.
    Failure {
        /// It would have to wait.
        WouldBlock = 1, "it would have to wait";
        /// The host does not permit it.
        NotPermitted = 2, "the host does not permit it";
        /// The address is not one of this host's, or makes no sense.
        BadAddress = 3, "the address is not one of this host's, or makes no sense";
        /// Somebody else has it.
        AddressInUse = 4, "the address is in use";
        /// Nobody listens there.
        ConnectionRefused = 5, "nobody listens there";
        /// The other end, or a host on the way, ended the connection.
        Reset = 6, "the connection was reset";
        /// No answer came in time.
        TimedOut = 7, "timed out";
        /// There is no way to it.
        Unreachable = 8, "there is no way to it";
        /// The socket is finished or was never connected.
        Closed = 9, "it is finished";
        /// The host has no memory or ports left for it.
        Exhausted = 10, "the host has no room for it";
        /// This process may have no more sockets.
        TooManySockets = 11, "this process may have no more sockets";
        /// A datagram is too long.
        TooLong = 12, "it is too long";
        /// There is no such name or thing.
        NotFound = 13, "there is no such thing";
        /// A name server failed.
        ServerFailed = 14, "a name server failed";
        /// The host cannot do that.
        NotSupported = 15, "the host cannot do that";
        /// The token names no socket, or none of that kind.
        BadToken = 16, "no socket has that token";
        /// The command makes no sense.
        BadCommand = 17, "the command makes no sense";
        /// Something else.
        Other = 18, "the host failed";
    }
}
