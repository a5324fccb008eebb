//! The lexer.

use crate::{Code, Diagnostic, Span};

/// A token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Token {
    /// A name or keyword.
    Word(String),
    /// Digits.
    Number(u64),
    /// One of `{ } ( ) [ ] , ; : . * ! ?`.
    Sign(char),
    /// `->` or `→`.
    Arrow,
    /// A documentation line after `///`.
    Documentation(String),
    /// End of file.
    End,
}

impl Token {
    /// Description for "found ..." in a diagnostic.
    pub fn describe(&self) -> String {
        match self {
            Token::Word(text) => format!("`{text}`"),
            Token::Number(value) => format!("`{value}`"),
            Token::Sign(sign) => format!("`{sign}`"),
            Token::Arrow => "an arrow".into(),
            Token::Documentation(_) => "a documentation comment".into(),
            Token::End => "the end of the file".into(),
        }
    }
}

/// Lexes a text. The last token is [`Token::End`].
pub fn lex(file: usize, text: &str, diagnostics: &mut Vec<Diagnostic>) -> Vec<(Token, Span)> {
    let mut lexer = Lexer { file, text, offset: 0, tokens: Vec::new(), diagnostics };
    while lexer.step() {}
    let end = lexer.span(text.len());
    lexer.tokens.push((Token::End, end));
    lexer.tokens
}

struct Lexer<'a> {
    file: usize,
    text: &'a str,
    offset: usize,
    tokens: Vec<(Token, Span)>,
    diagnostics: &'a mut Vec<Diagnostic>,
}

impl Lexer<'_> {
    fn span(&self, start: usize) -> Span {
        Span { file: self.file, start, end: self.offset.max(start) }
    }

    fn rest(&self) -> &str {
        self.text.get(self.offset..).unwrap_or("")
    }

    fn push(&mut self, token: Token, bytes: usize) {
        let start = self.offset;
        self.offset += bytes;
        let span = self.span(start);
        self.tokens.push((token, span));
    }

    /// Takes characters of a class; returns them.
    fn take_while(&mut self, kind: impl Fn(char) -> bool) -> String {
        let rest = self.rest();
        let length = rest.find(|character| !kind(character)).unwrap_or(rest.len());
        let taken = rest[..length].to_string();
        self.offset += length;
        taken
    }

    /// Lexes a token, or skips white space or a comment; false at the end.
    fn step(&mut self) -> bool {
        let rest = self.rest();
        let Some(first) = rest.chars().next() else { return false };
        match first {
            _ if first.is_whitespace() || first == '\u{feff}' => self.offset += first.len_utf8(),
            _ if rest.starts_with("//") => self.line_comment(),
            _ if rest.starts_with("/*") => self.block_comment(),
            _ if rest.starts_with("->") => self.push(Token::Arrow, 2),
            '→' => self.push(Token::Arrow, first.len_utf8()),
            '{' | '}' | '(' | ')' | '[' | ']' | ',' | ';' | ':' | '.' | '*' | '!' | '?' => {
                self.push(Token::Sign(first), 1);
            }
            _ if first.is_ascii_digit() => self.number(),
            _ if first.is_ascii_alphabetic() || first == '_' => {
                let start = self.offset;
                let word = self.take_while(|character| character.is_ascii_alphanumeric() || character == '_');
                let span = self.span(start);
                self.tokens.push((Token::Word(word), span));
            }
            _ => self.unknown(first),
        }
        true
    }

    fn line_comment(&mut self) {
        let start = self.offset;
        let line = self.take_while(|character| character != '\n');
        if let Some(text) = line.strip_prefix("///").filter(|text| !text.starts_with('/')) {
            let text = text.trim_end();
            let text = text.strip_prefix(' ').unwrap_or(text).to_string();
            let span = self.span(start);
            self.tokens.push((Token::Documentation(text), span));
        }
    }

    fn block_comment(&mut self) {
        let start = self.offset;
        match self.rest().find("*/") {
            Some(length) => self.offset += length + 2,
            None => {
                let opening = Span { file: self.file, start, end: start + 2 };
                self.offset = self.text.len();
                self.diagnostics.push(
                    Diagnostic::new(Code::UnendedComment, opening, "unterminated comment", "starts here")
                        .remedy("close it with `*/`"),
                );
            }
        }
    }

    fn number(&mut self) {
        let start = self.offset;
        let digits = self.take_while(|character| character.is_ascii_alphanumeric() || character == '_');
        let plain: String = digits.chars().filter(|&character| character != '_').collect();
        let parsed = match plain.strip_prefix("0x") {
            Some(hexadecimal) => u64::from_str_radix(hexadecimal, 16),
            None => plain.parse(),
        };
        let span = self.span(start);
        if parsed.is_err() {
            self.diagnostics.push(
                Diagnostic::new(Code::BadLength, span, format!("invalid number `{digits}`"), "")
                    .remedy("use decimal digits, or hexadecimal digits after `0x`, up to 64 bits"),
            );
        }
        // An invalid number counts as 1, so that one mistake gives one diagnostic.
        self.tokens.push((Token::Number(parsed.unwrap_or(1)), span));
    }

    fn unknown(&mut self, first: char) {
        let start = self.offset;
        self.offset += first.len_utf8();
        let span = self.span(start);
        self.diagnostics.push(
            Diagnostic::new(
                Code::UnexpectedCharacter,
                span,
                format!("unexpected character `{}`", first.escape_debug()),
                "",
            )
            .remedy("remove it; names consist of ASCII letters, digits and `_`"),
        );
    }
}
