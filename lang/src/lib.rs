//! The contract language: text to tree, tree to checked contracts, checked contracts to code.
//!
//! Key types: [`SourceFile`] in, [`Compiled`] out, with a checked [`Unit`] or [`Diagnostic`]s that say
//! why there is none. Three passes: [`syntax`] never fails and reports what it left out, [`check`]
//! holds all that makes a contract right, [`emit`] cannot fail. Neighbours: the macro `contracts!` of
//! the SIP runtime and the host tool call this crate; the automata are those of crate `abi`.
//! Deliberately not here: anything of the kernel or of a running system.
#![forbid(unsafe_code)]

pub mod check;
mod diagnostic;
pub mod emit;
mod naming;
pub mod syntax;
mod unit;

pub use diagnostic::{Code, Diagnostic};
pub use diagnostics::{Colours, Label, Severity, SourceFile, Span};
pub use emit::{
    SystemChannel, emit_promela, emit_promela_system, emit_rust, emit_svg, rust_module_name, rust_state_name,
};
pub use unit::{
    Argument, ArgumentKind, Contract, Field, Message, Scalar, State, Type, TypeIndex, TypeKind, Unit, Value, ValueType,
    Variant,
};

/// What came of compiling a unit.
#[derive(Debug)]
pub struct Compiled {
    /// The files, as they were given.
    pub files: Vec<SourceFile>,
    /// The contracts, when there are no errors.
    pub unit: Option<Unit>,
    /// Errors and warnings in the order of their places.
    pub diagnostics: Vec<Diagnostic>,
}

impl Compiled {
    /// All diagnostics as text, an empty line between two.
    pub fn render(&self, colours: Colours) -> String {
        diagnostics::render(&self.diagnostics, &self.files, colours)
    }
}

/// Compiles the files of one unit: they share one namespace of contracts and types.
pub fn compile(files: &[SourceFile]) -> Compiled {
    let mut diagnostics = Vec::new();
    let mut items = Vec::new();
    for (index, file) in files.iter().enumerate() {
        items.extend(syntax::parse(index, &file.text, &mut diagnostics));
    }
    // What could not be read would be missed by every check, and each would say so.
    let readable = !diagnostics.iter().any(Diagnostic::is_error);
    let unit = if readable { check::check(&items, &mut diagnostics) } else { None };
    diagnostics.sort_by_key(|diagnostic| diagnostic.labels.first().map(|label| label.span));
    Compiled { files: files.to_vec(), unit, diagnostics }
}
