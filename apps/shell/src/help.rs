//! Help, all of it from manifests.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use package::{Manifest, Parameter, ParameterKind, arguments};

use crate::builtins::BUILTINS;
use crate::programs::{Programs, WORKING_FOLDER};

/// What there is: builtins and programs, a line each.
pub fn overview(programs: &Programs) -> String {
    let mut text = String::from("Commands of the shell:\n");
    text.push_str(&list(BUILTINS.iter().map(|builtin| (builtin.usage, builtin.summary))));
    text.push_str("\nPrograms:\n");
    text.push_str(&list(programs.for_people().map(|manifest| (manifest.name.as_str(), manifest.summary.as_str()))));
    text.push_str("\n`help NAME` or `NAME -?` tells more. `a | b` joins programs, `a &` runs one beside the shell.\n");
    text
}

fn list<'a>(lines: impl Iterator<Item = (&'a str, &'a str)>) -> String {
    let lines: Vec<(&str, &str)> = lines.collect();
    let width = lines.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
    lines.iter().map(|(name, summary)| format!("  {name:width$}  {summary}\n")).collect()
}

/// How a program is called and what it is given.
pub fn program(manifest: &Manifest) -> String {
    let mut text = format!("{}: {}\n\nusage: {}\n", manifest.name, manifest.summary, arguments::usage(manifest));
    let shown = manifest.parameters.iter().filter(|parameter| parameter.name != WORKING_FOLDER);
    let lines: Vec<(String, String)> = shown.map(parameter_line).collect();
    if !lines.is_empty() {
        text.push('\n');
        text.push_str(&list(lines.iter().map(|(called, help)| (called.as_str(), help.as_str()))));
    }
    let uses: Vec<&str> = manifest.contracts.iter().map(|contract| contract.name.as_str()).collect();
    if !uses.is_empty() {
        text.push_str(&format!("\ncontracts: {}\n", uses.join(", ")));
    }
    text.push_str(&format!("principal: {}, version {}\n", manifest.principal(), manifest.version));
    text
}

fn parameter_line(parameter: &Parameter) -> (String, String) {
    let value = parameter.name.to_uppercase();
    let called = match &parameter.flag {
        Some(flag) if parameter.kind == ParameterKind::Boolean => flag.clone(),
        Some(flag) => format!("{flag} {value}"),
        None => value,
    };
    let default = match &parameter.default {
        Some(value) if parameter.kind != ParameterKind::Boolean => format!(" (otherwise {value})"),
        _ => String::new(),
    };
    (called, format!("{}{default}", parameter.help))
}
