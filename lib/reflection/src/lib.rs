//! Compile-time reflection: from a declaration to the Rust code that it stands for.
//!
//! A declaration is read once ([`read`]), checked where it stands, and emitted ([`emit`]). What it declares may be a
//! structure in the source ([`registers`], [`bits`], [`record`]) or come from a file, such as a manifest's start-up and
//! devices ([`emit::Structure`], [`expand`]). The generated code is constants, types, and calls of functions that a
//! person wrote and rustc has checked once; what only rustc knows, such as how wide a type is, is asserted there and
//! fails at the declaration. Neighbours: `sip-macros` and `layout-macros` are the doors to the compiler, `layout` and
//! `sip` hold what is called. Deliberately not here: contracts, which are a language with a compiler of their own
//! (`lang`) that comes through the same door.
#![forbid(unsafe_code)]

mod bits;
pub mod emit;
pub mod expand;
pub mod naming;
mod read;
mod record;
mod registers;

use proc_macro2::TokenStream;

/// The map of registers that `item` declares; see `layout::registers`.
pub fn registers(arguments: TokenStream, item: TokenStream) -> TokenStream {
    code_or_error(registers::expand(arguments, item))
}

/// The number with named bits that `item` declares; see `layout::bits`.
pub fn bits(arguments: TokenStream, item: TokenStream) -> TokenStream {
    code_or_error(bits::expand(arguments, item))
}

/// What turns the structure `item` into bytes and back; see `layout::Record`.
pub fn record(item: TokenStream) -> TokenStream {
    code_or_error(record::expand(item))
}

fn code_or_error(outcome: syn::Result<TokenStream>) -> TokenStream {
    outcome.unwrap_or_else(|error| error.to_compile_error())
}
