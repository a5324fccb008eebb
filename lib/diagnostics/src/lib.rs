//! Errors and warnings in source text: a stable code, a sentence, places, and what to do about it.
//!
//! Key types: [`Diagnostic`], [`SourceFile`] and [`Span`] (a place in it). Neighbours: `lang` and `manifest` report
//! with these, and the host tool shows what they report; the codes are made by the macro of crate `codes`.
//! Deliberately not here: what can be wrong.
#![forbid(unsafe_code)]

mod render;
mod spelling;

pub use render::{Colours, render};
pub use spelling::nearest;

/// A file of source text.
#[derive(Clone, Debug)]
pub struct SourceFile {
    /// Its name in messages.
    pub path: String,
    /// Its text.
    pub text: String,
}

impl SourceFile {
    /// A file from its path and text.
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
    /// From the start of this span to the end of `last`, which is in the same file.
    pub fn to(self, last: Span) -> Span {
        Span { file: self.file, start: self.start, end: last.end.max(self.start) }
    }
}

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// The source cannot be used.
    Error,
    /// It can, but is probably not what was meant.
    Warning,
}

/// What a diagnostic has as its code.
pub trait Code: Copy {
    /// The code as it is printed.
    fn text(self) -> &'static str;

    /// How bad whatever has the code is.
    fn severity(self) -> Severity {
        Severity::Error
    }
}

/// A place and what is to be said about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Label {
    /// Where.
    pub span: Span,
    /// A phrase; may be empty.
    pub text: String,
}

/// One error or warning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic<C> {
    /// Its kind.
    pub code: C,
    /// What is wrong, a sentence without its full stop.
    pub message: String,
    /// The place itself first, then others that explain.
    pub labels: Vec<Label>,
    /// What to do.
    pub remedy: String,
}

impl<C: Code> Diagnostic<C> {
    /// A diagnostic with its first label.
    pub fn new(code: C, span: Span, message: impl Into<String>, label: impl Into<String>) -> Diagnostic<C> {
        let labels = vec![Label { span, text: label.into() }];
        Diagnostic { code, message: message.into(), labels, remedy: String::new() }
    }

    /// Adds another place.
    pub fn also(mut self, span: Span, text: impl Into<String>) -> Diagnostic<C> {
        self.labels.push(Label { span, text: text.into() });
        self
    }

    /// Says what to do.
    pub fn remedy(mut self, text: impl Into<String>) -> Diagnostic<C> {
        self.remedy = text.into();
        self
    }

    /// Whether it is an error.
    pub fn is_error(&self) -> bool {
        self.code.severity() == Severity::Error
    }
}
