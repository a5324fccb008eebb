//! Procedural macros of the runtime: thin doors to what the host tools do as well.
//!
//! `contracts!` is the contract language's compiler (crate `lang`) at the place where its Rust code is
//! wanted. Deliberately not here: any knowledge of the language itself.
#![forbid(unsafe_code)]

mod contracts;

use proc_macro::TokenStream;

/// Turns contract files into Rust modules, one for each contract.
///
/// Takes paths of `.contract` files, or of folders with such files, from the folder of the crate's
/// `Cargo.toml`; all of them are one unit. Errors in them are errors of the build, with file and line.
/// A file that is new in a folder is seen at the next change of one that was there.
#[proc_macro]
pub fn contracts(input: TokenStream) -> TokenStream {
    contracts::expand(input)
}
