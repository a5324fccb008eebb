//! What a line may be completed with.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use command_language::{completion_context, quote};
use contracts::namespace::Namespace;

use crate::builtins::BUILTINS;
use crate::names;
use crate::programs::Programs;
use crate::terminal::Candidates;

/// More candidates than these help nobody.
const MOST_CANDIDATES: usize = 500;

/// What the shell knows that lines can contain.
pub struct Known<'a> {
    /// What is installed.
    pub programs: &'a Programs,
    /// Names of functions.
    pub functions: Vec<String>,
    /// Names of variables.
    pub variables: Vec<String>,
    /// The working folder.
    pub folder: &'a str,
}

/// Candidates for the text before the cursor.
pub fn candidates(known: &Known<'_>, namespace: &mut Namespace, line: &str, cursor: usize) -> Candidates {
    let Some(text) = line.get(..cursor) else { return (cursor, Vec::new()) };
    let context = completion_context(text);
    let word = context.word.as_str();
    let mut found: Vec<String> = if context.variable {
        known.variables.iter().filter(|name| name.starts_with(word)).cloned().collect()
    } else if context.before.is_empty() && !word.contains('/') {
        let builtins = BUILTINS.iter().map(|builtin| builtin.name);
        let programs = known.programs.names();
        let functions = known.functions.iter().map(String::as_str);
        let all = builtins.chain(programs).chain(functions);
        all.filter(|name| name.starts_with(word)).map(|name| format!("{} ", quote(name))).collect()
    } else {
        let flags = context.before.first().filter(|_| word.starts_with('-')).map(|name| flags(known, name, word));
        let help = context.before.first().filter(|name| *name == "help").map(|_| {
            let names = known.programs.names().filter(|name| name.starts_with(word));
            names.map(|name| format!("{name} ")).collect()
        });
        flags.or(help).unwrap_or_else(|| paths(namespace, known.folder, word))
    };
    found.sort();
    found.dedup();
    found.truncate(MOST_CANDIDATES);
    (context.start, found)
}

fn flags(known: &Known<'_>, name: &str, word: &str) -> Vec<String> {
    let Some(manifest) = known.programs.find(name) else { return Vec::new() };
    let flags = manifest.parameters.iter().filter_map(|parameter| parameter.flag.as_deref());
    flags.filter(|flag| flag.starts_with(word)).map(|flag| format!("{flag} ")).collect()
}

fn paths(namespace: &mut Namespace, folder: &str, word: &str) -> Vec<String> {
    let found = names::beginning(namespace, folder, word);
    found.iter().map(|path| if path.ends_with('/') { quote(path) } else { format!("{} ", quote(path)) }).collect()
}
