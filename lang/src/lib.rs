//! The compiler of the contract language.
//!
//! Key types: [`SourceFile`] in, [`Compiled`] out, with a checked [`Unit`] or [`Diagnostic`]s. Three passes:
//! [`syntax`] never fails, and reports skipped input; [`check`] contains all semantic rules; [`emit`] cannot fail.
//! Neighbours: the macro `contracts!` of the SIP runtime and the host tool call this crate; automata are defined in
//! `abi`. Deliberately not here: anything of the kernel or a running system.
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
    Carrier, Deed, Event, SystemChannel, c_name, emit_c, emit_c_abi, emit_c_guest, emit_promela, emit_promela_system,
    emit_rust, emit_rust_guest, emit_svg, has_calls, rust_module_name, rust_state_name, waits_alone,
};
pub use unit::{
    Argument, ArgumentKind, Contract, Field, Message, Scalar, State, Type, TypeIndex, TypeKind, Unit, Value, ValueType,
    Variant,
};

/// The result of compiling a unit.
#[derive(Debug)]
pub struct Compiled {
    /// The source files.
    pub files: Vec<SourceFile>,
    /// The contracts, if there are no errors.
    pub unit: Option<Unit>,
    /// Errors and warnings, in source order.
    pub diagnostics: Vec<Diagnostic>,
}

impl Compiled {
    /// Renders all diagnostics, separated by empty lines.
    pub fn render(&self, colours: Colours) -> String {
        diagnostics::render(&self.diagnostics, &self.files, colours)
    }
}

/// Compiles the files of a unit, which share one namespace of contracts and types.
pub fn compile(files: &[SourceFile]) -> Compiled {
    let mut diagnostics = Vec::new();
    let mut items = Vec::new();
    for (index, file) in files.iter().enumerate() {
        items.extend(syntax::parse(index, &file.text, &mut diagnostics));
    }
    // After syntax errors, the checks would report skipped input as missing.
    let readable = !diagnostics.iter().any(Diagnostic::is_error);
    let unit = if readable { check::check(&items, &mut diagnostics) } else { None };
    diagnostics.sort_by_key(|diagnostic| diagnostic.labels.first().map(|label| label.span));
    Compiled { files: files.to_vec(), unit, diagnostics }
}
