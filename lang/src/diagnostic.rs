//! Diagnostics about contracts.

use codes::codes;
use diagnostics::Severity;

codes! {
    /// The code of a diagnostic; its text (`C012`) is stable.
    pub enum Code;
    /// Severity.
    severity: Severity;
    UnexpectedCharacter = "C001", Error, "invalid character";
    UnexpectedToken = "C002", Error, "unexpected token";
    NestedTooDeeply = "C003", Error, "choices are nested too deeply";
    BadLength = "C004", Error, "array length out of range";
    UnendedComment = "C005", Error, "unterminated comment";
    DuplicateItem = "C010", Error, "duplicate declaration";
    DuplicateMessage = "C011", Error, "duplicate message";
    DuplicateState = "C012", Error, "duplicate state";
    DuplicatePart = "C013", Error, "duplicate argument, field, flag or enum value";
    ReservedName = "C014", Error, "reserved name";
    BadName = "C015", Error, "invalid name";
    SameRustName = "C016", Error, "names that collide in Rust";
    UndefinedType = "C020", Error, "unknown type";
    UndefinedMessage = "C021", Error, "unknown message";
    UndefinedState = "C022", Error, "unknown state";
    UndefinedContract = "C023", Error, "unknown contract";
    MessageOrState = "C025", Error, "name of both a message and a state";
    NoStates = "C026", Error, "a contract without states";
    RecursiveType = "C027", Error, "recursive type";
    EmptyType = "C028", Error, "empty type";
    BadFlagsNumber = "C029", Error, "flags over a type that is not an unsigned integer";
    NoDirection = "C030", Error, "message without a direction";
    WrongSign = "C031", Error, "sign contradicts the direction of the message";
    SignsDisagree = "C032", Error, "message used with both signs";
    NoNextState = "C040", Error, "sequence does not end in a state";
    StateInside = "C041", Error, "sequence continues after a state";
    NoMessage = "C042", Error, "sequence does not begin with a message";
    Ambiguous = "C043", Error, "two sequences of a state begin with the same message";
    MixedDirections = "C044", Error, "both sides may send in one state";
    Unreachable = "C045", Error, "unreachable state";
    OneWayCycle = "C046", Error, "cycle in which only one side sends";
    ImmovableEndpoint = "C050", Error, "endpoint cannot be moved in this state";
    LoansDiffer = "C060", Error, "state reached with different blocks on loan";
    ReturnedWithoutLoan = "C061", Error, "returned block is not on loan";
    NotPlain = "C070", Error, "block element is not plain data";
    MessageTooLarge = "C071", Error, "message too large";
    QueueTooLong = "C072", Error, "too many messages could be queued";
    TooMany = "C073", Error, "limit exceeded";
    Padding = "C074", Error, "block element has padding";
    ExclamationArrow = "C101", Warning, "expected an arrow, found `!`";
    MissingBrace = "C102", Warning, "missing brace";
    UnusedMessage = "C103", Warning, "unused message";
    UnusedType = "C104", Warning, "unused type";
    LoanAtEnd = "C105", Warning, "conversation may end with a block on loan";
}

impl diagnostics::Code for Code {
    fn text(self) -> &'static str {
        self.text()
    }

    fn severity(self) -> Severity {
        self.severity()
    }
}

/// A diagnostic about contracts.
pub type Diagnostic = diagnostics::Diagnostic<Code>;
