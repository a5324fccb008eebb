//! Errors and warnings in source text: a stable code, a sentence, places and a remedy.
//!
//! Key types: [`Diagnostic`], [`SourceFile`] and [`Span`] (a place in it). Neighbours: `lang` and `manifest` report
//! with these, the host tool displays them; codes are defined with the crate `codes`. Deliberately not here: particular
//! errors.
#![forbid(unsafe_code)]

mod render;
mod spelling;

pub use render::{Colours, render};
pub use spelling::nearest;

/// A source file.
#[derive(Clone, Debug)]
pub struct SourceFile {
    /// Name in messages.
    pub path: String,
    /// Content.
    pub text: String,
}

impl SourceFile {
    /// Creates a source file.
    pub fn new(path: impl Into<String>, text: impl Into<String>) -> SourceFile {
        SourceFile { path: path.into(), text: text.into() }
    }
}

/// A range of bytes in one of several files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Span {
    /// Index of the file.
    pub file: usize,
    /// First byte.
    pub start: usize,
    /// Byte after the last.
    pub end: usize,
}

impl Span {
    /// The span from the start of this one to the end of `last`, which must be in the same file.
    pub fn to(self, last: Span) -> Span {
        Span { file: self.file, start: self.start, end: last.end.max(self.start) }
    }
}

/// Severity of a diagnostic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// The source cannot be used.
    Error,
    /// Usable, but probably unintended.
    Warning,
}

/// The code of a diagnostic.
pub trait Code: Copy {
    /// The code as printed.
    fn text(self) -> &'static str;

    /// The severity of diagnostics with this code.
    fn severity(self) -> Severity {
        Severity::Error
    }
}

/// A source location with a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Label {
    /// Location.
    pub span: Span,
    /// A phrase; may be empty.
    pub text: String,
}

/// An error or warning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic<C> {
    /// Its code.
    pub code: C,
    /// The problem: a sentence without its full stop.
    pub message: String,
    /// The primary location first, then explanatory ones.
    pub labels: Vec<Label>,
    /// The remedy.
    pub remedy: String,
}

impl<C: Code> Diagnostic<C> {
    /// Creates a diagnostic with its primary label.
    pub fn new(code: C, span: Span, message: impl Into<String>, label: impl Into<String>) -> Diagnostic<C> {
        let labels = vec![Label { span, text: label.into() }];
        Diagnostic { code, message: message.into(), labels, remedy: String::new() }
    }

    /// Adds a label.
    pub fn also(mut self, span: Span, text: impl Into<String>) -> Diagnostic<C> {
        self.labels.push(Label { span, text: text.into() });
        self
    }

    /// Sets the remedy.
    pub fn remedy(mut self, text: impl Into<String>) -> Diagnostic<C> {
        self.remedy = text.into();
        self
    }

    /// Whether it is an error.
    pub fn is_error(&self) -> bool {
        self.code.severity() == Severity::Error
    }
}
