//! Diagnostics of a manifest, with places in one or more files.

use std::fmt;

use codes::codes;
use diagnostics::{Colours, SourceFile};

codes! {
    /// Faults that only the source can have; the text of a code (`M002`) is stable.
    pub enum Code;
    Syntax = "M001", "the file is not TOML";
    UnknownKey = "M002", "a key that means nothing here";
    WrongType = "M003", "a value of the wrong type";
    MissingKey = "M004", "a key that must be there is not";
    BadName = "M005", "a name that cannot be used";
    BadVersion = "M006", "a version that is not major.minor.patch";
    UnknownWord = "M008", "a word that is none of those allowed";
    BadPath = "M009", "a path that is not absolute";
    BadText = "M010", "a help that says nothing";
    ScriptOrCrate = "M011", "the code must be a crate or a script";
    UnknownContract = "M020", "no contract has this name";
    ContractNotListed = "M021", "a contract is used but not listed";
    UnknownState = "M023", "the contract has no state of this name";
    BadModule = "M026", "a Rust path that is none";
    DuplicateField = "M031", "a name that is another's or Rust's own in the generated code";
    BadFlag = "M045", "a flag that cannot be typed";
    BadRange = "M052", "a range of addresses that no device can have";
    BadInterrupt = "M053", "an interrupt that no device can have";
    PartNames = "M054", "names that do not fit the parts of a device";
    UnknownRange = "M055", "the device has no range of this name";
    FixedObject = "M056", "a device of registers that is to be opened as something else";
    BadRequirement = "M063", "a required program that cannot be required so";
    DuplicateInstance = "M102", "two instances have one name";
    UnknownParameter = "M103", "the program has no parameter of this name";
    UnknownDevice = "M106", "the program has no device of this name";
    UnknownProvide = "M108", "the program does not provide this path";
    UnknownEndpoint = "M110", "the program has no such endpoint";
    UnknownRootParameter = "M117", "the root program has no parameter of this name";
    RootListed = "M118", "the root program is listed as an instance";
    UnknownBase = "M119", "no system has this name";
    BaseCycle = "M120", "systems are based on each other";
    BadCount = "M123", "a count of instances that cannot be";
    BadPublicKey = "M130", "a public key that is none";
    BadPublishers = "M131", "a pattern of publishers that covers nobody";
    BadRevocation = "M132", "a revocation of nothing";
    AllowMismatch = "M133", "allowed publishers and a policy that do not fit each other";
}

/// The kind of a diagnostic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// The source cannot be read, or refers to an unknown name.
    Source(Code),
    /// A violation of a rule that also applies to packages.
    Rule(install::Code),
}

impl Kind {
    /// Text of the code.
    pub const fn text(self) -> &'static str {
        match self {
            Kind::Source(code) => code.text(),
            Kind::Rule(code) => code.text(),
        }
    }
}

impl From<Code> for Kind {
    fn from(code: Code) -> Kind {
        Kind::Source(code)
    }
}

impl From<install::Code> for Kind {
    fn from(code: install::Code) -> Kind {
        Kind::Rule(code)
    }
}

impl diagnostics::Code for Kind {
    fn text(self) -> &'static str {
        self.text()
    }
}

/// A diagnostic of a manifest.
pub type Diagnostic = diagnostics::Diagnostic<Kind>;

/// Diagnostics of one file or its bases. `Display` renders them without colours.
#[derive(Clone, Debug)]
pub struct Diagnostics {
    /// The file, then its bases.
    pub files: Vec<SourceFile>,
    /// At least one, in the order of their places.
    pub items: Vec<Diagnostic>,
}

impl Diagnostics {
    /// Renders the diagnostics: for each the code, the message, the lines with carets, and the remedy.
    pub fn render(&self, colours: Colours) -> String {
        diagnostics::render(&self.items, &self.files, colours)
    }
}

impl fmt::Display for Diagnostics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.render(Colours::Never))
    }
}

impl std::error::Error for Diagnostics {}
