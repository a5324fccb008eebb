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
    text.push_str(
        "`a > FILE` puts output into a file, `a >> FILE` behind what is in it, `a < FILE` gives it as input.\n",
    );
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

#[cfg(test)]
mod tests {
    use super::*;
    use package::{Category, Code, Domain, Quota, Supervision, Value, Version};

    fn parameter(name: &str, kind: ParameterKind, flag: Option<&str>, position: Option<u16>) -> Parameter {
        Parameter {
            name: name.into(),
            kind,
            default: None,
            required: false,
            position,
            repeated: position.is_some(),
            flag: flag.map(Into::into),
            help: format!("what {name} is for"),
        }
    }

    #[test]
    fn a_program_is_described_by_its_manifest_alone() {
        let mut manifest = Manifest {
            name: "show".into(),
            publisher: "somebody".into(),
            version: Version { major: 1, minor: 2, patch: 3 },
            abi: 1,
            category: Category::Console,
            summary: "shows things".into(),
            code: Code::Script { text: "echo $paths $wide".into() },
            contracts: Vec::new(),
            endpoints: Vec::new(),
            parameters: Vec::from([
                parameter("paths", ParameterKind::Text, None, Some(0)),
                parameter("wide", ParameterKind::Boolean, Some("-w"), None),
                parameter("count", ParameterKind::Integer, Some("-n"), None),
                parameter(WORKING_FOLDER, ParameterKind::Text, None, None),
            ]),
            provides: Vec::new(),
            devices: Vec::new(),
            requires: Vec::new(),
            quota: Quota::default(),
            supervision: Supervision::default(),
            permissions: Vec::new(),
            domain: Domain::Kernel,
        };
        manifest.parameters[2].default = Some(Value::Integer(5));
        let text = program(&manifest);
        assert!(text.starts_with("show: shows things\n\nusage: show"), "{text}");
        assert!(text.contains("  PATHS     what paths is for\n"), "{text}");
        assert!(text.contains("  -w        what wide is for\n"), "{text}");
        assert!(text.contains("  -n COUNT  what count is for (otherwise 5)\n"), "{text}");
        assert!(!text.contains(WORKING_FOLDER), "{text}");
        assert!(text.ends_with("principal: show.somebody, version 1.2.3\n"), "{text}");

        let assigned = arguments::assign(&manifest, &["a", "b", "-w"]).unwrap();
        assert!(crate::programs::has_last_position(&manifest, &assigned));
        assert_eq!(crate::programs::script_arguments(&manifest, &assigned), ["a", "b"]);
        let mut variables = crate::programs::script_variables(&manifest, &assigned);
        variables.sort();
        let expected = [("count", "5"), ("paths", "a b"), ("wide", "true")];
        assert_eq!(variables, expected.map(|(name, value)| (String::from(name), String::from(value))));
    }
}
