//! `sing check`: contracts, manifests and system manifests, without building anything.
//!
//! Deliberately not here: the rules; `lang` holds those of contracts, `manifest` those of manifests, and `install`
//! those of systems' promises.

use std::path::{Path, PathBuf};

use serde_json::json;

use crate::command_line::CheckArguments;
use crate::contracts::{ContractUnits, compile_files, contract_files};
use crate::deadlock;
use crate::failure::{Failure, Outcome};
use crate::install::changes::Changes;
use crate::programs::Programs;
use crate::promises;
use crate::repository::{Repository, read_text};
use crate::systems::{self, Catalogue};
use crate::terminal;

/// Result for one file or folder.
struct Finding {
    kind: &'static str,
    file: String,
    is_right: bool,
    /// Errors and warnings, or empty.
    text: String,
}

impl Finding {
    fn of<T>(kind: &'static str, file: String, outcome: &Outcome<T>) -> Finding {
        let text = outcome.as_ref().err().map_or(String::new(), Failure::to_string);
        Finding { kind, file, is_right: outcome.is_ok(), text }
    }
}

/// `sing check`. Returns 1 if there is any error.
///
/// # Errors
/// The file does not exist, or is of a kind that cannot be checked.
pub fn check(repository: &Repository, arguments: &CheckArguments) -> Outcome<u8> {
    if arguments.deadlock {
        return deadlock::check(repository, arguments.file.as_deref(), arguments.json);
    }
    let findings = match &arguments.file {
        Some(file) => check_file(repository, file)?,
        None => check_everything(repository)?,
    };
    if arguments.json {
        let list: Vec<_> = findings
            .iter()
            .map(|finding| {
                json!({ "kind": finding.kind, "file": finding.file, "ok": finding.is_right, "text": finding.text })
            })
            .collect();
        println!("{}", serde_json::Value::from(list));
    } else {
        print_findings(&findings);
    }
    Ok(u8::from(findings.iter().any(|finding| !finding.is_right)))
}

fn print_findings(findings: &[Finding]) {
    for finding in findings.iter().filter(|finding| !finding.text.is_empty()) {
        eprintln!("{}\n", finding.text.trim_end());
    }
    let count = |kind: &str| findings.iter().filter(|finding| finding.kind == kind).count();
    let wrong = findings.iter().filter(|finding| !finding.is_right).count();
    // Text without an error is a warning.
    let warned = findings.iter().filter(|finding| finding.is_right && !finding.text.is_empty()).count();
    println!(
        "checked {}, {}, {}: {}",
        plural(count("contracts"), "unit of contracts", "units of contracts"),
        plural(count("manifest"), "manifest", "manifests"),
        plural(count("system"), "system manifest", "system manifests"),
        verdict(wrong, warned)
    );
}

fn verdict(wrong: usize, warned: usize) -> String {
    match (wrong, warned) {
        (0, 0) => "all right".into(),
        (0, warned) => format!("no errors, {warned} with warnings"),
        (wrong, 0) => format!("{wrong} with errors"),
        (wrong, warned) => format!("{wrong} with errors, {warned} with warnings"),
    }
}

fn plural(count: usize, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

fn check_everything(repository: &Repository) -> Outcome<Vec<Finding>> {
    let units = ContractUnits::compile(repository)?;
    let mut findings: Vec<Finding> = units
        .all()
        .map(|(folder, compiled)| contracts_finding(repository.shown(folder).to_string(), compiled))
        .collect();
    if findings.iter().any(|finding| !finding.is_right) {
        // Manifests would only report missing contracts.
        return Ok(findings);
    }
    let programs = Programs::find(repository);
    for (folder, failure) in programs.broken() {
        findings.push(Finding::of::<()>("manifest", repository.shown(folder).to_string(), &Err(failure.clone())));
    }
    for program in programs.all() {
        let path = program.manifest();
        let outcome = units.manifest(repository, &path, program.contract_folder());
        findings.push(Finding::of("manifest", repository.shown(&path).to_string(), &outcome));
    }
    let catalogue = Catalogue::read(repository)?;
    for name in repository.system_names() {
        let path = repository.system_manifest(name.as_ref())?;
        findings.push(system_finding(repository, &catalogue, &path));
    }
    Ok(findings)
}

fn check_file(repository: &Repository, file: &Path) -> Outcome<Vec<Finding>> {
    let named = || repository.system_manifest(file).ok().filter(|_| !file.exists());
    if let Some(manifest) = named() {
        return Ok(vec![system_finding(repository, &Catalogue::read(repository)?, &manifest)]);
    }
    if systems::is_image(file) {
        let outcome = systems::described(repository, &Catalogue::read(repository)?, file);
        return Ok(vec![Finding::of("system", file.display().to_string(), &outcome)]);
    }
    let metadata = std::fs::metadata(file).map_err(|error| Failure::file("read", file, &error))?;
    if metadata.is_dir() {
        return check_folder(repository, file);
    }
    if file.extension().is_some_and(|extension| extension == "contract") {
        return Ok(vec![check_contract(repository, file)?]);
    }
    let table: toml::Table = toml::from_str(&read_text(file)?).unwrap_or_default();
    if table.contains_key("system") {
        return Ok(vec![system_finding(repository, &Catalogue::read(repository)?, file)]);
    }
    let is_toml = file.extension().is_some_and(|extension| extension == "toml");
    if !is_toml {
        return Err(Failure::new(format!("{} is neither a contract nor a manifest", file.display()))
            .remedy("use a .contract file, a manifest.toml or a system manifest"));
    }
    let units = ContractUnits::compile(repository)?;
    units.refuse_errors()?;
    let folder = file.parent().unwrap_or(Path::new("."));
    let code = table.get("code").and_then(|code| code.get("crate")).and_then(|folder| folder.as_str());
    let outcome = units.manifest(repository, file, &folder.join(code.unwrap_or_default()));
    Ok(vec![Finding::of("manifest", file.display().to_string(), &outcome)])
}

fn check_folder(repository: &Repository, folder: &Path) -> Outcome<Vec<Finding>> {
    let files = contract_files(folder);
    let mut findings = Vec::new();
    if !files.is_empty() {
        let compiled = compile_files(repository, &files)?;
        findings.push(contracts_finding(folder.display().to_string(), &compiled));
    }
    let manifest = folder.join("manifest.toml");
    if manifest.is_file() {
        findings.extend(check_file(repository, &manifest)?);
    }
    if findings.is_empty() {
        return Err(Failure::new(format!("{} contains no contract and no manifest.toml", folder.display()))
            .remedy("use a .contract file, a manifest.toml, a system manifest or a folder with one"));
    }
    Ok(findings)
}

/// Checks a contract file together with its unit, if it belongs to one.
fn check_contract(repository: &Repository, file: &Path) -> Outcome<Finding> {
    let shown = file.display().to_string();
    let absolute = file.canonicalize().map_err(|error| Failure::file("read", file, &error))?;
    let unit = crate_folder(&absolute).map(|folder| contract_files(&folder)).unwrap_or_default();
    let files: Vec<PathBuf> = if unit.contains(&absolute) { unit } else { vec![absolute] };
    Ok(contracts_finding(shown, &compile_files(repository, &files)?))
}

fn crate_folder(file: &Path) -> Option<PathBuf> {
    file.ancestors().skip(1).find(|folder| folder.join("Cargo.toml").is_file()).map(Path::to_path_buf)
}

fn contracts_finding(file: String, compiled: &lang::Compiled) -> Finding {
    let text = compiled.render(terminal::colours(&std::io::stderr()));
    Finding { kind: "contracts", file, is_right: compiled.unit.is_some(), text }
}

fn system_finding(repository: &Repository, catalogue: &Catalogue, path: &Path) -> Finding {
    let outcome =
        catalogue
            .system(repository, path)
            .and_then(|system| promises::hold(catalogue, &system))
            // Later changes to it are included.
            .and_then(|()| Changes::of(repository, path))
            .and_then(|changes| {
                if changes.is_empty() { Ok(()) } else { systems::described(repository, catalogue, path).map(drop) }
            });
    Finding::of("system", repository.shown(path).to_string(), &outcome)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_warned_of_is_not_all_right() {
        assert_eq!(verdict(0, 0), "all right");
        assert_eq!(verdict(0, 1), "no errors, 1 with warnings");
        assert_eq!(verdict(2, 1), "2 with errors, 1 with warnings");
    }
}
