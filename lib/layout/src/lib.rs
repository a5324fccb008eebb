//! Registers of devices and records of bytes, each declared once and checked where it is declared.
//!
//! [`registers`] makes a *map* of a structure that names registers: an object over an [`Access`], with a method for
//! each register. [`bits`] makes a number with named bits of it, [`Record`] turns a structure into bytes and back. What
//! overlaps, lies outside, has no such width or may not be written does not compile. The generated code is
//! constants and calls of what is here; neighbours: `reflection` generates it, `sip::hardware` is the access of a
//! driver. Deliberately not here: what registers and records mean, and who may reach them.
//!
//! ```
//! /// What the port says of its line.
//! #[layout::bits(u8)]
//! pub struct Status {
//!     /// A byte has come in.
//!     #[bit(0)]
//!     received: bool,
//!     /// How many wait behind it.
//!     #[bits(4..=7)]
//!     waiting: u8,
//! }
//!
//! /// A port.
//! #[layout::registers(bytes = 4)]
//! pub struct Port {
//!     /// A byte of the line.
//!     #[at(0)]
//!     data: ReadWrite<u8>,
//!     /// What goes on.
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
