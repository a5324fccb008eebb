//! Pattern matching on lines.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::ops::Range;

use regex::bytes::{Regex, RegexBuilder};

use crate::syntax::{Syntax, translate};

/// Maximum size of a compiled pattern in bytes.
const PROGRAM_BYTES: usize = 8 << 20;

/// Which part of a line must match.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// Any part.
    Part,
    /// Whole words.
    Words,
    /// The whole line.
    Line,
}

/// Case sensitivity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Case {
    /// Case-sensitive.
    Distinct,
    /// Case-insensitive.
    Folded,
}

/// Compiled patterns.
pub struct Matcher {
    regex: Regex,
    /// If all patterns are plain text: the texts, one of which is in each matching line.
    texts: Option<Vec<Vec<u8>>>,
}

impl Matcher {
    /// Compiles patterns, each of which may have several lines. An error is a sentence.
    pub fn new(patterns: &[String], syntax: Syntax, extent: Extent, case: Case) -> Result<Matcher, String> {
        let alternatives: Vec<&str> = patterns.iter().flat_map(|pattern| pattern.split('\n')).collect();
        let translated: Result<Vec<String>, String> =
            alternatives.iter().map(|pattern| Ok(format!("(?:{})", translate(pattern, syntax)?))).collect();
        let any = translated?.join("|");
        let whole = match extent {
            Extent::Part => any,
            Extent::Words => format!(r"(?:^|\W)(?P<word>{any})(?:\W|$)"),
            Extent::Line => format!("^(?:{any})$"),
        };
        let regex = RegexBuilder::new(&whole)
            .case_insensitive(case == Case::Folded)
            .size_limit(PROGRAM_BYTES)
            .build()
            .map_err(|error| explain(&alternatives, &error))?;
        let is_text = |pattern: &&str| syntax == Syntax::Fixed || is_plain(pattern);
        let all_texts = extent == Extent::Part && case == Case::Distinct && alternatives.iter().all(is_text);
        let texts = all_texts.then(|| alternatives.iter().map(|text| text.as_bytes().to_vec()).collect());
        Ok(Matcher { regex, texts })
    }

    /// Whether the line matches.
    pub fn is_match(&self, line: &[u8]) -> bool {
        match &self.texts {
            Some(texts) => texts.iter().any(|text| contains(line, text)),
            None => self.regex.is_match(line),
        }
    }

    /// Returns the non-empty matches in the line, from left to right.
    pub fn parts(&self, line: &[u8]) -> Vec<Range<usize>> {
        let mut found = Vec::new();
        let mut from = 0;
        while let Some(captures) = self.regex.captures_at(line, from) {
            let Some(part) = captures.name("word").or_else(|| captures.get(0)) else { break };
            if !part.is_empty() {
                found.push(part.range());
            }
            from = if part.is_empty() { part.end() + 1 } else { part.end() };
            if from > line.len() {
                break;
            }
        }
        found
    }
}

/// Whether a pattern has no special characters.
fn is_plain(pattern: &str) -> bool {
    !pattern.contains(['.', '[', ']', '*', '^', '$', '\\', '+', '?', '(', ')', '{', '}', '|'])
}

/// Whether the text is in the line.
fn contains(line: &[u8], text: &[u8]) -> bool {
    let Some((&first, rest)) = text.split_first() else { return true };
    let mut from = 0;
    while let Some(offset) = line[from..].iter().position(|&byte| byte == first) {
        from += offset + 1;
        if line[from..].starts_with(rest) {
            return true;
        }
    }
    false
}

fn explain(patterns: &[&str], error: &regex::Error) -> String {
    let shown = patterns.join("` or `");
    match error {
        regex::Error::CompiledTooBig(_) => {
            format!("pattern `{shown}` is too large: more than {} MiB when compiled", PROGRAM_BYTES >> 20)
        }
        other => {
            let text = other.to_string();
            let reason =
                text.lines().rev().find_map(|line| line.strip_prefix("error: ")).unwrap_or("it cannot be read");
            format!("invalid pattern `{shown}`: {reason}; -F takes it as plain text")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matcher(pattern: &str, syntax: Syntax, extent: Extent, case: Case) -> Matcher {
        Matcher::new(&[pattern.into()], syntax, extent, case).unwrap_or_else(|error| panic!("{error}"))
    }

    #[test]
    fn plain_texts_and_patterns_find_the_same() {
        for (line, is_there) in [("xxabcx", true), ("aabab", false), ("abc", true), ("ab", false), ("ababc", true)] {
            for pattern in ["abc", "ab[c]"] {
                let matcher = matcher(pattern, Syntax::Basic, Extent::Part, Case::Distinct);
                assert_eq!(matcher.texts.is_some(), pattern == "abc");
                assert_eq!(matcher.is_match(line.as_bytes()), is_there, "{pattern} {line}");
            }
        }
    }

    #[test]
    fn words_lines_and_capitals() {
        let words = matcher("cat", Syntax::Basic, Extent::Words, Case::Distinct);
        assert!(words.is_match(b"a cat.") && !words.is_match(b"concat cats"));
        assert_eq!(words.parts(b"cat cat,cat"), [0..3, 4..7, 8..11]);
        let line = matcher("a|b", Syntax::Extended, Extent::Line, Case::Folded);
        assert!(line.is_match(b"A") && !line.is_match(b"ab"));
        assert!(matcher("ä", Syntax::Basic, Extent::Part, Case::Folded).is_match("Ä".as_bytes()));
    }

    #[test]
    fn parts_come_from_left_to_right() {
        let matcher = matcher("a*", Syntax::Basic, Extent::Part, Case::Distinct);
        assert_eq!(matcher.parts(b"baacab"), [1..3, 4..5]);
        assert!(matcher.is_match(b""));
    }

    #[test]
    fn what_is_no_pattern_says_why() {
        let error = Matcher::new(&["(a".into()], Syntax::Extended, Extent::Part, Case::Distinct).err();
        let error = error.unwrap_or_default();
        assert!(error.contains("invalid pattern `(a`: ") && error.contains("-F"), "{error}");
    }
}
