//! Completion candidates for a command line.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use arguments::HELP_FLAG;
use arguments::expected;
use client::namespace::Namespace;
use command_language::{CompletionContext, WordKind, completion_context, quote};
use manifest_model::{Manifest, ParameterKind};

use crate::builtins::BUILTINS;
use crate::names;
use crate::programs::Programs;
use crate::terminal::Candidates;

/// Maximum candidates; longer lists are useless.
const MAX_CANDIDATES: usize = 500;

/// Names that the shell can complete.
pub struct Known<'a> {
    /// Installed programs.
    pub programs: &'a Programs,
    /// Function names.
    pub functions: Vec<String>,
    /// Variable names.
    pub variables: Vec<String>,
    /// The working folder.
    pub folder: &'a str,
}

/// Returns the candidates for the text before the cursor.
pub fn candidates(known: &Known<'_>, namespace: &mut Namespace, line: &str, cursor: usize) -> Candidates {
    let Some(text) = line.get(..cursor) else { return (cursor, Vec::new()) };
    let context = completion_context(text);
    let word = context.word.as_str();
    let mut found: Vec<String> = if context.kind == WordKind::Variable {
        known.variables.iter().filter(|name| name.starts_with(word)).cloned().collect()
    } else if context.before.is_empty() && context.kind == WordKind::Plain && !word.contains('/') {
        let builtins = BUILTINS.iter().map(|builtin| builtin.name);
        let programs = known.programs.names();
        let functions = known.functions.iter().map(String::as_str);
        let all = builtins.chain(programs).chain(functions);
        all.filter(|name| name.starts_with(word)).map(|name| format!("{} ", quote(name))).collect()
    } else {
        match words(known, &context) {
            Some(words) => words,
            None => paths(namespace, known.folder, word),
        }
    };
    found.sort();
    found.dedup();
    found.truncate(MAX_CANDIDATES);
    (context.start, found)
}

/// Returns the words that the command accepts here; `None` if it accepts paths, or anything.
fn words(known: &Known<'_>, context: &CompletionContext) -> Option<Vec<String>> {
    let [name, before @ ..] = context.before.as_slice() else { return None };
    if context.kind != WordKind::Plain {
        return None;
    }
    let word = context.word.as_str();
    let beginning = |names: &mut dyn Iterator<Item = &str>| {
        names.filter(|name| name.starts_with(word)).map(|name| format!("{name} ")).collect()
    };
    if name == "help" {
        return Some(beginning(&mut known.programs.names().chain(BUILTINS.iter().map(|builtin| builtin.name))));
    }
    // Builtins and functions hide programs of the same name.
    if BUILTINS.iter().any(|builtin| builtin.name == name) || known.functions.contains(name) {
        return None;
    }
    let manifest = known.programs.find(name)?;
    let before: Vec<&str> = before.iter().map(String::as_str).collect();
    arguments(&manifest, &before, word).map(|words| beginning(&mut words.into_iter()))
}

/// Returns the words that a program accepts after `before`, according to its manifest; `None` if it accepts any text,
/// such as a path.
fn arguments<'m>(manifest: &'m Manifest, before: &[&str], word: &str) -> Option<Vec<&'m str>> {
    let expected = expected(manifest, before);
    if word.starts_with('-') && !(expected.flags.is_empty() && expected.value.is_some()) {
        let help = before.is_empty().then_some(HELP_FLAG);
        return Some(expected.flags.into_iter().chain(help).collect());
    }
    match expected.value.map(|parameter| parameter.kind) {
        Some(ParameterKind::Text) => None,
        Some(ParameterKind::Boolean) => Some(Vec::from(["true", "false"])),
        Some(ParameterKind::Integer | ParameterKind::DurationMs) | None => Some(Vec::new()),
    }
}

fn paths(namespace: &mut Namespace, folder: &str, word: &str) -> Vec<String> {
    let found = names::beginning(namespace, folder, word);
    found.iter().map(|path| if path.ends_with('/') { quote(path) } else { format!("{} ", quote(path)) }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MANIFEST: &str = r#"
        [program]
        name = "show"
        version = "1.0.0"
        abi = 1
        category = "console"
        summary = "shows things"

        [[parameter]]
        name = "count"
        type = "integer"
        position = 0

        [[parameter]]
        name = "paths"
        type = "string"
        position = 1
        repeated = true

        [[parameter]]
        name = "wide"
        type = "boolean"
        flag = "-w"

        [[parameter]]
        name = "pause"
        type = "duration-ms"
        flag = "--pause"

        [[parameter]]
        name = "from"
        type = "string"
        flag = "--from"
        repeated = true
    "#;

    #[test]
    fn words_are_offered_where_the_manifest_takes_them() {
        let manifest = manifest::program("show", MANIFEST, None).unwrap_or_else(|errors| panic!("{errors}")).manifest;
        let offered = |before: &[&str], word: &str| arguments(&manifest, before, word);
        assert_eq!(offered(&[], "-"), Some(Vec::from(["-w", "--pause", "--from", "--help"])));
        // A repeatable option is offered again; help is exclusive.
        assert_eq!(offered(&["-w", "--from", "/a"], "--"), Some(Vec::from(["--pause", "--from"])));
        // A number has no completion; the value of a text parameter may be a path.
        assert_eq!(offered(&[], ""), Some(Vec::new()));
        assert_eq!(offered(&["5"], "/f"), None);
        assert_eq!(offered(&["5", "/a"], "/f"), None);
        assert_eq!(offered(&["--pause"], ""), Some(Vec::new()));
        assert_eq!(offered(&["--from"], "-"), None);
        assert_eq!(offered(&["5", "--"], "-"), None);
        assert_eq!(offered(&["5", "--pause=2s"], "-"), Some(Vec::from(["-w", "--from"])));
    }
}
