//! TCP connections (RFC 9293) as state machines: segments, reads, writes and the time go in, segments come out.
//!
//! Key types: [`Connection`] (one end of a connection), [`Segment`] (input), [`Transmit`] (output), [`Memory`] (the
//! chunks that all buffers are made of). Beyond RFC 9293 it implements window scaling (RFC 7323), CUBIC (RFC 9438),
//! SACK in both directions with D-SACK (RFC 2018, 2883, 6675), RACK loss detection with tail loss probes (RFC 8985),
//! proportional rate reduction (RFC 6937), undo of spurious reductions (RFC 3708), and the defences of RFC 5961
//! against blind attacks. Deliberately not here: addresses, ports, checksums, wire formats, listening and TIME-WAIT,
//! which the network stack has; clocks and wakers; timestamps (RFC 7323, 3).
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
