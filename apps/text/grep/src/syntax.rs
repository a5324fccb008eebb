//! Translates POSIX patterns, basic and extended, into `regex` syntax.

use alloc::format;
use alloc::string::String;
use core::iter::Peekable;
use core::str::Chars;

/// Pattern syntax.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Syntax {
    /// `\(`, `\|`, `\+`, `\?` and `\{` are special.
    Basic,
    /// `(`, `|`, `+`, `?` and `{` are special.
    Extended,
    /// Nothing is special.
    Fixed,
}

/// Translates a pattern into `regex` syntax. An error is a sentence.
pub fn translate(pattern: &str, syntax: Syntax) -> Result<String, String> {
    if syntax == Syntax::Fixed {
        return Ok(regex::escape(pattern));
    }
    let mut translated = Translated { text: String::new(), begins: true, syntax };
    let mut rest = pattern.chars().peekable();
    while let Some(character) = rest.next() {
        match character {
            '[' => translated.class(&mut rest)?,
            '\\' => translated.escape(rest.next(), rest.peek().copied())?,
            _ => translated.plain(character, &rest),
        }
    }
    Ok(translated.text)
}

struct Translated {
    text: String,
    /// Whether there is nothing before for a repetition to apply to.
    begins: bool,
    syntax: Syntax,
}

impl Translated {
    fn put(&mut self, text: &str, begins: bool) {
        self.text.push_str(text);
        self.begins = begins;
    }

    fn literal(&mut self, character: char) {
        self.put(&regex::escape(character.encode_utf8(&mut [0; 4])), false);
    }

    fn plain(&mut self, character: char, rest: &Peekable<Chars<'_>>) {
        match (self.syntax, character) {
            (_, '*') if self.begins => self.literal('*'),
            (_, '*' | '.') => self.put(character.encode_utf8(&mut [0; 4]), false),
            // In the middle of a basic pattern they are ordinary characters.
            (Syntax::Basic, '^') if self.begins => self.put("^", true),
            (Syntax::Basic, '$') if ends(rest) => self.put("$", false),
            (Syntax::Extended, '^' | '(' | '|') => self.put(character.encode_utf8(&mut [0; 4]), true),
            (Syntax::Extended, '+' | '?') if self.begins => self.literal(character),
            (Syntax::Extended, '{') if self.begins || !is_interval(rest.clone()) => self.literal('{'),
            (Syntax::Extended, '$' | ')' | '+' | '?' | '{' | '}') => {
                self.put(character.encode_utf8(&mut [0; 4]), false);
            }
            _ => self.literal(character),
        }
    }

    fn escape(&mut self, escaped: Option<char>, next: Option<char>) -> Result<(), String> {
        let Some(escaped) = escaped else {
            return Err(String::from("the pattern ends in `\\`; write `\\\\` for a backslash"));
        };
        match (self.syntax, escaped) {
            (Syntax::Basic, '(' | '|') => self.put(escaped.encode_utf8(&mut [0; 4]), true),
            (Syntax::Basic, '+' | '?') if self.begins => self.literal(escaped),
            (Syntax::Basic, '{') if self.begins => {
                return Err(String::from("nothing to repeat before `\\{`"));
            }
            (Syntax::Basic, ')' | '+' | '?' | '{' | '}') => self.put(escaped.encode_utf8(&mut [0; 4]), false),
            (_, 'w' | 'W' | 's' | 'S' | 'b' | 'B' | '<' | '>') => {
                self.put(&format!("\\{escaped}"), false);
                if escaped == 'b' && next == Some('{') {
                    // `\b{` has a special meaning in `regex`.
                    self.text.push_str("(?:)");
                }
            }
            (_, '1'..='9') => {
                return Err(format!("back-references such as `\\{escaped}` are not supported"));
            }
            _ => self.literal(escaped),
        }
        Ok(())
    }

    /// Translates a bracket expression up to its `]`; `\` is an ordinary character in it.
    fn class(&mut self, rest: &mut Peekable<Chars<'_>>) -> Result<(), String> {
        self.text.push('[');
        if rest.next_if_eq(&'^').is_some() {
            self.text.push('^');
        }
        let mut is_first = true;
        loop {
            let open = || String::from("unmatched `[`; write `\\[` for a bracket");
            let character = rest.next().ok_or_else(open)?;
            match character {
                ']' if !is_first => break,
                '[' if rest.peek() == Some(&':') => {
                    self.text.push('[');
                    loop {
                        let of_name = rest.next().ok_or_else(open)?;
                        self.text.push(of_name);
                        if of_name == ':' && rest.next_if_eq(&']').is_some() {
                            self.text.push(']');
                            break;
                        }
                    }
                }
                '-' if is_first || rest.peek() == Some(&']') => self.text.push_str("\\-"),
                '-' => self.text.push('-'),
                '\\' | '[' | ']' | '^' | '&' | '~' => {
                    self.text.push('\\');
                    self.text.push(character);
                }
                _ => self.text.push(character),
            }
            is_first = false;
        }
        self.put("]", false);
        Ok(())
    }
}

/// Whether a `$` before this is at the end of its branch.
fn ends(rest: &Peekable<Chars<'_>>) -> bool {
    let text: String = rest.clone().take(2).collect();
    text.is_empty() || text == "\\)" || text == "\\|"
}

/// Whether a `{` before this begins an interval: `2}`, `2,}`, `2,3}`.
fn is_interval(rest: Peekable<Chars<'_>>) -> bool {
    let text: String = rest.take_while(|character| *character != '}').collect();
    text.starts_with(|character: char| character.is_ascii_digit())
        && text.chars().all(|character| character.is_ascii_digit() || character == ',')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(syntax: Syntax, cases: &[(&str, &str)]) {
        for (pattern, expected) in cases {
            let translated = translate(pattern, syntax);
            assert_eq!(translated.as_deref(), Ok(*expected), "{pattern}");
            assert!(regex::bytes::Regex::new(expected).is_ok(), "{expected}");
        }
    }

    #[test]
    fn basic_patterns() {
        check(
            Syntax::Basic,
            &[
                ("a+b?c|d(e)", r"a\+b\?c\|d\(e\)"),
                (r"\(a\|b\)\+c\{2,3\}", "(a|b)+c{2,3}"),
                ("*a", r"\*a"),
                (r"\(*a\)", r"(\*a)"),
                ("^a$b^c$", r"^a\$b\^c$"),
                (r"\(^a$\)", r"(^a$)"),
                (r"\.\*\\", r"\.\*\\"),
                (r"\<a\>\w", r"\<a\>\w"),
            ],
        );
    }

    #[test]
    fn extended_patterns() {
        check(
            Syntax::Extended,
            &[
                ("a+b?(c|d){2}", "a+b?(c|d){2}"),
                ("{a{x", r"\{a\{x"),
                (r"\(a\)\+", r"\(a\)\+"),
                ("+a|*b", r"\+a|\*b"),
                ("a{2,}", "a{2,}"),
            ],
        );
    }

    #[test]
    fn sets_of_characters() {
        check(
            Syntax::Basic,
            &[
                ("[a-z]", "[a-z]"),
                ("[]a]", r"[\]a]"),
                ("[^]a-]", r"[^\]a\-]"),
                (r"[\.]", r"[\\.]"),
                ("[[:alpha:]_]", "[[:alpha:]_]"),
                ("[a&&b[]", r"[a\&\&b\[]"),
            ],
        );
    }

    #[test]
    fn what_cannot_be_is_said() {
        for (pattern, part) in
            [("a\\", "ends in"), ("[a", "unmatched `["), (r"\(a\)\1", "back-references"), ("[[:a", "unmatched `[")]
        {
            let error = translate(pattern, Syntax::Basic).expect_err("it is no pattern");
            assert!(error.contains(part), "{error}");
        }
    }
}
