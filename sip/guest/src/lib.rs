//! Contracts for WebAssembly programs: endpoints, messages and blocks, as native programs have them.
//!
//! `cargo sing contract NAME --format wasm-rust` writes the typed bindings of a contract over this crate; the compiler then
//! holds a program to the contract, and the kernel does whatever the compiler made. Key types: [`channel::TypedEndpoint`],
//! [`exheap::ExVec`]. Neighbour: `templates/wasi` performs the imports, which `imports` alone calls. Deliberately not here:
//! files, sockets and clocks, which WASI has.
#![no_std]
#![deny(unsafe_code)]

extern crate alloc;

pub mod channel;
pub mod exheap;
mod imports;
mod message;
mod record;
pub mod select;
mod time;

pub use abi::{self, Status};
#[doc(hidden)]
pub use core as rust_core;
pub use record::{SECTION, record};
pub use time::{Deadline, monotonic};

use channel::{AnyEndpoint, TypedEndpoint};

/// Takes an endpoint that the program was given, by its index among the `[[endpoint]]`s of its manifest; `None` if it is of
/// another type, was left out or was taken before.
pub fn endpoint<E: TypedEndpoint>(index: u32) -> Option<E> {
    let taken = imports::endpoint(index)?;
    AnyEndpoint::from_raw(channel::RawEndpoint::from_handle(taken)).downcast().ok()
}
