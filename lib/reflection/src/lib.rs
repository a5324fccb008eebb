//! Compile-time reflection: generates Rust code from declarations.
//!
//! A declaration is parsed ([`read`]), checked with spans, and emitted ([`emit`]). It is a structure in the source
//! ([`registers`], [`bits`], [`record`]) or comes from a file, such as a manifest's parameters and devices
//! ([`emit::Structure`], [`expand`]). Generated code consists of constants, types, and calls of handwritten functions;
//! facts known only to rustc, such as the width of a type, are asserted in it and fail at the declaration. Neighbours:
//! `sip-macros` and `layout-macros` are the procedural macros, `layout` and `sip` contain the called functions.
//! Deliberately not here: contracts, a language with a compiler of their own (`lang`).
#![forbid(unsafe_code)]

mod bits;
pub mod emit;
pub mod expand;
pub mod naming;
mod read;
mod record;
mod registers;

use proc_macro2::TokenStream;

/// Expands `layout::registers`.
pub fn registers(arguments: TokenStream, item: TokenStream) -> TokenStream {
    code_or_error(registers::expand(arguments, item))
}

/// Expands `layout::bits`.
pub fn bits(arguments: TokenStream, item: TokenStream) -> TokenStream {
    code_or_error(bits::expand(arguments, item))
}

/// Expands `layout::Record`.
pub fn record(item: TokenStream) -> TokenStream {
    code_or_error(record::expand(item))
}

fn code_or_error(outcome: syn::Result<TokenStream>) -> TokenStream {
    outcome.unwrap_or_else(|error| error.to_compile_error())
}
