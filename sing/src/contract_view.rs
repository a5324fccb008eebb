//! `sing contract`: a contract as a picture or as a model.

use std::path::Path;

use crate::command_line::{ContractArguments, ContractFormat};
use crate::contracts::ContractUnits;
use crate::failure::{Failure, Outcome};
use crate::repository::{Repository, write_whole};
use crate::spelling;

/// `sing contract`.
///
/// # Errors
/// There is no such contract, or the file cannot be written.
pub fn show(repository: &Repository, arguments: &ContractArguments) -> Outcome<u8> {
    let units = ContractUnits::compile(repository)?;
    units.refuse_errors()?;
    let contract = units.find(&arguments.name).ok_or_else(|| {
        let known = units.names();
        let otherwise = format!("give one of: {}", known.join(", "));
        Failure::new(format!("there is no contract `{}`", arguments.name)).remedy(spelling::meant(
            &arguments.name,
            known.iter().map(String::as_str),
            otherwise,
        ))
    })?;
    let text = match arguments.format {
        ContractFormat::Svg => lang::emit_svg(contract),
        ContractFormat::Promela => lang::emit_promela(contract),
    };
    write_or_print(arguments.output.as_deref(), &text)?;
    Ok(0)
}

/// Writes the text to the file, or to standard output when there is none.
///
/// # Errors
/// The file cannot be written.
pub fn write_or_print(output: Option<&Path>, text: &str) -> Outcome<()> {
    match output {
        Some(path) => write_whole(path, text.as_bytes()),
        None => {
            print!("{text}");
            Ok(())
        }
    }
}
