//! The syntax tree: what was written, before anything is known of what it means.

use abi::Direction;

use crate::Span;

/// A name and where it stands.
#[derive(Clone, Debug)]
pub struct Name {
    /// The identifier.
    pub text: String,
    /// Where.
    pub span: Span,
}

/// Lines of `///` comments, without the slashes and the first blank.
pub type Documentation = Vec<String>;

/// What a file holds.
#[derive(Clone, Debug)]
pub enum Item {
    /// A contract.
    Contract(ContractTree),
    /// A type shared by the unit.
    Type(TypeTree),
}

/// `contract Name { ... }`
#[derive(Clone, Debug)]
pub struct ContractTree {
    /// Comments before it.
    pub documentation: Documentation,
    /// Its name.
    pub name: Name,
    /// What is in it, in order.
    pub members: Vec<Member>,
}

/// What a contract holds.
#[derive(Clone, Debug)]
pub enum Member {
    /// A type of its own.
    Type(TypeTree),
    /// A message.
    Message(MessageTree),
    /// A state.
    State(StateTree),
}

/// `enum Name { ... }`, `flags Name { ... }` or `struct Name { ... }`
#[derive(Clone, Debug)]
pub struct TypeTree {
    /// Comments before it.
    pub documentation: Documentation,
    /// Its name.
    pub name: Name,
    /// What it is.
    pub kind: TypeKindTree,
}

/// What a declared type is.
#[derive(Clone, Debug)]
pub enum TypeKindTree {
    /// One of several names.
    Enum(Vec<VariantTree>),
    /// Any of several names.
    Flags {
        /// The number whose bits they are, where it is named.
        number: Option<Name>,
        /// The names, from bit 0 on.
        flags: Vec<VariantTree>,
    },
    /// Fields.
    Struct(Vec<FieldTree>),
}

/// One name of an enum or of flags.
#[derive(Clone, Debug)]
pub struct VariantTree {
    /// Comments before it.
    pub documentation: Documentation,
    /// Its name.
    pub name: Name,
}

/// One field of a struct.
#[derive(Clone, Debug)]
pub struct FieldTree {
    /// Comments before it.
    pub documentation: Documentation,
    /// Its type.
    pub value: ValueTree,
    /// Its name.
    pub name: Name,
}

/// The type of a value: `uint`, `byte[32]`, `Point`, `Directory.NodeKind`.
#[derive(Clone, Debug)]
pub struct ValueTree {
    /// The contract that declares the type, if it is named.
    pub contract: Option<Name>,
    /// The type's name.
    pub name: Name,
    /// Elements, for a fixed array.
    pub length: Option<Number>,
}

impl ValueTree {
    /// Where the type is named.
    pub fn span(&self) -> Span {
        let first = self.contract.as_ref().map_or(self.name.span, |contract| contract.span);
        first.to(self.length.map_or(self.name.span, |length| length.span))
    }
}

/// A number and where it stands.
#[derive(Clone, Copy, Debug)]
pub struct Number {
    /// The number.
    pub value: u64,
    /// Where.
    pub span: Span,
}

/// `in message Name(arguments);`
#[derive(Clone, Debug)]
pub struct MessageTree {
    /// Comments before it.
    pub documentation: Documentation,
    /// `in` or `out`, if it is written.
    pub direction: Option<Direction>,
    /// Its name.
    pub name: Name,
    /// What it carries.
    pub arguments: Vec<ArgumentTree>,
}

/// One argument of a message.
#[derive(Clone, Debug)]
pub struct ArgumentTree {
    /// Its type.
    pub kind: ArgumentKindTree,
    /// Its name.
    pub name: Name,
    /// The whole of it.
    pub span: Span,
}

/// How a block is passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Passing {
    /// `in`: it belongs to the receiver from then on.
    Owned,
    /// `lent`: it comes home.
    Lent,
    /// `returned`: it comes home with this message.
    Returned,
}

/// The type of an argument.
#[derive(Clone, Debug)]
pub enum ArgumentKindTree {
    /// A value that lies in the message.
    Inline(ValueTree),
    /// `T[] in ExHeap` or `T* in ExHeap`.
    Block {
        /// Type of the elements.
        element: ValueTree,
        /// `[]` (any number of elements), not `*` (one).
        many: bool,
        /// How it is passed.
        passing: Passing,
    },
    /// `Contract.Imp:STATE`.
    Endpoint {
        /// Whose endpoint.
        contract: Name,
        /// The importing end, not the exporting one.
        importer: bool,
        /// In which state.
        state: Name,
    },
    /// `any.Imp`.
    Any {
        /// The importing end, not the exporting one.
        importer: bool,
    },
}

/// `state NAME: one { ... }`
#[derive(Clone, Debug)]
pub struct StateTree {
    /// Comments before it.
    pub documentation: Documentation,
    /// Its name.
    pub name: Name,
    /// What may happen in it.
    pub branches: Vec<Sequence>,
}

/// `A? -> (B! or C!) -> STATE`
#[derive(Clone, Debug)]
pub struct Sequence {
    /// At least one.
    pub steps: Vec<Step>,
    /// The whole of it.
    pub span: Span,
}

/// One step of a sequence.
#[derive(Clone, Debug)]
pub enum Step {
    /// A message, or a state; only the declarations tell which.
    Name {
        /// Its name.
        name: Name,
        /// `!` or `?`, and where.
        sign: Option<(Direction, Span)>,
    },
    /// `(... or ...)`
    Choice {
        /// What there is to choose from.
        alternatives: Vec<Sequence>,
        /// The whole of it.
        span: Span,
    },
}

impl Step {
    /// Where it stands.
    pub fn span(&self) -> Span {
        match self {
            Step::Name { name, sign } => name.span.to(sign.map_or(name.span, |(_, span)| span)),
            Step::Choice { span, .. } => *span,
        }
    }
}
