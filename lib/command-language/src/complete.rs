//! Analysis of an unfinished line for the editor: completion context and highlighting.

use alloc::string::String;
use alloc::vec::Vec;

use crate::lexer::{KEYWORDS, Lexer, TokenKind, identifier_prefix, takes_path};
use crate::syntax::{Word, WordPart};

/// Completion context.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompletionContext {
    /// Byte offset of the word at the cursor.
    pub start: usize,
    /// That word, unquoted.
    pub word: String,
    /// The preceding words of its command; empty if the word is the command's name.
    pub before: Vec<String>,
    /// The kind of word.
    pub kind: WordKind,
}

/// The kind of word by its position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WordKind {
    /// The command's name, or an argument.
    Plain,
    /// A variable's name: `word` and `start` exclude the `$`.
    Variable,
    /// A redirection's path, after `<`, `>`, `2>` or the like.
    File,
}

/// Determines the completion context at the end of `text`.
pub fn completion_context(text: &str) -> CompletionContext {
    let mut lexer = Lexer { source: text, at: 0, depth: 0 };
    let mut before: Vec<String> = Vec::new();
    let mut last: Option<(usize, usize, String)> = None;
    let mut kind = WordKind::Plain;
    loop {
        let start = lexer.at;
        let token = match lexer.token() {
            Ok(token) => token,
            // An open quote: the word is what follows it.
            Err(_) => {
                let kind_of_word = if last.is_none() { kind } else { WordKind::Plain };
                before.extend(last.filter(|_| kind == WordKind::Plain).map(|(_, _, word)| word));
                return open_quote(text, start, before, kind_of_word);
            }
        };
        match token.kind {
            TokenKind::End => break,
            // A path follows, not a command.
            TokenKind::Sign(sign) if takes_path(sign) => {
                before.extend(last.take().filter(|_| kind == WordKind::Plain).map(|(_, _, text)| text));
                kind = WordKind::File;
            }
            // The command continues.
            TokenKind::Sign("2>&1") => {
                before.extend(last.take().filter(|_| kind == WordKind::Plain).map(|(_, _, text)| text));
                kind = WordKind::Plain;
            }
            TokenKind::Sign(_) => {
                before.clear();
                last = None;
                kind = WordKind::Plain;
            }
            TokenKind::Word(word) => {
                if let Some((_, _, word)) = last.take() {
                    // A redirection's path is not a word of the command.
                    before.extend(Some(word).filter(|_| kind == WordKind::Plain));
                    kind = WordKind::Plain;
                }
                let plain = &text[token.span.clone()];
                let starts_command = before.is_empty() && token.span.end < text.len();
                if starts_command && KEYWORDS.contains(&plain) && !matches!(plain, "for" | "function" | "return") {
                    continue;
                }
                last = Some((token.span.start, token.span.end, literal(&word)));
            }
        }
    }
    match last {
        Some((start, end, word)) if end == text.len() => finish(text, start, word, before, kind),
        Some((_, _, word)) => {
            before.extend(Some(word).filter(|_| kind == WordKind::Plain));
            CompletionContext { start: text.len(), word: String::new(), before, kind: WordKind::Plain }
        }
        None => CompletionContext { start: text.len(), word: String::new(), before, kind },
    }
}

fn open_quote(text: &str, from: usize, before: Vec<String>, kind: WordKind) -> CompletionContext {
    let start = from + text[from..].len() - text[from..].trim_start().len();
    let word: String = text[start..].chars().filter(|c| !matches!(c, '\'' | '"' | '\\')).collect();
    finish(text, start, word, before, kind)
}

fn finish(text: &str, start: usize, word: String, before: Vec<String>, kind: WordKind) -> CompletionContext {
    let raw = &text[start..];
    if let Some(dollar) = raw.rfind('$') {
        let name = raw[dollar + 1..].trim_start_matches('{');
        if name.is_empty() || identifier_prefix(name) == Some(name) {
            let start = text.len() - name.len();
            return CompletionContext { start, word: String::from(name), before, kind: WordKind::Variable };
        }
    }
    CompletionContext { start, word, before, kind }
}

fn literal(word: &Word) -> String {
    let mut text = String::new();
    for part in &word.parts {
        match part {
            WordPart::Literal(part) => text.push_str(part),
            WordPart::AnyCharacter => text.push('?'),
            WordPart::AnyRun => text.push('*'),
            _ => {}
        }
    }
    text
}

/// The kind of a highlighted span.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HighlightKind {
    /// A command's name.
    Command,
    /// A keyword.
    Keyword,
    /// A quoted word.
    Quoted,
    /// A word with an expansion.
    Variable,
    /// An operator.
    Sign,
    /// A comment.
    Comment,
    /// A syntax error.
    Wrong,
}

/// A highlighted span of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Highlight {
    /// First byte.
    pub start: usize,
    /// Byte after the last.
    pub end: usize,
    /// Its kind.
    pub kind: HighlightKind,
}

/// Returns the spans of a line that are not plain text, in order. Never fails: unparsable text is an error span.
pub fn highlight(line: &str) -> Vec<Highlight> {
    let mut lexer = Lexer { source: line, at: 0, depth: 0 };
    let mut parts = Vec::new();
    let mut expects_command = true;
    loop {
        let before = lexer.at;
        let token = lexer.token();
        let start = token.as_ref().map_or(before, |token| token.span.start);
        if let Some(comment) = line[before..start].find('#') {
            let start = before + comment;
            let end = line[start..].find('\n').map_or(line.len(), |length| start + length);
            parts.push(Highlight { start, end, kind: HighlightKind::Comment });
        }
        let Ok(token) = token else {
            parts.push(Highlight { start: before, end: line.len(), kind: HighlightKind::Wrong });
            return parts;
        };
        let text = &line[token.span.clone()];
        let kind = match &token.kind {
            TokenKind::End => return parts,
            TokenKind::Sign(sign) => {
                expects_command = !takes_path(sign) && !matches!(*sign, "2>&1" | ")");
                Some(HighlightKind::Sign)
            }
            TokenKind::Word(_) if expects_command && KEYWORDS.contains(&text) => {
                expects_command = !matches!(text, "for" | "function" | "return" | "break" | "continue");
                Some(HighlightKind::Keyword)
            }
            TokenKind::Word(word) => {
                let is_command = core::mem::replace(&mut expects_command, false);
                word_kind(word, text).or(is_command.then_some(HighlightKind::Command))
            }
        };
        parts.extend(kind.map(|kind| Highlight { start: token.span.start, end: token.span.end, kind }));
    }
}

fn word_kind(word: &Word, text: &str) -> Option<HighlightKind> {
    let expands = |part: &WordPart| {
        matches!(
            part,
            WordPart::Variable { .. } | WordPart::Positionals | WordPart::Output { .. } | WordPart::Arithmetic { .. }
        )
    };
    if word.parts.iter().any(expands) {
        Some(HighlightKind::Variable)
    } else if text.contains(['\'', '"']) {
        Some(HighlightKind::Quoted)
    } else {
        None
    }
}
