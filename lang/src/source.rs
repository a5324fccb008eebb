//! Files of source text and places in them.

/// One contract file.
#[derive(Clone, Debug)]
pub struct SourceFile {
    /// How the file is called in diagnostics.
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

/// A range of bytes in one file of a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Span {
    /// Index of the file in the unit.
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
