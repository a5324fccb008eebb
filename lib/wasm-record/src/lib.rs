//! What the compiler of WebAssembly and the runtime of its programs agree on: the record of a module, and the layout of
//! an instance's context.
//!
//! A composed image is a *template*, a program of safe Rust that plays the host, with the compiled code of a module and
//! the module's [`Record`] added. Key types: [`Record`], [`View`], [`layout`], [`Imports`]. Neighbours: `wasm-translate`
//! writes records, `compose` puts them into images, `sip-wasm` looks at them when the program runs. Deliberately not here:
//! code.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod imports;
pub mod layout;
mod list;
mod reader;
mod record;
mod view;
mod writer;

pub use imports::{Import, ImportKind, Imports, ImportsError};
pub use list::{Item, List};
pub use record::{
    Data, Element, Export, ExportKind, Function, Global, Limits, Malformed, Mode, Part, Record, Signature, Table,
    ValueType,
};
pub use view::{ElementView, Numbers, View};

/// Size of a page of linear memory, in bytes (WebAssembly 2.0, section 4.2.8).
pub const WASM_PAGE_BYTES: u64 = 64 * 1024;

/// Maximum size of a 32-bit linear memory, in pages of [`WASM_PAGE_BYTES`].
pub const MAX_MEMORY_PAGES: u64 = 65536;

/// The null reference: no index of a function, and no reference that a host gives.
pub const NULL: u32 = u32::MAX;
