//! The doors of the crate `layout` to the compiler. What they do is in `reflection`, and documented at
//! `layout::registers`, `layout::bits` and `layout::Record`, where they are found.
#![forbid(unsafe_code)]

use proc_macro::TokenStream;

/// Makes a map of registers of a structure that names them.
///
/// `#[layout::registers(bytes = 8)]` on a structure whose fields are `ReadOnly<V>`, `WriteOnly<V>` or `ReadWrite<V>`,
/// each with its place `#[at(offset)]`; `V` is `u8`, `u16`, `u32`, `u64` or a structure of `#[layout::bits]`, and says how
/// wide the register is. The structure becomes one over an access: `Name::over(access)`, with a method for each
/// register. Registers that have a place in common only while a switch of the device is set are put into a bank of
/// their own: `#[at(0, bank = "divisor")]`.
///
/// What does not compile: registers of one bank and direction that overlap; one that lies outside of `bytes` or at no
/// multiple of its width; reading what is `WriteOnly`, writing what is `ReadOnly`; a width that the access does not have.
#[proc_macro_attribute]
pub fn registers(arguments: TokenStream, item: TokenStream) -> TokenStream {
    reflection::registers(arguments.into(), item.into()).into()
}

/// Makes a number with named bits of a structure that names them.
///
/// `#[layout::bits(u8)]` on a structure whose fields are `bool` with `#[bit(3)]`, or `u8` to `u64` with `#[bits(4..=7)]`.
/// Each becomes a method that tells it and one, `with_...`, that gives the number with it changed, both `const`; so are
/// `from_bits` and `bits`. `NONE` has no bit set. Bits without a name are kept as they are.
///
/// What does not compile: bits that overlap or lie outside of the number, and a field that is too narrow for its bits.
#[proc_macro_attribute]
pub fn bits(arguments: TokenStream, item: TokenStream) -> TokenStream {
    reflection::bits(arguments.into(), item.into()).into()
}

/// Turns a structure into bytes and back.
///
/// `#[record(bytes = 32, order = "little")]` says how many bytes it has in all and which byte of a number comes first;
/// each field follows the one before it, or has its place, `#[at(offset)]`. `from_bytes`, `to_bytes`, `parse` (of the
/// first bytes of more) and `write` (which leaves alone what belongs to no field) are its methods; a record can be a
/// field of another.
///
/// What does not compile: fields that overlap or lie outside of `bytes`, and a field of a type that has no fixed bytes.
#[proc_macro_derive(Record, attributes(record, at))]
pub fn record(item: TokenStream) -> TokenStream {
    reflection::record(item.into()).into()
}
