//! The runtime linked into every SIP.
//!
//! Key types: [`channel`]'s endpoints and messages, [`exheap`]'s blocks, [`process::Child`],
//! [`thread`], [`mod@select`] and [`executor`] for waiting on several objects at once. Neighbours: the ABI
//! below (`abi`), generated contract code above. Unsafe code is confined to the modules named in
//! `docs/soundness/sip.md`; why the public items are safe for a hostile program to call is
//! listed in `docs/soundness/public-items.txt`.
//! Deliberately not here: writable global data. All state of a process hangs off its threads.
#![no_std]

extern crate alloc;
#[cfg(test)]
extern crate std;

#[doc(hidden)]
pub mod adapter;
#[doc(hidden)]
pub mod allocator;
pub mod audit;
pub mod channel;
pub mod config;
pub mod debug;
pub mod device;
pub mod diagnostics;
pub mod entry;
pub mod executor;
pub mod exheap;
pub mod hardware;
pub mod memory;
pub mod principal;
pub mod process;
pub mod programs;
mod raw;
pub mod select;
mod slots;
pub mod sync;
pub mod thread;
mod thread_block;
pub mod time;
pub mod window;

#[cfg(test)]
#[path = "../tests/double/mod.rs"]
mod double;

#[doc(hidden)]
pub use abi;
pub use abi::Status;
/// `core`, for macros whose expansion has unsafe code: the calling crate can redefine `::core`
/// (`extern crate other as core;`).
#[doc(hidden)]
pub use core as rust_core;
#[doc(hidden)]
pub use memory_functions::{memory_functions, unwind_symbols};
pub use sip_macros::{contracts, startup};
pub use time::Deadline;
