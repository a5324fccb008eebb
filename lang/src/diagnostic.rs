//! Diagnostics about contracts.

use codes::codes;
use diagnostics::Severity;

codes! {
    /// The code of a diagnostic; its text (`C012`) is stable.
    pub enum Code;
    /// Severity.
    severity: Severity;
    UnexpectedCharacter = "C001", Error, "a character that is not part of the language";
    UnexpectedToken = "C002", Error, "something else is expected here";
    NestedTooDeeply = "C003", Error, "choices are nested too deeply";
    BadLength = "C004", Error, "the length of an array is out of range";
    UnendedComment = "C005", Error, "a comment does not end";
    DuplicateItem = "C010", Error, "two declarations of the unit have one name";
    DuplicateMessage = "C011", Error, "two messages have one name";
    DuplicateState = "C012", Error, "two states have one name";
    DuplicatePart = "C013", Error, "two arguments, fields, flags or names of an enum are the same";
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
    BadFlagsNumber = "C029", Error, "flags are bits of a number without a sign";
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
