//! Compiles a WebAssembly module to machine code that can be added to a template's image.
//!
//! Key items: [`translate`] and its result [`Translated`], in parts with [`Compilation`]; of several [`bundle`] makes one.
//! WebAssembly 2.0 with vectors, tail calls and extended constant expressions is validated by `wasmparser` and compiled by
//! Cranelift, function by function. Code reaches the outside by relative references alone, which `compose` resolves: to the template's two functions, and to read-only arrays beside
//! the code. Its text holds instructions and nothing else: constants and jump tables are moved out of it.
//!
//! Neighbours: `wasm-record` has the layout of an instance's context. Deliberately not here: images, files, other machines.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod backend;
mod bundle;
mod compilation;
mod constants;
mod error;
mod frame;
mod function;
mod module;
mod sealed;
mod separate;
mod thunks;
mod translated;

pub use bundle::bundle;
pub use compilation::{Compilation, Part};
pub use error::Error;
pub use wasm_record::layout::Bounds;

pub use translated::{Relocation, TableEntry, Target, Translated, Trap, TrapKind};

use alloc::format;
use alloc::vec::Vec;

use wasm_record::Imports;

/// Limits of a module, beside those of WebAssembly's implementations that `wasmparser` has.
pub mod limits {
    /// Maximum size of a module, in bytes.
    pub const MODULE_BYTES: usize = 64 << 20;
    /// Maximum size of a function's body, in bytes.
    pub const BODY_BYTES: usize = 1 << 20;
    /// Maximum number of functions.
    pub const FUNCTIONS: usize = 100_000;
    /// Maximum number of distinct signatures, each of which takes some code.
    pub const SIGNATURES: usize = 10_000;
    /// Maximum number of locals of a function, parameters included. The time to place values that live at once is quadratic.
    pub const LOCALS: usize = 20_000;
    /// Maximum number of values on a function's stack.
    pub const STACK_VALUES: usize = 20_000;
    /// Maximum number of values that the blocks, branches and calls of a function pass, which its size does not bound: each
    /// may pass a thousand.
    pub const PASSED_VALUES: usize = 4 << 20;
    /// Maximum of locals of a function times the depth of its loops: each loop may pass each local to the next.
    pub const LOOPED_LOCALS: usize = 250_000;
    /// Maximum sum, over the blocks of a function, of the squares of the numbers of values that come into them: what it takes
    /// to place them.
    pub const PLACED_VALUES: usize = 100_000_000;
}

/// Compiles a module for a template that offers these imports, with these bounds of linear memory. `progress` is called
/// after each function with their number and that of all.
///
/// # Errors
/// The module is malformed, invalid, over a limit, uses what is not supported, or imports what the template does not offer.
pub fn translate(
    bytes: &[u8],
    imports: &Imports,
    bounds: Bounds,
    progress: &mut dyn FnMut(usize, usize),
) -> Result<Translated, Error> {
    let mut compilation = Compilation::new(bytes, imports, bounds)?;
    let all = compilation.parts();
    let mut parts = Vec::with_capacity(all);
    for number in 0..all {
        parts.push(compilation.compile(number)?);
        progress(number + 1, all);
    }
    compilation.finish(parts)
}

fn unsupported(what: impl core::fmt::Debug) -> Error {
    Error::Unsupported { what: format!("{what:?}") }
}
