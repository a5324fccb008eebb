//! Device registers and binary records, declared once and checked at compile time.
//!
//! [`registers`] turns a structure that names registers into a *map*: an object over an [`Access`], with a method for
//! each register. [`bits`] makes a number with named bits, [`Record`] converts a structure to bytes and back.
//! Overlaps, out-of-bounds offsets, wrong widths and forbidden accesses do not compile. Generated code consists of
//! constants and calls into this crate. Neighbours: `reflection` generates it, `sip::hardware` is a driver's access.
//! Deliberately not here: the meaning of registers and records, and access rights.
//!
//! ```
//! /// Line status.
//! #[layout::bits(u8)]
//! pub struct Status {
//!     /// A byte has been received.
//!     #[bit(0)]
//!     received: bool,
//!     /// Number of bytes queued behind it.
//!     #[bits(4..=7)]
//!     waiting: u8,
//! }
//!
//! /// A port.
//! #[layout::registers(bytes = 4)]
//! pub struct Port {
//!     /// Data.
//!     #[at(0)]
//!     data: ReadWrite<u8>,
//!     /// Status.
//!     #[at(1)]
//!     status: ReadOnly<Status>,
//! }
//!
//! # struct Nothing;
//! # impl layout::Access<u8> for Nothing {
//! #     fn read(&self, _: u64) -> u8 { 0x21 }
//! #     fn write(&self, _: u64, _: u8) {}
//! # }
//! # let access = Nothing;
//! let port = Port::over(access);
//! let status = port.status().read();
//! assert!(status.received() && status.waiting() == 2);
//! port.data().write(b'!');
//! ```
#![no_std]
#![forbid(unsafe_code)]

pub mod check;
mod field;
mod register;

pub use field::{Field, Order};
pub use layout_macros::{Record, bits, registers};
pub use register::{Access, Map, ReadOnly, ReadWrite, Readable, Register, Value, Word, Writable, WriteOnly};
