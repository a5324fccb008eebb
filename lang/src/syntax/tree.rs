//! The syntax tree.

use abi::Direction;

use crate::Span;

/// A name with its span.
#[derive(Clone, Debug)]
pub struct Name {
    /// The identifier.
    pub text: String,
    /// Location.
    pub span: Span,
}

/// Lines of `///` comments, without the slashes and the first blank.
pub type Documentation = Vec<String>;

/// A top-level item.
#[derive(Clone, Debug)]
pub enum Item {
    /// A contract.
    Contract(ContractTree),
    /// A shared type.
    Type(TypeTree),
}

/// `contract Name { ... }`
#[derive(Clone, Debug)]
pub struct ContractTree {
    /// Documentation.
    pub documentation: Documentation,
    /// Its name.
    pub name: Name,
    /// Its members, in order.
    pub members: Vec<Member>,
}

/// A member of a contract.
#[derive(Clone, Debug)]
pub enum Member {
    /// A type.
    Type(TypeTree),
    /// A message.
    Message(MessageTree),
    /// A state.
    State(StateTree),
}

/// `enum Name { ... }`, `flags Name { ... }` or `struct Name { ... }`
#[derive(Clone, Debug)]
pub struct TypeTree {
    /// Documentation.
    pub documentation: Documentation,
    /// Its name.
    pub name: Name,
    /// Its definition.
    pub kind: TypeKindTree,
}

/// The definition of a type.
#[derive(Clone, Debug)]
pub enum TypeKindTree {
    /// An enum.
    Enum(Vec<VariantTree>),
    /// Flags.
    Flags {
        /// The underlying integer type, if given.
        number: Option<Name>,
        /// The names, from bit 0 on.
        flags: Vec<VariantTree>,
    },
    /// A struct.
    Struct(Vec<FieldTree>),
}

/// An enum variant or a flag.
#[derive(Clone, Debug)]
pub struct VariantTree {
    /// Documentation.
    pub documentation: Documentation,
    /// Its name.
    pub name: Name,
}

/// A struct field.
#[derive(Clone, Debug)]
pub struct FieldTree {
    /// Documentation.
    pub documentation: Documentation,
    /// Its type.
    pub value: ValueTree,
    /// Its name.
    pub name: Name,
}

/// The type of a value: `uint`, `byte[32]`, `Point`, `Directory.NodeKind`.
#[derive(Clone, Debug)]
pub struct ValueTree {
    /// The qualifying contract, if any.
    pub contract: Option<Name>,
    /// The type's name.
    pub name: Name,
    /// Length, for a fixed array.
    pub length: Option<Number>,
}

impl ValueTree {
    /// Location of the type's name.
    pub fn span(&self) -> Span {
        let first = self.contract.as_ref().map_or(self.name.span, |contract| contract.span);
        first.to(self.length.map_or(self.name.span, |length| length.span))
    }
}

/// A number with its span.
#[derive(Clone, Copy, Debug)]
pub struct Number {
    /// The number.
    pub value: u64,
    /// Location.
    pub span: Span,
}

/// `in message Name(arguments);`
#[derive(Clone, Debug)]
pub struct MessageTree {
    /// Documentation.
    pub documentation: Documentation,
    /// `in` or `out`, if given.
    pub direction: Option<Direction>,
    /// Its name.
    pub name: Name,
    /// Its arguments.
    pub arguments: Vec<ArgumentTree>,
}

/// A message argument.
#[derive(Clone, Debug)]
pub struct ArgumentTree {
    /// Its type.
    pub kind: ArgumentKindTree,
    /// Its name.
    pub name: Name,
    /// Span of the argument.
    pub span: Span,
}

/// How a block is passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Passing {
    /// `in`: ownership moves to the receiver.
    Owned,
    /// `lent`: it is lent to the receiver.
    Lent,
    /// `returned`: it returns from a loan with this message.
    Returned,
}

/// The type of an argument.
#[derive(Clone, Debug)]
pub enum ArgumentKindTree {
    /// An inline value.
    Inline(ValueTree),
    /// `T[] in ExHeap` or `T* in ExHeap`.
    Block {
        /// Element type.
        element: ValueTree,
        /// Whether it is `[]` (an array), not `*` (one element).
        many: bool,
        /// How it is passed.
        passing: Passing,
    },
    /// `Contract.Imp:STATE`.
    Endpoint {
        /// Contract.
        contract: Name,
        /// Whether it is the importing end.
        importer: bool,
        /// State.
        state: Name,
    },
    /// `any.Imp`.
    Any {
        /// Whether it is the importing end.
        importer: bool,
    },
}

/// `state NAME: one { ... }`
#[derive(Clone, Debug)]
pub struct StateTree {
    /// Documentation.
    pub documentation: Documentation,
    /// Its name.
    pub name: Name,
    /// Its sequences.
    pub branches: Vec<Sequence>,
}

/// `A? -> (B! or C!) -> STATE`
#[derive(Clone, Debug)]
pub struct Sequence {
    /// Its steps; at least one.
    pub steps: Vec<Step>,
    /// Span of the sequence.
    pub span: Span,
}

/// A step of a sequence.
#[derive(Clone, Debug)]
pub enum Step {
    /// A message or a state, which only the declarations distinguish.
    Name {
        /// Its name.
        name: Name,
        /// `!` or `?`, with its span.
        sign: Option<(Direction, Span)>,
    },
    /// `(... or ...)`
    Choice {
        /// The alternatives.
        alternatives: Vec<Sequence>,
        /// Span of the choice.
        span: Span,
    },
}

impl Step {
    /// Span of the step.
    pub fn span(&self) -> Span {
        match self {
            Step::Name { name, sign } => name.span.to(sign.map_or(name.span, |(_, span)| span)),
            Step::Choice { span, .. } => *span,
        }
    }
}
