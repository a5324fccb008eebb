//! What is wrong with a contract: a stable code, a sentence, the place, and what to do about it.

use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};

use crate::{SourceFile, Span};

/// Whether generated code can be had in spite of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// No code is generated.
    Error,
    /// It works, but is probably not what was meant.
    Warning,
}

/// Whether a rendered diagnostic has terminal colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Colours {
    /// For a terminal.
    Always,
    /// For files, and for error messages of other tools.
    Never,
}

macro_rules! codes {
    ($($name:ident = $text:literal, $severity:ident, $title:literal;)*) => {
        /// The kind of a diagnostic; its text (`C012`) is stable.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Code { $(#[doc = $title] $name,)* }
        impl Code {
            /// Every code.
            pub const ALL: &[Code] = &[$(Code::$name),*];
            /// As it is printed.
            pub const fn text(self) -> &'static str {
                match self { $(Code::$name => $text,)* }
            }
            /// What it is about.
            pub const fn title(self) -> &'static str {
                match self { $(Code::$name => $title,)* }
            }
            /// Whether it is an error.
            pub const fn severity(self) -> Severity {
                match self { $(Code::$name => Severity::$severity,)* }
            }
        }
    };
}

codes! {
    UnexpectedCharacter = "C001", Error, "a character that is not part of the language";
    UnexpectedToken = "C002", Error, "something else is expected here";
    NestedTooDeeply = "C003", Error, "choices are nested too deeply";
    BadLength = "C004", Error, "the length of an array is out of range";
    UnendedComment = "C005", Error, "a comment does not end";
    DuplicateItem = "C010", Error, "two declarations of the unit have one name";
    DuplicateMessage = "C011", Error, "two messages have one name";
    DuplicateState = "C012", Error, "two states have one name";
    DuplicatePart = "C013", Error, "two arguments, fields or names of an enum are the same";
    ReservedName = "C014", Error, "the name is needed for generated code";
    BadName = "C015", Error, "the name cannot be used";
    SameRustName = "C016", Error, "two names are the same in Rust";
    UndefinedType = "C020", Error, "no type has this name";
    UndefinedMessage = "C021", Error, "no message has this name";
    UndefinedState = "C022", Error, "no state has this name";
    UndefinedContract = "C023", Error, "no contract has this name";
    MessageOrState = "C025", Error, "the name is that of a message and of a state";
    NoStates = "C026", Error, "a contract without states";
    RecursiveType = "C027", Error, "a type contains itself";
    EmptyType = "C028", Error, "a type without content";
    NoDirection = "C030", Error, "nothing tells which way a message goes";
    WrongSign = "C031", Error, "a sign contradicts the direction of its message";
    SignsDisagree = "C032", Error, "a message is used with both signs";
    NoNextState = "C040", Error, "a sequence does not end in a state";
    StateInside = "C041", Error, "a sequence goes on after a state";
    NoMessage = "C042", Error, "a sequence does not begin with a message";
    Ambiguous = "C043", Error, "a message begins two sequences of a state";
    MixedDirections = "C044", Error, "both sides may send in one state";
    Unreachable = "C045", Error, "a state that no conversation reaches";
    OneWayCycle = "C046", Error, "a cycle in which one side never has to listen";
    ImmovableEndpoint = "C050", Error, "an endpoint cannot be moved in this state";
    LoansDiffer = "C060", Error, "a state is reached with different blocks on loan";
    ReturnedWithoutLoan = "C061", Error, "a block is returned that is not on loan";
    NotPlain = "C070", Error, "elements of a block must be plain data";
    MessageTooLarge = "C071", Error, "a message is too large";
    QueueTooLong = "C072", Error, "too many messages could wait";
    TooMany = "C073", Error, "too many of something";
    Padding = "C074", Error, "elements of a block must have no padding";
    ExclamationArrow = "C101", Warning, "`!` stands where an arrow is expected";
    MissingBrace = "C102", Warning, "a brace is missing";
    UnusedMessage = "C103", Warning, "a message is never sent";
    UnusedType = "C104", Warning, "a type is never used";
    LoanAtEnd = "C105", Warning, "the conversation can end with a block on loan";
}

/// A place and what is to be said about it.
#[derive(Clone, Debug)]
pub struct Label {
    /// Where.
    pub span: Span,
    /// What; may be empty.
    pub text: String,
}

/// One error or warning.
#[derive(Clone, Debug)]
pub struct Diagnostic {
    /// Its kind.
    pub code: Code,
    /// One sentence: what is wrong.
    pub message: String,
    /// The place first, then others that matter.
    pub labels: Vec<Label>,
    /// What to do.
    pub remedy: String,
}

impl Diagnostic {
    /// A diagnostic with its first label.
    pub fn new(code: Code, span: Span, message: impl Into<String>, label: impl Into<String>) -> Diagnostic {
        let labels = vec![Label { span, text: label.into() }];
        Diagnostic { code, message: message.into(), labels, remedy: String::new() }
    }

    /// Adds another place.
    pub fn also(mut self, span: Span, text: impl Into<String>) -> Diagnostic {
        self.labels.push(Label { span, text: text.into() });
        self
    }

    /// Says what to do.
    pub fn remedy(mut self, text: impl Into<String>) -> Diagnostic {
        self.remedy = text.into();
        self
    }

    /// Whether it is an error.
    pub fn is_error(&self) -> bool {
        self.code.severity() == Severity::Error
    }

    /// The diagnostic as text with the lines it is about.
    pub fn render(&self, files: &[SourceFile], colours: Colours) -> String {
        let level = if self.is_error() { Level::ERROR } else { Level::WARNING };
        let mut report = Group::with_title(level.primary_title(&self.message).id(self.code.text()));
        let mut order: Vec<usize> = Vec::new();
        for label in &self.labels {
            if !order.contains(&label.span.file) {
                order.push(label.span.file);
            }
        }
        for file in order {
            let Some(source) = files.get(file) else { continue };
            let mut snippet = Snippet::source(&source.text).path(&source.path).fold(true);
            for (index, label) in self.labels.iter().enumerate().filter(|(_, label)| label.span.file == file) {
                let kind = if index == 0 { AnnotationKind::Primary } else { AnnotationKind::Context };
                snippet = snippet.annotation(kind.span(visible(label.span, &source.text)).label(&label.text));
            }
            report = report.element(snippet);
        }
        if !self.remedy.is_empty() {
            report = report.element(Level::HELP.message(&self.remedy));
        }
        let renderer = match colours {
            Colours::Always => Renderer::styled(),
            Colours::Never => Renderer::plain(),
        };
        let mut text = String::new();
        for line in renderer.render(&[report]).lines() {
            text.push_str(line.trim_end());
            text.push('\n');
        }
        text
    }
}

/// The range of a span, inside the text and on character boundaries whatever the span says.
fn visible(span: Span, text: &str) -> std::ops::Range<usize> {
    let mut start = span.start.min(text.len());
    while !text.is_char_boundary(start) {
        start -= 1;
    }
    let mut end = span.end.clamp(start, text.len());
    while !text.is_char_boundary(end) {
        end += 1;
    }
    start..end
}
