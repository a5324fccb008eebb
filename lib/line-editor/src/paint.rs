//! Terminal output: the only place that writes escape sequences.

use alloc::vec::Vec;
use core::fmt::Write;

/// Style of a part of the line where colours are on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// Unstyled.
    Plain,
    /// The prompt.
    Prompt,
    /// The name of a program.
    Command,
    /// A keyword.
    Keyword,
    /// A quoted text.
    Text,
    /// A variable.
    Variable,
    /// An operator such as `|`.
    Operator,
    /// A comment.
    Comment,
    /// A syntax error.
    Wrong,
}

/// The bytes `start..end` of a line have a style.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// First byte.
    pub start: usize,
    /// Byte after the last.
    pub end: usize,
    /// Its style.
    pub style: Style,
}

/// Styles of a line: spans in order, without overlap; the rest is plain.
pub type Highlighter = fn(&str) -> Vec<Span>;

impl Style {
    fn code(self) -> &'static str {
        match self {
            Style::Plain => "0",
            Style::Prompt => "1;36",
            Style::Command => "1",
            Style::Keyword => "35",
            Style::Text => "32",
            Style::Variable => "33",
            Style::Operator => "36",
            Style::Comment => "2",
            Style::Wrong => "31",
        }
    }
}

/// Collects bytes for the terminal.
pub struct Painter<'a> {
    out: &'a mut Vec<u8>,
}

impl<'a> Painter<'a> {
    pub fn new(out: &'a mut Vec<u8>) -> Painter<'a> {
        Painter { out }
    }

    /// Text, its control characters shown as `^X`, its line ends as line ends.
    pub fn text(&mut self, text: &str) {
        for character in text.chars() {
            match character {
                '\n' => self.new_row(),
                // Unicode's C1 controls would control the terminal as escape sequences do.
                '\0'..='\x1f' => {
                    self.out.push(b'^');
                    self.out.push(character as u8 + 0x40);
                }
                '\x7f' => self.out.extend_from_slice(b"^?"),
                '\u{80}'..='\u{9f}' => self.out.extend_from_slice(b"^ "),
                _ => self.out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes()),
            }
        }
    }

    pub fn styled(&mut self, text: &str, style: Style) {
        if style == Style::Plain || text.is_empty() {
            return self.text(text);
        }
        self.sequence(format_args!("{}m", style.code()));
        self.text(text);
        self.sequence(format_args!("0m"));
    }

    pub fn new_row(&mut self) {
        self.out.extend_from_slice(b"\r\n");
    }

    pub fn bell(&mut self) {
        self.out.push(0x07);
    }

    pub fn up(&mut self, rows: usize) {
        if rows > 0 {
            self.sequence(format_args!("{rows}A"));
        }
    }

    pub fn down(&mut self, rows: usize) {
        if rows > 0 {
            self.sequence(format_args!("{rows}B"));
        }
    }

    /// To a column of the row, counted from 0.
    pub fn column(&mut self, column: usize) {
        self.out.push(b'\r');
        if column > 0 {
            self.sequence(format_args!("{column}C"));
        }
    }

    /// Clears from the cursor to the end of the screen.
    pub fn clear_below(&mut self) {
        self.sequence(format_args!("J"));
    }

    pub fn clear_screen(&mut self) {
        self.sequence(format_args!("H"));
        self.sequence(format_args!("2J"));
    }

    /// Enables or disables bracketed paste, so that a pasted line end does not submit the line.
    pub fn mark_pastes(&mut self, wanted: Pastes) {
        let letter = if wanted == Pastes::Marked { 'h' } else { 'l' };
        self.sequence(format_args!("?2004{letter}"));
    }

    fn sequence(&mut self, arguments: core::fmt::Arguments<'_>) {
        self.out.extend_from_slice(b"\x1b[");
        // Writing to a vector does not fail.
        let _ = self.write_fmt(arguments);
    }
}

/// State of bracketed paste.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pastes {
    Marked,
    Plain,
}

impl Write for Painter<'_> {
    fn write_str(&mut self, text: &str) -> core::fmt::Result {
        self.out.extend_from_slice(text.as_bytes());
        Ok(())
    }
}
