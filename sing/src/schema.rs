//! `sing schema`: what editors need to know of manifests.
//!
//! Deliberately not here: the schemas, which the crate `manifest` makes of what its reader knows.

use crate::command_line::{SchemaArguments, SchemaSubject};
use crate::failure::Outcome;
use crate::repository::write_whole;

/// `sing schema`.
///
/// # Errors
/// The file cannot be written.
pub fn print(arguments: &SchemaArguments) -> Outcome<u8> {
    let text = match arguments.of {
        SchemaSubject::Program => manifest::schema::program(),
        SchemaSubject::System => manifest::schema::system(),
    };
    match &arguments.output {
        Some(path) => write_whole(path, text.as_bytes())?,
        None => print!("{text}"),
    }
    Ok(0)
}
