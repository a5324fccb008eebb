//! Why code is refused: the function, the place, the rule, and what was not proven.

use core::fmt;

/// A part of a module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// What surrounds the code.
    Module,
    /// A function, by its index.
    Function(u32),
    /// The entry of a signature, by its index.
    Entry(u32),
}

/// What code has to keep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// Header, arrays, relocations and record of the module agree.
    Layout,
    /// Only instructions whose effects are known.
    Instruction,
    /// Every access is in linear memory, a table, the context, the frame or the module's read-only data.
    Access,
    /// What is written is writable.
    ReadOnly,
    /// Every jump goes to an instruction of the function.
    Jump,
    /// Every call goes to a function, or to one of the template's, with what it expects.
    Call,
    /// The stack is balanced, aligned, and touched page by page.
    Stack,
    /// A function returns to its caller, with the registers that it must preserve.
    Return,
    /// The proof takes a bounded time.
    Bound,
}

impl Rule {
    /// The rule, as the object of "breaks".
    pub const fn text(self) -> &'static str {
        match self {
            Rule::Layout => "the layout of modules",
            Rule::Instruction => "the rule for instructions",
            Rule::Access => "the rule for memory accesses",
            Rule::ReadOnly => "the rule for read-only data",
            Rule::Jump => "the rule for jumps",
            Rule::Call => "the rule for calls",
            Rule::Stack => "the rule for the stack",
            Rule::Return => "the rule for returns",
            Rule::Bound => "the bound of the proof",
        }
    }
}

/// A rule that is not proven to be kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Where.
    pub place: Place,
    /// The address of the instruction, or of what is wrong in the data.
    pub address: u64,
    /// The rule.
    pub rule: Rule,
    /// What is wrong, as a clause.
    pub why: &'static str,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Violation { place, address, rule, why } = self;
        let rule = rule.text();
        match place {
            Place::Module => write!(f, "the module breaks {rule} at {address:#x}: {why}"),
            Place::Function(index) => write!(f, "function {index} breaks {rule} at {address:#x}: {why}"),
            Place::Entry(index) => write!(f, "the entry of signature {index} breaks {rule} at {address:#x}: {why}"),
        }
    }
}

impl core::error::Error for Violation {}
