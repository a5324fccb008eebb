//! Script errors: message, location and remedy.

use alloc::format;
use alloc::string::String;
use core::ops::Range;

/// An error in a script, of syntax or at run time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScriptError {
    /// The problem: the start of a sentence, without a full stop.
    pub message: String,
    /// Remedy.
    pub remedy: String,
    /// Its byte range in the script.
    pub span: Range<usize>,
    /// Whether more lines could complete the script.
    pub incomplete: bool,
}

impl ScriptError {
    pub(crate) fn new(span: Range<usize>, message: impl Into<String>, remedy: impl Into<String>) -> ScriptError {
        ScriptError { message: message.into(), remedy: remedy.into(), span, incomplete: false }
    }

    pub(crate) fn at_end(source: &str, message: impl Into<String>, remedy: impl Into<String>) -> ScriptError {
        ScriptError { incomplete: true, ..ScriptError::new(source.len()..source.len(), message, remedy) }
    }

    /// Renders the error in up to three lines: `name:line:column: problem: remedy`, the script's line, and carets
    /// below the location. Ends with a newline.
    pub fn render(&self, name: &str, source: &str) -> String {
        let start = floor_boundary(source, self.span.start);
        let line_start = source[..start].rfind('\n').map_or(0, |at| at + 1);
        let line_end = source[start..].find('\n').map_or(source.len(), |at| start + at);
        let line_number = source[..line_start].matches('\n').count() + 1;
        let before = &source[line_start..start];
        let end = floor_boundary(source, self.span.end).clamp(start, line_end);
        // The same blanks and tabs as in the line, so that the caret is aligned.
        let (cut_before, shown_before) = last_characters(before, SHOWN_BEFORE);
        let indent: String = shown_before.chars().map(|c| if c == '\t' { '\t' } else { ' ' }).collect();
        let (shown_after, cut_after) = first_characters(&source[start..line_end], SHOWN_AFTER);
        let carets = source[start..end].chars().count().clamp(1, SHOWN_AFTER);
        format!(
            "{name}:{line_number}:{}: {}; {}\n    {cut_before}{shown_before}{shown_after}{cut_after}\n    {}{indent}{}\n",
            before.chars().count() + 1,
            self.message,
            self.remedy,
            " ".repeat(cut_before.chars().count()),
            "^".repeat(carets),
        )
    }
}

/// Characters of a long line shown before the location and from it on.
const SHOWN_BEFORE: usize = 60;
const SHOWN_AFTER: usize = 60;

fn last_characters(text: &str, most: usize) -> (&'static str, &str) {
    match text.char_indices().rev().nth(most) {
        Some((at, cut)) => ("...", &text[at + cut.len_utf8()..]),
        None => ("", text),
    }
}

fn first_characters(text: &str, most: usize) -> (&str, &'static str) {
    match text.char_indices().nth(most) {
        Some((at, _)) => (&text[..at], "..."),
        None => (text, ""),
    }
}

fn floor_boundary(source: &str, offset: usize) -> usize {
    let mut offset = offset.min(source.len());
    while !source.is_char_boundary(offset) {
        offset -= 1;
    }
    offset
}
