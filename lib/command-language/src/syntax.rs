//! The syntax tree.

use alloc::boxed::Box;
use alloc::rc::Rc;
use alloc::string::String;
use alloc::vec::Vec;
use core::ops::Range;

/// A script, as [`parse`](crate::parse) returns it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Script {
    pub(crate) statements: Vec<Statement>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Statement {
    pub kind: StatementKind,
    pub span: Range<usize>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum StatementKind {
    /// One command, or several joined by `|`.
    Pipeline { stages: Vec<Stage>, background: bool },
    /// `first && second || third`, from left to right.
    Chain { first: Box<Statement>, others: Vec<(When, Statement)> },
    /// `not statement`.
    Not(Box<Statement>),
    /// `time statement`.
    Time(Box<Statement>),
    /// `name=value`.
    Assign { name: String, value: Word },
    /// `if ...; then ...; elif ...; else ...; end`.
    If { arms: Vec<(Script, Script)>, otherwise: Script },
    /// `while ...; do ...; end`.
    While { condition: Script, body: Rc<Script> },
    /// `for name in words; do ...; end`.
    For { name: String, words: Vec<Word>, body: Rc<Script> },
    /// `function name; ...; end`.
    Function { name: String, body: Rc<Script> },
    /// `break`.
    Break,
    /// `continue`.
    Continue,
    /// `return` or `return status`.
    Return(Option<Word>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum When {
    /// `&&`
    Succeeded,
    /// `||`
    Failed,
}

/// A stage of a pipeline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Stage {
    pub work: Work,
    pub redirects: Redirects,
    pub span: Range<usize>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Work {
    /// A program, function or builtin.
    Command(Vec<Word>),
    /// An `if`, `while` or `for`.
    Block(Box<Statement>),
}

/// Redirections of input, output and errors.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Redirects {
    /// `< path`
    pub input: Option<Word>,
    /// `> path` or `>> path`
    pub output: Option<(OutputMode, Word)>,
    /// `2> path`, `2>> path` or `2>&1`
    pub errors: Option<ErrorRedirect>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ErrorRedirect {
    /// `2> path` or `2>> path`
    File(OutputMode, Word),
    /// `2>&1`: where output goes at this point of the line.
    Output { span: Range<usize>, stands_before_output: bool },
}

impl Redirects {
    /// Offset of the end of the last one.
    pub fn end(&self) -> Option<usize> {
        let errors = self.errors.as_ref().map(|errors| match errors {
            ErrorRedirect::File(_, path) => path.span.end,
            ErrorRedirect::Output { span, .. } => span.end,
        });
        let paths = self.input.iter().chain(self.output.iter().map(|(_, path)| path));
        paths.map(|path| path.span.end).chain(errors).max()
    }
}

/// Redirection of errors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Errors {
    /// `2> path` or `2>> path`.
    File(OutputMode, String),
    /// `2>&1`: where output goes.
    Output,
    /// `2>&1 > path`: where output went before the redirection after it.
    OutputBefore,
}

/// Open mode of an output file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutputMode {
    /// `> path`: truncated.
    Replace,
    /// `>> path`: appended to.
    Append,
}

/// A word before expansion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Word {
    pub parts: Vec<WordPart>,
    pub span: Range<usize>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum WordPart {
    /// Literal text.
    Literal(String),
    /// An unquoted `?`.
    AnyCharacter,
    /// An unquoted `*`.
    AnyRun,
    /// `$name`, `${name}`, `${name:-word}`.
    Variable { name: Name, default: Option<Word>, span: Range<usize> },
    /// `$@`, quoted or not: each positional parameter becomes a word.
    Positionals,
    /// `$(script)`: its output; unquoted, each line becomes a word.
    Output { script: Rc<Script>, quoted: bool, span: Range<usize> },
    /// `$((expression))`.
    Arithmetic { expression: String, span: Range<usize> },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Name {
    Variable(String),
    /// `$0` is the script, `$1` the first parameter.
    Positional(usize),
    /// `$?`
    Status,
    /// `$#`
    Count,
}
