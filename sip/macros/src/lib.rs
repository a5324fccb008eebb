//! Procedural macros of the runtime: thin doors to what the host tools do as well.
//!
//! `contracts!` is the contract language's compiler (crate `lang`) at the place where its Rust code is
//! wanted, `startup!` the reader of manifests (crate `manifest`) in front of the emitter of `reflection`. Deliberately
//! not here: any knowledge of the language, of manifests, and of how a structure is emitted.
#![forbid(unsafe_code)]

mod contracts;
mod startup;

use proc_macro::TokenStream;

/// Turns contract files into Rust modules, one for each contract.
///
/// Takes paths of `.contract` files, or of folders with such files, from the folder of the crate's
/// `Cargo.toml`; all of them are one unit. Errors in them are errors of the build, with file and line.
/// A file that is new in a folder is seen at the next change of one that was there.
#[proc_macro]
pub fn contracts(input: TokenStream) -> TokenStream {
    contracts::expand(input.into()).into()
}

/// Makes the structure `Startup` of a program's `manifest.toml` and its
/// `sip::config::FromConfiguration`: a field for each parameter, in its declared type, one for each
/// endpoint, in its contract and state, and one for each device, as what the driver opens it. Also a module `devices`:
/// a structure for each device that consists of registers and interrupts, with a field for each of them, and the
/// indices of all.
///
/// Takes nothing, or the name of another manifest, from the folder of the crate's `Cargo.toml`. The crate
/// must say `extern crate alloc;`.
#[proc_macro]
pub fn startup(input: TokenStream) -> TokenStream {
    startup::expand(input.into()).into()
}
