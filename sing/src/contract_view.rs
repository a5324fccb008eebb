//! `sing contract`: shows a contract as a picture or as a model, or writes its bindings for WebAssembly programs.

use std::io::IsTerminal;
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
    let (unit, contract) = units.find_in(&arguments.name).ok_or_else(|| {
        let known = units.names();
        let otherwise = format!("use one of: {}", known.join(", "));
        Failure::new(format!("no contract `{}`", arguments.name)).remedy(spelling::meant(
            &arguments.name,
            known.iter().map(String::as_str),
            otherwise,
        ))
    })?;
    let (kind, text) = match arguments.format {
        ContractFormat::Svg => (Content::Picture, lang::emit_svg(contract)),
        ContractFormat::Promela => (Content::Text, lang::emit_promela(contract)),
        ContractFormat::WasmRust => (Content::Text, lang::emit_rust_guest(unit, &contract.name)),
        ContractFormat::WasmC => (Content::Text, lang::emit_c_guest(unit, &contract.name)),
    };
    write_or_print(arguments.output.as_deref(), kind, &text)?;
    Ok(0)
}

/// Output formats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Content {
    /// SVG, which is not readable text.
    Picture,
    /// Human-readable text.
    Text,
}

/// Writes the content to the file, or to standard output if there is none.
///
/// # Errors
/// The file cannot be written, or a picture would go to a terminal.
pub fn write_or_print(output: Option<&Path>, kind: Content, text: &str) -> Outcome<()> {
    match output {
        Some(path) => {
            refuse_missing_folder(path)?;
            write_whole(path, text.as_bytes())
        }
        None if kind == Content::Picture && std::io::stdout().is_terminal() => {
            Err(Failure::new("refusing to print an SVG picture to a terminal")
                .remedy("use `-o FILE.svg`, or redirect the output"))
        }
        None => {
            print!("{text}");
            Ok(())
        }
    }
}

/// A missing folder, perhaps misspelt, is not created.
fn refuse_missing_folder(file: &Path) -> Outcome<()> {
    match file.parent().filter(|folder| !folder.as_os_str().is_empty() && !folder.is_dir()) {
        None => Ok(()),
        Some(folder) => Err(Failure::new(format!("no such folder {}", folder.display()))
            .remedy("check the spelling, or create the folder first")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_that_is_not_there_is_not_made() {
        let folder = tempfile::tempdir().expect("a folder");
        let missing = folder.path().join("no/such/picture.svg");
        let refused = write_or_print(Some(&missing), Content::Picture, "<svg/>").expect_err("no folder").to_string();
        assert!(refused.contains("no such folder") && !folder.path().join("no").exists(), "{refused}");
        let there = folder.path().join("picture.svg");
        assert_eq!(write_or_print(Some(&there), Content::Picture, "<svg/>"), Ok(()));
        assert!(there.is_file());
    }
}
