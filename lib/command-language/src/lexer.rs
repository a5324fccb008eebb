//! The lexer: words and operators. A word keeps its parts to be expanded.

use alloc::format;
use alloc::rc::Rc;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::ops::Range;

use crate::error::ScriptError;
use crate::parser;
use crate::syntax::{Name, Word, WordPart};

/// Words that are special in command position.
pub(crate) const KEYWORDS: &[&str] = &[
    "if", "then", "elif", "else", "end", "while", "do", "for", "in", "function", "break", "continue", "return", "not",
    "time",
];

/// Operators, longer ones before their prefixes.
const SIGNS: &[&str] = &["&&", "||", "2>&1", "2>>", "2>", "1>>", "1>", ">>", ";", "&", "|", "<", ">", ")", "\n"];

/// Whether an operator takes a path.
pub(crate) fn takes_path(sign: &str) -> bool {
    matches!(sign, "<" | ">" | ">>" | "1>" | "1>>" | "2>" | "2>>")
}

/// Maximum nesting of `$( )`, `${ }` and blocks.
pub(crate) const DEPTH: usize = 24;

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Token {
    pub kind: TokenKind,
    pub span: Range<usize>,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum TokenKind {
    Word(Word),
    /// One of [`SIGNS`].
    Sign(&'static str),
    End,
}

pub(crate) struct Lexer<'a> {
    pub source: &'a str,
    /// Byte offset of the next token.
    pub at: usize,
    pub depth: usize,
}

impl<'a> Lexer<'a> {
    fn rest(&self) -> &'a str {
        &self.source[self.at..]
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn next(&mut self) -> Option<char> {
        let character = self.peek()?;
        self.at += character.len_utf8();
        Some(character)
    }

    fn skip_blanks(&mut self) {
        while let Some(character) = self.peek() {
            if self.rest().starts_with("\\\n") {
                self.at += 2;
            } else if character == '#' {
                self.at += self.rest().find('\n').unwrap_or(self.rest().len());
            } else if character != '\n' && character.is_whitespace() {
                self.at += character.len_utf8();
            } else {
                break;
            }
        }
    }

    /// Returns the next token.
    pub fn token(&mut self) -> Result<Token, ScriptError> {
        self.skip_blanks();
        let start = self.at;
        if self.peek().is_none() {
            return Ok(Token { kind: TokenKind::End, span: start..start });
        }
        if let Some(&sign) = SIGNS.iter().find(|sign| self.rest().starts_with(**sign)) {
            self.at += sign.len();
            return Ok(Token { kind: TokenKind::Sign(sign), span: start..self.at });
        }
        let word = self.word()?;
        Ok(Token { span: word.span.clone(), kind: TokenKind::Word(word) })
    }

    /// Lexes a word up to the next blank or operator; it may be empty.
    pub fn word(&mut self) -> Result<Word, ScriptError> {
        let start = self.at;
        let mut parts = Parts::default();
        while let Some(character) = self.peek() {
            match character {
                '\'' => {
                    self.next();
                    parts.touch();
                    self.single_quoted(&mut parts, start)?;
                }
                '"' => {
                    self.next();
                    parts.touch();
                    self.double_quoted(&mut parts, start)?;
                }
                '\\' => {
                    let at = self.at;
                    self.next();
                    match self.next() {
                        Some('\n') => {}
                        Some(escaped) => parts.push(escaped),
                        None => return Err(self.ends("trailing `\\`", "add the character that it quotes", at)),
                    }
                }
                '$' => {
                    let part = self.dollar(false)?;
                    parts.add(part);
                }
                '*' => {
                    self.next();
                    parts.add(WordPart::AnyRun);
                }
                '?' => {
                    self.next();
                    parts.add(WordPart::AnyCharacter);
                }
                '(' => {
                    let span = self.at..self.at + 1;
                    return Err(ScriptError::new(span, "unexpected `(`", "quote it to use it literally"));
                }
                '`' => {
                    let span = self.at..self.at + 1;
                    return Err(ScriptError::new(
                        span,
                        "command substitution with backquotes is not supported",
                        "write $(command) instead",
                    ));
                }
                ';' | '&' | '|' | '<' | '>' | ')' => break,
                other if other.is_whitespace() => break,
                other => {
                    self.next();
                    parts.push(other);
                }
            }
        }
        Ok(Word { parts: parts.finish(), span: start..self.at })
    }

    fn single_quoted(&mut self, parts: &mut Parts, start: usize) -> Result<(), ScriptError> {
        let Some(end) = self.rest().find('\'') else {
            return Err(self.ends("unterminated `'`", "close it with another `'`", start));
        };
        parts.push_text(&self.rest()[..end]);
        self.at += end + 1;
        Ok(())
    }

    fn double_quoted(&mut self, parts: &mut Parts, start: usize) -> Result<(), ScriptError> {
        loop {
            let at = self.at;
            match self.peek() {
                None => return Err(self.ends("unterminated `\"`", "close it with another `\"`", start)),
                Some('$') => {
                    let part = self.dollar(true)?;
                    parts.add(part);
                    continue;
                }
                _ => {}
            }
            match self.next() {
                Some('"') => return Ok(()),
                Some('\\') => match self.next() {
                    Some('\n') => {}
                    Some(sign @ ('"' | '\\' | '$')) => parts.push(sign),
                    Some('n') => parts.push('\n'),
                    Some('t') => parts.push('\t'),
                    Some(other) => {
                        let message = format!("`\\{other}` is not an escape sequence");
                        let remedy = format!("write `\\\\{other}` for a backslash and `{other}`");
                        return Err(ScriptError::new(at..self.at, message, remedy));
                    }
                    None => return Err(self.ends("unterminated `\"`", "close it with another `\"`", start)),
                },
                Some(other) => parts.push(other),
                None => {}
            }
        }
    }

    /// Lexes an expansion. A `$` that starts none is literal.
    fn dollar(&mut self, quoted: bool) -> Result<WordPart, ScriptError> {
        let start = self.at;
        self.next();
        if self.rest().starts_with("((") {
            return self.arithmetic(start);
        }
        let name = match self.peek() {
            Some('(') => return self.output(start, quoted),
            Some('{') => return self.braced(start),
            Some('@') => {
                self.next();
                return Ok(WordPart::Positionals);
            }
            Some('?') => {
                self.next();
                Name::Status
            }
            Some('#') => {
                self.next();
                Name::Count
            }
            Some(digit @ '0'..='9') => {
                self.next();
                Name::Positional(digit as usize - '0' as usize)
            }
            _ => match self.identifier() {
                Some(name) => Name::Variable(name.to_string()),
                None => return Ok(WordPart::Literal("$".to_string())),
            },
        };
        Ok(WordPart::Variable { name, default: None, span: start..self.at })
    }

    fn identifier(&mut self) -> Option<&'a str> {
        let name = identifier_prefix(self.rest())?;
        self.at += name.len();
        Some(name)
    }

    fn braced(&mut self, start: usize) -> Result<WordPart, ScriptError> {
        self.next();
        let digits = self.rest().find(|c: char| !c.is_ascii_digit()).unwrap_or(self.rest().len());
        let name = if digits > 0 {
            let text = &self.rest()[..digits];
            self.at += digits;
            match text.parse() {
                Ok(number) => Name::Positional(number),
                Err(_) => {
                    return Err(ScriptError::new(
                        start..self.at,
                        "positional parameter out of range",
                        "use a smaller number",
                    ));
                }
            }
        } else {
            match self.identifier() {
                Some(name) => Name::Variable(name.to_string()),
                None if self.peek().is_none() => {
                    return Err(self.ends("unterminated `${`", "close it with `}`", start));
                }
                None => {
                    let remedy = "write ${name} or ${name:-text}";
                    return Err(ScriptError::new(start..self.at, "missing variable name after `${`", remedy));
                }
            }
        };
        let default = if self.rest().starts_with(":-") {
            self.at += 2;
            Some(self.default_word(start)?)
        } else {
            None
        };
        match self.next() {
            Some('}') => Ok(WordPart::Variable { name, default, span: start..self.at }),
            None => Err(self.ends("unterminated `${`", "close it with `}`", start)),
            Some(_) => {
                let remedy = "write ${name} or ${name:-text}";
                Err(ScriptError::new(start..self.at, "expected `}` after the name", remedy))
            }
        }
    }

    /// Lexes the text between `:-` and `}`: literal except for variables and escapes.
    fn default_word(&mut self, start: usize) -> Result<Word, ScriptError> {
        self.enter(start)?;
        let from = self.at;
        let mut parts = Parts::default();
        parts.touch();
        loop {
            match self.peek() {
                None => return Err(self.ends("unterminated `${`", "close it with `}`", start)),
                Some('}') => break,
                Some('$') => {
                    let part = self.dollar(true)?;
                    parts.add(part);
                }
                Some('\\') => {
                    self.next();
                    if let Some(escaped) = self.next() {
                        parts.push(escaped);
                    }
                }
                Some(other) => {
                    self.next();
                    parts.push(other);
                }
            }
        }
        self.depth -= 1;
        Ok(Word { parts: parts.finish(), span: from..self.at })
    }

    fn output(&mut self, start: usize, quoted: bool) -> Result<WordPart, ScriptError> {
        self.next();
        self.enter(start)?;
        let (script, end) = parser::parse_until_parenthesis(self.source, self.at, self.depth)?;
        self.depth -= 1;
        self.at = end;
        Ok(WordPart::Output { script: Rc::new(script), quoted, span: start..end })
    }

    fn arithmetic(&mut self, start: usize) -> Result<WordPart, ScriptError> {
        self.at += 2;
        let from = self.at;
        let mut open = 0usize;
        while let Some(character) = self.next() {
            match character {
                '(' => open += 1,
                ')' if open > 0 => open -= 1,
                ')' if self.peek() == Some(')') => {
                    let expression = self.source[from..self.at - 1].to_string();
                    self.next();
                    return Ok(WordPart::Arithmetic { expression, span: start..self.at });
                }
                ')' => {
                    let span = start..self.at;
                    return Err(ScriptError::new(span, "`$((` is closed by a single `)`", "close it with `))`"));
                }
                _ => {}
            }
        }
        Err(self.ends("unterminated `$((`", "close it with `))`", start))
    }

    fn enter(&mut self, start: usize) -> Result<(), ScriptError> {
        self.depth += 1;
        if self.depth > DEPTH {
            return Err(ScriptError::new(start..self.at, "nested too deeply", "use functions or variables instead"));
        }
        Ok(())
    }

    fn ends(&self, message: &str, remedy: &str, start: usize) -> ScriptError {
        ScriptError {
            span: start..(start + 1).min(self.source.len()),
            ..ScriptError::at_end(self.source, message, remedy)
        }
    }
}

/// The variable name at the start of the text, if any.
pub(crate) fn identifier_prefix(text: &str) -> Option<&str> {
    let first = text.chars().next()?;
    if !first.is_alphabetic() && first != '_' {
        return None;
    }
    let end = text.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(text.len());
    Some(&text[..end])
}

/// Collects the parts of a word, merging adjacent literal text.
#[derive(Default)]
struct Parts {
    parts: Vec<WordPart>,
    text: String,
    /// There were quotes: the word exists even if it is empty.
    touched: bool,
}

impl Parts {
    fn touch(&mut self) {
        self.touched = true;
    }

    fn push(&mut self, character: char) {
        self.text.push(character);
    }

    fn push_text(&mut self, text: &str) {
        self.text.push_str(text);
    }

    fn add(&mut self, part: WordPart) {
        if let WordPart::Literal(text) = part {
            return self.push_text(&text);
        }
        self.flush();
        self.parts.push(part);
    }

    fn flush(&mut self) {
        if !self.text.is_empty() {
            self.parts.push(WordPart::Literal(core::mem::take(&mut self.text)));
        }
    }

    fn finish(mut self) -> Vec<WordPart> {
        self.flush();
        if self.parts.is_empty() && self.touched {
            self.parts.push(WordPart::Literal(String::new()));
        }
        self.parts
    }
}
