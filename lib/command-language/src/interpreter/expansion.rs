//! Expansion of words.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::ops::Range;

use super::{Host, Interpreter, Stop};
use crate::arithmetic;
use crate::error::ScriptError;
use crate::pattern::{Pattern, PatternPart};
use crate::syntax::{Name, Script, Word, WordPart};

impl Interpreter {
    /// Expands a word to exactly one text, without patterns.
    pub(super) fn text_of(&mut self, host: &mut dyn Host, word: &Word) -> Result<String, Stop> {
        let mut text = String::new();
        for part in &word.parts {
            match part {
                WordPart::AnyCharacter => text.push('?'),
                WordPart::AnyRun => text.push('*'),
                WordPart::Positionals => text.push_str(&self.positionals.get(1..).unwrap_or(&[]).join(" ")),
                other => text.push_str(&self.part_text(host, other)?),
            }
        }
        Ok(text)
    }

    pub(super) fn expand_word(
        &mut self,
        host: &mut dyn Host,
        word: &Word,
        unmatched: Unmatched,
    ) -> Result<Vec<String>, Stop> {
        let mut words = Words::default();
        for part in &word.parts {
            match part {
                WordPart::AnyCharacter => words.pattern(PatternPart::AnyCharacter),
                WordPart::AnyRun => words.pattern(PatternPart::AnyRun),
                WordPart::Positionals => {
                    let positionals = self.positionals.get(1..).unwrap_or(&[]);
                    words.several(positionals.iter().map(String::as_str));
                }
                WordPart::Output { quoted: false, .. } => {
                    let text = self.part_text(host, part)?;
                    words.several(text.lines().filter(|line| !line.is_empty()));
                }
                other => words.text(&self.part_text(host, other)?),
            }
        }
        let mut expanded = Vec::new();
        for pattern in words.finish() {
            // A word that looks like an option is one: `NAME -?` prints help, regardless of existing files.
            let is_option = pattern.parts.first() == Some(&PatternPart::Character('-'));
            match pattern.as_text() {
                Some(text) => expanded.push(text),
                None if is_option => expanded.push(pattern.written()),
                None => expanded.extend(self.matches(host, word, &pattern, unmatched)?),
            }
        }
        Ok(expanded)
    }

    fn matches(
        &mut self,
        host: &mut dyn Host,
        word: &Word,
        pattern: &Pattern,
        unmatched: Unmatched,
    ) -> Result<Vec<String>, Stop> {
        let mistake =
            |message: String, remedy: &str| Stop::Mistake(ScriptError::new(word.span.clone(), message, remedy));
        let names = host.expand(pattern).map_err(|message| mistake(message, "check the path"))?;
        if names.is_empty() && unmatched == Unmatched::Mistake {
            return Err(mistake("no match".to_string(), "quote the word to use `*` and `?` literally"));
        }
        Ok(names)
    }

    fn part_text(&mut self, host: &mut dyn Host, part: &WordPart) -> Result<String, Stop> {
        match part {
            WordPart::Literal(text) => Ok(text.clone()),
            WordPart::Variable { name, default, span } => match (self.value(name), default) {
                (Some(value), None) => Ok(value),
                (Some(value), Some(_)) if !value.is_empty() => Ok(value),
                (_, Some(default)) => self.text_of(host, default),
                (None, None) => Err(Stop::Mistake(unset(name, span))),
            },
            WordPart::Output { script, span, .. } => self.output_of(host, script, span),
            WordPart::Arithmetic { expression, span } => {
                let value = |name: &str| match (name, name.parse::<usize>()) {
                    ("#", _) => self.value(&Name::Count),
                    ("?", _) => self.value(&Name::Status),
                    (_, Ok(number)) => self.positionals.get(number).cloned(),
                    (_, Err(_)) => self.variables.get(name).cloned(),
                };
                let result = arithmetic::evaluate(expression, &value);
                result.map(|number| number.to_string()).map_err(|message| {
                    let message = format!("invalid arithmetic: {message}");
                    Stop::Mistake(ScriptError::new(
                        span.clone(),
                        message,
                        "use integers, variables and the operators + - * / % < = > ! && ||",
                    ))
                })
            }
            WordPart::AnyCharacter | WordPart::AnyRun | WordPart::Positionals => Ok(String::new()),
        }
    }

    fn output_of(&mut self, host: &mut dyn Host, script: &Script, span: &Range<usize>) -> Result<String, Stop> {
        self.deeper(span)?;
        let mistake = |message: String| {
            let message = format!("cannot capture the output: {message}");
            Stop::Mistake(ScriptError::new(span.clone(), message, "use a pipe instead"))
        };
        host.begin_capture().map_err(mistake)?;
        let outcome = self.script(host, script);
        let text = host.end_capture();
        self.depth -= 1;
        match outcome {
            Ok(()) => {}
            Err(Stop::Return(status) | Stop::Exit(status)) => self.status = status,
            Err(stop) => return Err(stop),
        }
        let mut text = text.map_err(mistake)?;
        text.truncate(text.trim_end_matches('\n').len());
        Ok(text)
    }

    fn value(&self, name: &Name) -> Option<String> {
        match name {
            Name::Variable(name) => self.variables.get(name).cloned(),
            Name::Positional(number) => self.positionals.get(*number).cloned(),
            Name::Status => Some(self.status.to_string()),
            Name::Count => Some(self.positionals.len().saturating_sub(1).to_string()),
        }
    }
}

fn unset(name: &Name, span: &Range<usize>) -> ScriptError {
    let (name, how) = match name {
        Name::Variable(name) => (name.clone(), format!("set it with {name}=value")),
        Name::Positional(number) => (number.to_string(), "pass more arguments".to_string()),
        Name::Status | Name::Count => (String::new(), String::new()),
    };
    ScriptError::new(span.clone(), format!("`{name}` is not set"), format!("{how}, or write ${{{name}:-text}}"))
}

/// Expansion of a pattern without a match.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Unmatched {
    Nothing,
    Mistake,
}

/// Collects the words that one word expands to.
#[derive(Default)]
struct Words {
    done: Vec<Pattern>,
    current: Option<Pattern>,
}

impl Words {
    fn current(&mut self) -> &mut Pattern {
        self.current.get_or_insert_with(|| Pattern { parts: Vec::new() })
    }

    fn text(&mut self, text: &str) {
        self.current().parts.extend(text.chars().map(PatternPart::Character));
    }

    fn pattern(&mut self, part: PatternPart) {
        self.current().parts.push(part);
    }

    /// The first is joined with the text before, the last with the text after.
    fn several<'a>(&mut self, texts: impl Iterator<Item = &'a str>) {
        for (index, text) in texts.enumerate() {
            if index > 0 {
                self.done.extend(self.current.take());
            }
            self.text(text);
        }
    }

    fn finish(mut self) -> Vec<Pattern> {
        self.done.extend(self.current.take());
        self.done
    }
}
