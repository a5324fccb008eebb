//! TCP connections (RFC 9293) as state machines: segments, reads, writes and the time go in, segments come out.
//!
//! Key types: [`Connection`] (one end of a connection), [`Segment`] (what comes), [`Transmit`] (what goes), [`Memory`]
//! (the chunks that the buffers of all connections are made of). What it does beyond RFC 9293: window scaling (RFC
//! 7323), CUBIC (RFC 9438), selective acknowledgments both ways with D-SACK (RFC 2018, 2883, 6675), loss detection by
//! time with tail loss probes (RFC 8985), proportional rate reduction (RFC 6937), undoing spurious reductions (RFC
//! 3708), and what RFC 5961 asks for against blind attacks. Deliberately not here: addresses, ports, checksums, wire
//! formats, listening and TIME-WAIT, which are the network stack's; clocks and wakers; timestamps (RFC 7323, 3).
#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]

extern crate alloc;

mod buffers;
mod connection;
mod cubic;
mod memory;
mod ranges;
mod rate;
mod receiver;
mod rtt;
mod scoreboard;
mod segment;
mod sender;
mod seq;

pub use connection::{Connection, Reaction, Settings, State};
pub use memory::{CHUNK_BYTES, Memory};
pub use segment::{Options, Path, Segment, Transmit};
pub use seq::Seq;
