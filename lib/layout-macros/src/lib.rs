//! Procedural macros of the crate `layout`. They are implemented in `reflection`, and documented at
//! `layout::registers`, `layout::bits` and `layout::Record`.
#![forbid(unsafe_code)]

use proc_macro::TokenStream;

/// Turns a structure that names registers into a register map.
///
/// `#[layout::registers(bytes = 8)]` on a structure whose fields are `ReadOnly<V>`, `WriteOnly<V>` or `ReadWrite<V>`,
/// each with its place `#[at(offset)]`; `V` is `u8`, `u16`, `u32`, `u64` or a structure of `#[layout::bits]`, and
/// determines the register's width. The structure becomes one over an access: `Name::over(access)`, with a method for
/// each register. Registers that share an address, selected by a switch of the device, go into a bank: `#[at(0, bank =
/// "divisor")]`.
///
/// Compile errors: registers of one bank and direction that overlap; one outside `bytes` or not aligned to its width;
/// reading a `WriteOnly`, writing a `ReadOnly` register; a width that the access does not support.
#[proc_macro_attribute]
pub fn registers(arguments: TokenStream, item: TokenStream) -> TokenStream {
    reflection::registers(arguments.into(), item.into()).into()
}

/// Turns a structure that names bits into a number with named bits.
///
/// `#[layout::bits(u8)]` on a structure whose fields are `bool` with `#[bit(3)]`, or `u8` to `u64` with
/// `#[bits(4..=7)]`. Each field becomes a getter and a method `with_...` that returns the number with the field
/// changed; both are `const`, as are `from_bits` and `bits`. `NONE` has no bit set. Unnamed bits are preserved.
///
/// Compile errors: bits that overlap or lie outside the number, and a field too narrow for its bits.
#[proc_macro_attribute]
pub fn bits(arguments: TokenStream, item: TokenStream) -> TokenStream {
    reflection::bits(arguments.into(), item.into()).into()
}

/// Derives conversion of a structure to bytes and back.
///
/// `#[record(bytes = 32, order = "little")]` states the size and the byte order; each field follows the previous one,
/// or has its place, `#[at(offset)]`. The methods are `from_bytes`, `to_bytes`, `parse` (of a prefix of the bytes) and
/// `write` (which preserves bytes of no field). Records nest.
///
/// Compile errors: fields that overlap or lie outside `bytes`, and a field of a type without a fixed size.
#[proc_macro_derive(Record, attributes(record, at))]
pub fn record(item: TokenStream) -> TokenStream {
    reflection::record(item.into()).into()
}
