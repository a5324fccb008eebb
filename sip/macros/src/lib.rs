//! Procedural macros of the runtime: thin wrappers around libraries that the host tools use too.
//!
//! `contracts!` runs the contract language's compiler (crate `lang`) where its Rust code is wanted; `startup!` joins the
//! manifest parser (crate `manifest`) to the emitter of `reflection`. Deliberately not here: any knowledge of the
//! language, of manifests, or of how a structure is emitted.
#![forbid(unsafe_code)]

mod contracts;
mod startup;

use proc_macro::TokenStream;

/// Compiles contract files to Rust modules, one per contract.
///
/// Takes paths of `.contract` files, or of folders with such files, relative to the crate's `Cargo.toml`; all of them
/// are one compilation unit. Contract errors are build errors, with file and line. A file added to a folder is noticed
/// only when one of the files already there changes.
#[proc_macro]
pub fn contracts(input: TokenStream) -> TokenStream {
    contracts::expand(input.into()).into()
}

/// Generates the structure `Startup` from a program's `manifest.toml`, with its `sip::config::FromConfiguration`: one
/// field per parameter, in its declared type, one per endpoint, in its contract and state, and one per device, as a
/// `sip::device::Declared` of its driver-side type. Also generates a module `devices`: the index of each device, and a
/// structure for each device that consists of registers and interrupts, with a field for each of them.
///
/// Takes nothing, or the name of another manifest relative to the crate's `Cargo.toml`. The crate must declare
/// `extern crate alloc;`.
#[proc_macro]
pub fn startup(input: TokenStream) -> TokenStream {
    startup::expand(input.into()).into()
}
