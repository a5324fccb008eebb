//! File name patterns: `*` and `?`.

use alloc::string::String;
use alloc::vec::Vec;

/// A word with an unquoted `*` or `?`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    /// Its parts, in order.
    pub parts: Vec<PatternPart>,
}

/// A part of a [`Pattern`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PatternPart {
    /// This character.
    Character(char),
    /// Any one character except `/`.
    AnyCharacter,
    /// Any characters except `/`, possibly none.
    AnyRun,
}

impl Pattern {
    /// Parses a text in which `*` and `?` are special.
    pub fn of_text(text: &str) -> Pattern {
        let part = |character| match character {
            '*' => PatternPart::AnyRun,
            '?' => PatternPart::AnyCharacter,
            other => PatternPart::Character(other),
        };
        Pattern { parts: text.chars().map(part).collect() }
    }

    /// Splits the pattern at `/`; a component is empty for two `/` in a row and at either end.
    pub fn components(&self) -> Vec<Pattern> {
        self.parts
            .split(|part| *part == PatternPart::Character('/'))
            .map(|parts| Pattern { parts: parts.to_vec() })
            .collect()
    }

    /// The literal text, if there is no `*` or `?`.
    pub fn as_text(&self) -> Option<String> {
        let character = |part: &PatternPart| match part {
            PatternPart::Character(character) => Some(*character),
            _ => None,
        };
        self.parts.iter().map(character).collect()
    }

    /// The pattern as source text.
    pub fn written(&self) -> String {
        let character = |part: &PatternPart| match part {
            PatternPart::Character(character) => *character,
            PatternPart::AnyCharacter => '?',
            PatternPart::AnyRun => '*',
        };
        self.parts.iter().map(character).collect()
    }

    /// Whether all of `text` matches. A leading `*` or `?` does not match a dot, so hidden names need an explicit one.
    pub fn matches(&self, text: &str) -> bool {
        let hidden = text.starts_with('.') && self.parts.first() != Some(&PatternPart::Character('.'));
        !hidden && self.fits(text)
    }

    /// Whether all of `text` matches, hidden or not.
    pub fn fits(&self, text: &str) -> bool {
        let characters: Vec<char> = text.chars().collect();
        // Greedy with a single backtracking point: at most the product of the lengths.
        let (mut at, mut part) = (0, 0);
        let mut retry: Option<(usize, usize)> = None;
        while at < characters.len() {
            let fits = match self.parts.get(part) {
                Some(PatternPart::AnyRun) => {
                    retry = Some((part, at));
                    part += 1;
                    continue;
                }
                Some(PatternPart::AnyCharacter) => characters[at] != '/',
                Some(PatternPart::Character(wanted)) => characters[at] == *wanted,
                None => false,
            };
            if fits {
                at += 1;
                part += 1;
                continue;
            }
            match retry {
                Some((run, start)) if characters[start] != '/' => {
                    retry = Some((run, start + 1));
                    at = start + 1;
                    part = run + 1;
                }
                _ => return false,
            }
        }
        self.parts[part..].iter().all(|part| *part == PatternPart::AnyRun)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_names_match() {
        for (wanted, text, expected) in [
            ("*.txt", "a.txt", true),
            ("*.txt", "a.txt.gz", false),
            ("?", "é", true),
            ("?", "", false),
            ("a*b*c", "axxbyyc", true),
            ("a*b*c", "axxbyyd", false),
            ("*", "a/b", false),
            ("*", ".hidden", false),
            (".*", ".hidden", true),
            ("**", "", true),
            ("*a", "aaaaab", false),
        ] {
            assert_eq!(Pattern::of_text(wanted).matches(text), expected, "{wanted} {text}");
        }
    }
    #[test]
    fn hidden_names_fit_where_nobody_leaves_them_out() {
        assert!(Pattern::of_text("*").fits(".hidden"));
        assert!(!Pattern::of_text("*").matches(".hidden"));
    }
}
