//! Help texts, generated from manifests.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use manifest_model::{Manifest, Parameter, ParameterKind, Value};

use crate::builtins::BUILTINS;
use crate::programs::{Programs, WORKING_FOLDER};

/// Lists builtins and programs, a line each.
pub fn overview(programs: &Programs) -> String {
    let mut text = String::from("Commands of the shell:\n");
    text.push_str(&list(BUILTINS.iter().map(|builtin| (builtin.usage, builtin.summary))));
    text.push_str("\nPrograms:\n");
    text.push_str(&list(programs.for_people().map(|manifest| (manifest.name.as_str(), manifest.summary.as_str()))));
    text.push_str(
        "\n`help NAME`, `NAME -?` or `NAME --help` tells more. `a | b` makes a pipe, `a &` a background job.\n",
    );
    text.push_str("Ctrl-C ends the foreground job, Ctrl-Z stops it; `fg` and `bg` resume it. `time a` measures.\n");
    text.push_str(
        "`a > FILE` puts output into a file, `a >> FILE` behind what is in it, `a < FILE` gives it as input;\n\
         `a 2> FILE` puts errors into a file, `a 2>&1` where the output goes.\n",
    );
    text
}

fn list<'a>(lines: impl Iterator<Item = (&'a str, &'a str)>) -> String {
    let lines: Vec<(&str, &str)> = lines.collect();
    let width = lines.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
    lines.iter().map(|(name, summary)| format!("  {name:width$}  {summary}\n")).collect()
}

/// Describes a program's usage and parameters.
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
    let default = parameter.default.as_ref().and_then(shown_default).map(|value| format!("default {value}"));
    let unit = (parameter.kind == ParameterKind::DurationMs).then(|| String::from("such as 500ms, 2s or 5m"));
    let notes: Vec<String> = unit.into_iter().chain(default).collect();
    let notes = if notes.is_empty() { String::new() } else { format!(" ({})", notes.join("; ")) };
    (called, format!("{}{notes}", parameter.help))
}

/// Formats a default value, unless it is obvious.
fn shown_default(value: &Value) -> Option<String> {
    match value {
        Value::Boolean(_) => None,
        Value::Text(text) if text.is_empty() => None,
        Value::DurationMs(milliseconds) if *milliseconds > 0 && milliseconds.is_multiple_of(60_000) => {
            Some(format!("{}m", milliseconds / 60_000))
        }
        Value::DurationMs(milliseconds) if milliseconds.is_multiple_of(1_000) => {
            Some(format!("{}s", milliseconds / 1_000))
        }
        Value::DurationMs(milliseconds) => Some(format!("{milliseconds}ms")),
        Value::Text(_) | Value::Integer(_) => Some(format!("{value}")),
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use std::path::Path;

    use super::*;
    use manifest_model::{Category, Code, Version};

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
        let code = Code::Script { text: "echo $paths $wide".into() };
        let mut manifest = Manifest {
            version: Version { major: 1, minor: 2, patch: 3 },
            summary: "shows things".into(),
            parameters: Vec::from([
                parameter("paths", ParameterKind::Text, None, Some(0)),
                parameter("wide", ParameterKind::Boolean, Some("-w"), None),
                parameter("count", ParameterKind::Integer, Some("-n"), None),
                parameter(WORKING_FOLDER, ParameterKind::Text, None, None),
            ]),
            ..Manifest::plain("show", "somebody", Category::Console, code)
        };
        manifest.parameters[2].default = Some(Value::Integer(5));
        let text = program(&manifest);
        assert!(text.starts_with("show: shows things\n\nusage: show"), "{text}");
        assert!(text.contains("  PATHS     what paths is for\n"), "{text}");
        assert!(text.contains("  -w        what wide is for\n"), "{text}");
        assert!(text.contains("  -n COUNT  what count is for (default 5)\n"), "{text}");
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

    #[test]
    fn defaults_are_shown_with_their_unit_and_not_where_they_are_empty() {
        let line = |kind, default| {
            parameter_line(&Parameter { default: Some(default), ..parameter("wait", kind, Some("--wait"), None) }).1
        };
        let duration = |milliseconds| line(ParameterKind::DurationMs, Value::DurationMs(milliseconds));
        assert_eq!(duration(30_000), "what wait is for (such as 500ms, 2s or 5m; default 30s)");
        assert!(duration(120_000).ends_with("default 2m)") && duration(250).ends_with("default 250ms)"));
        assert!(duration(0).ends_with("default 0s)"));
        assert_eq!(line(ParameterKind::Text, Value::Text("".into())), "what wait is for");
    }

    /// Returns the manifests of the programs in a folder of the repository.
    fn manifests(folder: &str) -> Vec<Manifest> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..").join(folder);
        let entries = std::fs::read_dir(folder).expect("the folder is there").flatten();
        let texts = entries.filter_map(|entry| std::fs::read_to_string(entry.path().join("manifest.toml")).ok());
        let read =
            |text: String| manifest::program("manifest.toml", &text, None).unwrap_or_else(|errors| panic!("{errors}"));
        texts.map(|text| read(text).manifest).collect()
    }

    #[test]
    fn every_program_is_described() {
        let found = [
            "apps/files",
            "apps/network",
            "apps/packages",
            "apps/storage",
            "apps/system",
            "apps/text",
            "drivers",
            "examples",
            "services",
        ]
        .map(manifests)
        .concat();
        assert!(found.len() > 80, "only {} programs", found.len());
        for manifest in &found {
            let text = program(manifest);
            let name = &manifest.name;
            assert!(text.starts_with(&format!("{name}: {}\n\nusage: {name}", manifest.summary)), "{text}");
            for parameter in manifest.parameters.iter().filter(|parameter| parameter.name != WORKING_FOLDER) {
                assert!(!parameter.help.is_empty(), "{name} says nothing of its parameter `{}`", parameter.name);
                let (called, help) = parameter_line(parameter);
                let line = text.lines().find(|line| line.trim_start().starts_with(&called) && line.ends_with(&help));
                assert!(line.is_some(), "{called}: {text}");
                let can_be_said = parameter.flag.is_some() || parameter.position.is_some();
                let word = parameter.flag.clone().unwrap_or(parameter.name.to_uppercase());
                assert!(!can_be_said || arguments::usage(manifest).contains(&word), "{text}");
            }
            for word in ["-?", "--help"] {
                assert!(arguments::asks_for_help(manifest, word), "{name} {word}");
            }
        }
    }

    #[test]
    fn every_program_tells_how_it_is_used_where_it_is_misused() {
        for manifest in &manifests("apps") {
            let error = arguments::assign(manifest, &["--no-such-option"]).expect_err("there is no such option");
            let said = format!("{error}");
            let usage = arguments::usage(manifest);
            assert!(said.starts_with(&manifest.name) && said.ends_with(&format!("usage: {usage}")), "{said}");
            let required = manifest.parameters.iter().any(|parameter| parameter.required);
            assert_eq!(arguments::assign(manifest, &[]).is_err(), required, "{usage}");
        }
    }
}
