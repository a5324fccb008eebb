//! `sing schema`: schemas of manifests for editors.
//!
//! Deliberately not here: the schemas, which the crate `manifest` generates from the reader's tables.

use crate::command_line::{SchemaArguments, SchemaSubject};
use crate::contract_view::{Content, write_or_print};
use crate::failure::Outcome;

/// `sing schema`.
///
/// # Errors
/// The file cannot be written.
pub fn print(arguments: &SchemaArguments) -> Outcome<u8> {
    let text = match arguments.of {
        SchemaSubject::Program => manifest::schema::program(),
        SchemaSubject::System => manifest::schema::system(),
    };
    write_or_print(arguments.output.as_deref(), Content::Text, &text)?;
    Ok(0)
}
