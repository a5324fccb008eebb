//! What is wrong in a script, where, and what to do about it.

use alloc::format;
use alloc::string::String;
use core::ops::Range;

/// A mistake in a script, found while reading or while running it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScriptError {
    /// What is wrong: the start of a sentence, without a full stop.
    pub message: String,
    /// What to do.
    pub remedy: String,
    /// The bytes of the script that it is about.
    pub span: Range<usize>,
    /// The script ends too early: more lines may complete it.
    pub incomplete: bool,
}

impl ScriptError {
    pub(crate) fn new(span: Range<usize>, message: impl Into<String>, remedy: impl Into<String>) -> ScriptError {
        ScriptError { message: message.into(), remedy: remedy.into(), span, incomplete: false }
    }

    pub(crate) fn at_end(source: &str, message: impl Into<String>, remedy: impl Into<String>) -> ScriptError {
        ScriptError { incomplete: true, ..ScriptError::new(source.len()..source.len(), message, remedy) }
    }

    /// The error for people, in up to three lines: `name:line:column: what: what to do`, then the line of
    /// the script and carets below the place. Ends with a line end.
    pub fn render(&self, name: &str, source: &str) -> String {
        let start = floor_boundary(source, self.span.start);
        let line_start = source[..start].rfind('\n').map_or(0, |at| at + 1);
        let line_end = source[start..].find('\n').map_or(source.len(), |at| start + at);
        let line_number = source[..line_start].matches('\n').count() + 1;
        let before = &source[line_start..start];
        let end = floor_boundary(source, self.span.end).clamp(start, line_end);
        let carets = source[start..end].chars().count().max(1);
        // The same blanks and tabs as in the line, so that the caret stands where the fault is.
        let indent: String = before.chars().map(|c| if c == '\t' { '\t' } else { ' ' }).collect();
        format!(
            "{name}:{line_number}:{}: {}; {}\n    {}\n    {indent}{}\n",
            before.chars().count() + 1,
            self.message,
            self.remedy,
            &source[line_start..line_end],
            "^".repeat(carets),
        )
    }
}

fn floor_boundary(source: &str, offset: usize) -> usize {
    let mut offset = offset.min(source.len());
    while !source.is_char_boundary(offset) {
        offset -= 1;
    }
    offset
}
