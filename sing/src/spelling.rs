//! Suggestions for mistyped names: of the tool's own words and of items of a repository.
//!
//! Deliberately not here: the similarity of two words, which crate `diagnostics` decides.

use clap::Command;
use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, Error, ErrorKind};

/// Returns a remedy: the name that was probably meant, or else `otherwise`.
pub fn meant<'w>(word: &str, known: impl IntoIterator<Item = &'w str>, otherwise: impl Into<String>) -> String {
    diagnostics::nearest(word, known).map_or_else(|| otherwise.into(), question)
}

/// As [`meant`], also comparing the words of each name.
pub fn part_meant<'w>(word: &str, known: impl IntoIterator<Item = &'w str>, otherwise: impl Into<String>) -> String {
    let parts = known.into_iter().flat_map(|name| name.split([' ', '_', '-', ':']).chain([name]));
    meant(word, parts, otherwise)
}

fn question(meant: &str) -> String {
    format!("did you mean `{meant}`?")
}

/// Adds suggestions to the parser's error about a command line of `whole`: in the tool's wording, and also for short
/// words, where the parser has none.
pub fn with_what_was_meant(mut error: Error, whole: &Command, words: impl IntoIterator<Item = String>) -> Error {
    let (wrong, suggested) = match error.kind() {
        ErrorKind::InvalidSubcommand => (ContextKind::InvalidSubcommand, ContextKind::SuggestedSubcommand),
        ErrorKind::UnknownArgument => (ContextKind::InvalidArg, ContextKind::SuggestedArg),
        ErrorKind::InvalidValue => (ContextKind::InvalidValue, ContextKind::SuggestedValue),
        _ => return error,
    };
    let Some(ContextValue::String(word)) = error.get(wrong) else { return error };
    let word = word.clone();
    let known = match error.kind() {
        ErrorKind::InvalidValue => match error.get(ContextKind::ValidValue) {
            Some(ContextValue::Strings(values)) => values.clone(),
            _ => return error,
        },
        kind => names_at(kind, &word, whole, words),
    };
    if let Some(meant) = diagnostics::nearest(&word, known.iter().map(String::as_str)) {
        let tip = StyledStr::from(question(meant));
        error.remove(suggested);
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip]));
    }
    error
}

/// Returns the commands or options that are valid at the position of the wrong word.
fn names_at(kind: ErrorKind, wrong: &str, whole: &Command, words: impl IntoIterator<Item = String>) -> Vec<String> {
    let mut command = whole;
    for word in words.into_iter().skip(1).take_while(|word| word != wrong) {
        command = command.find_subcommand(&word).unwrap_or(command);
    }
    match kind {
        ErrorKind::InvalidSubcommand => {
            let shown = command.get_subcommands().filter(|command| !command.is_hide_set());
            shown.map(|command| command.get_name().to_string()).collect()
        }
        _ => {
            let options = command.get_arguments().flat_map(|option| option.get_long_and_visible_aliases());
            options.flatten().map(|name| format!("--{name}")).chain(["--help".into()]).collect()
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory, Parser};

    use super::*;
    use crate::command_line::CommandLine;

    #[test]
    fn what_was_meant_is_told_of_commands_options_and_values() {
        for (line, tip) in [
            ("rnu", "did you mean `run`?"),
            ("biuld", "did you mean `build`?"),
            ("key nwe", "did you mean `new`?"),
            ("run --machien qemu", "did you mean `--machine`?"),
            ("run --spm 4", "did you mean `--smp`?"),
            ("run --machine qmeu", "did you mean `qemu`?"),
            ("run --machine=qmeu", "did you mean `qemu`?"),
            ("new servce x", "did you mean `service`?"),
        ] {
            let words: Vec<String> = ["sing"].into_iter().chain(line.split(' ')).map(String::from).collect();
            let error = CommandLine::try_parse_from(&words).expect_err("it is mistyped");
            let text = with_what_was_meant(error, &CommandLine::command(), words).to_string();
            assert_eq!(text.matches("tip: ").count(), 1, "{line}: {text}");
            assert!(text.contains(tip), "{line}: {text}");
        }
    }

    #[test]
    fn nothing_is_said_of_what_is_like_nothing() {
        for line in ["frobnicate", "attachde true", "run --frobnicate", "run --machine vax", "run --smp many", "run -c"]
        {
            let words: Vec<String> = ["sing"].into_iter().chain(line.split(' ')).map(String::from).collect();
            let error = CommandLine::try_parse_from(&words).expect_err("it is wrong");
            let text = with_what_was_meant(error, &CommandLine::command(), words).to_string();
            assert!(!text.contains("did you mean"), "{line}: {text}");
        }
    }

    #[test]
    fn a_part_of_a_name_is_enough() {
        let names = ["read 4 KiB", "latency", "http_requests"];
        for (word, said) in [
            ("raed", "did you mean `read`?"),
            ("requsets", "did you mean `requests`?"),
            ("latencey", "did you mean `latency`?"),
            ("read 4 KB", "did you mean `read 4 KiB`?"),
            ("nothing", "give another"),
        ] {
            assert_eq!(part_meant(word, names, "give another"), said);
        }
    }
}
