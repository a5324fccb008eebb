//! Manifest sources: TOML in, the binary form or diagnostics out. `install` checks the result, and its findings are
//! mapped to places in the source.
//!
//! Key types: [`Program`] (a program's manifest, read and checked), [`Diagnostics`] (otherwise), [`Contracts`] (a
//! source of contract metadata). Neighbours: the host tool and the macro `startup!` call this crate; the types of the
//! result are those of crate `manifest-model`. Deliberately not here: the contract language, and anything about images.
#![forbid(unsafe_code)]

mod bases;
mod diagnostic;
mod domains;
mod generated;
mod objects;
mod parameters;
mod program;
mod reader;
mod resources;
pub mod schema;
pub mod shapes;
mod system;
mod trust;

pub use bases::SystemFile;
pub use diagnostic::{Code, Diagnostic, Diagnostics, Kind};
pub use diagnostics::{Colours, Label};
pub use objects::{DeviceObject, RangeObject, is_entry};
pub use program::{
    Contract, Contracts, DEFAULT_BOUNDS, DEFAULT_PUBLISHER, DEFAULT_TEMPLATE, Program, WasmModule, program,
};
pub use system::system;

use diagnostics::SourceFile;
use reader::Report;
use toml::Spanned;
use toml::de::DeTable;

/// Parses the file as TOML, lets `check` read the tables, and returns its result unless there are diagnostics.
fn read<T>(
    file: &str,
    text: &str,
    check: impl FnOnce(&Report, &Spanned<DeTable<'_>>) -> Option<T>,
) -> Result<T, Diagnostics> {
    let report = Report::default();
    let result = parse(&report, text).and_then(|table| check(&report, &table));
    finish(report, result, vec![(SourceFile::new(file, text), 0)])
}

/// Parses the text as tables; syntax errors are reported.
fn parse<'t>(report: &Report, text: &'t str) -> Option<Spanned<DeTable<'t>>> {
    match DeTable::parse(text) {
        Ok(table) => Some(table),
        Err(error) => {
            let span = error.span().unwrap_or(0..0);
            let message = format!("the file is not TOML: {}", error.message().replace('\n', ", "));
            report.add(
                Code::Syntax,
                message,
                &span,
                "it cannot be read from here on",
                "write `key = value` lines under `[table]` headings; see https://toml.io".into(),
            );
            None
        }
    }
}

/// Returns the result, if there is one and no diagnostics. `files`: each with the offset of its spans.
fn finish<T>(report: Report, result: Option<T>, files: Vec<(SourceFile, usize)>) -> Result<T, Diagnostics> {
    let (files, starts): (Vec<SourceFile>, Vec<usize>) = files.into_iter().unzip();
    let items = report.finish(&starts);
    match result {
        Some(result) if items.is_empty() => Ok(result),
        _ => Err(Diagnostics { files, items }),
    }
}
