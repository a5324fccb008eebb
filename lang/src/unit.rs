//! Checked contracts, the input of the emitters, which rely on all invariants.

use abi::{Automaton, Direction};

use crate::syntax::Passing;

/// Index of a [`Type`] in its [`Unit`].
pub type TypeIndex = usize;

/// The contracts and types of files compiled together.
#[derive(Clone, Debug)]
pub struct Unit {
    /// Declared types, including those of contracts.
    pub types: Vec<Type>,
    /// Contracts, in source order.
    pub contracts: Vec<Contract>,
}

impl Unit {
    /// Finds a contract by name.
    pub fn contract(&self, name: &str) -> Option<&Contract> {
        self.contracts.iter().find(|contract| contract.name == name)
    }

    /// Whether every bit pattern is a value of this type and it has no unused bytes, so that it can be in a block.
    /// Unknown bits of flags are ignored.
    pub fn is_plain(&self, value: &Value) -> bool {
        match value.of {
            ValueType::Scalar(scalar) => !matches!(scalar, Scalar::Bool | Scalar::Char),
            ValueType::Declared(index) => match &self.types[index].kind {
                TypeKind::Enum(_) => false,
                TypeKind::Flags { .. } => true,
                TypeKind::Struct(fields) => {
                    fields.iter().all(|field| self.is_plain(&field.value)) && self.padding(fields).is_none()
                }
            },
        }
    }

    /// The first padding of a struct with plain fields: index of the field before it, and its size in bytes.
    pub fn padding(&self, fields: &[Field]) -> Option<(usize, u64)> {
        let (mut offset, mut largest) = (0, 1);
        for (index, field) in fields.iter().enumerate() {
            let (size, align) = self.size_and_align(&field.value);
            let missing = u64::next_multiple_of(offset, align) - offset;
            if missing > 0 {
                return Some((index.saturating_sub(1), missing));
            }
            offset += size;
            largest = largest.max(align);
        }
        let missing = u64::next_multiple_of(offset, largest) - offset;
        (missing > 0).then_some((fields.len().saturating_sub(1), missing))
    }

    /// Size and alignment of a plain value, in bytes.
    fn size_and_align(&self, value: &Value) -> (u64, u64) {
        let (size, align) = match value.of {
            ValueType::Scalar(scalar) => (scalar.bytes(), scalar.bytes()),
            ValueType::Declared(index) => match &self.types[index].kind {
                TypeKind::Enum(_) => (1, 1),
                TypeKind::Flags { number, .. } => (number.bytes(), number.bytes()),
                TypeKind::Struct(fields) => fields.iter().fold((0, 1), |(size, align), field| {
                    let (more, other) = self.size_and_align(&field.value);
                    (size + more, align.max(other))
                }),
            },
        };
        // Structs of arrays of structs can exceed memory; they are rejected where they are used.
        (size.saturating_mul(u64::from(value.length.unwrap_or(1))).min(1 << 40), align)
    }

    /// The canonical text of a type, whose hash is a block's type tag: `byte`, `Point{int,byte[6]}`.
    pub fn canonical_text(&self, value: &Value) -> String {
        let element = match value.of {
            ValueType::Scalar(scalar) => scalar.text().to_string(),
            ValueType::Declared(index) => {
                let declared = &self.types[index];
                match &declared.kind {
                    TypeKind::Enum(_) => declared.name.clone(),
                    TypeKind::Flags { number, .. } => number.text().to_string(),
                    TypeKind::Struct(fields) => {
                        let fields: Vec<String> =
                            fields.iter().map(|field| self.canonical_text(&field.value)).collect();
                        format!("{}{{{}}}", declared.name, fields.join(","))
                    }
                }
            }
        };
        match value.length {
            Some(length) => format!("{element}[{length}]"),
            None => element,
        }
    }
}

/// A declared type.
#[derive(Clone, Debug)]
pub struct Type {
    /// Its name.
    pub name: String,
    /// Documentation lines.
    pub documentation: Vec<String>,
    /// Index of the contract that declares it; `None` for a shared type.
    pub contract: Option<usize>,
    /// Its definition.
    pub kind: TypeKind,
}

/// The definition of a type.
#[derive(Clone, Debug)]
pub enum TypeKind {
    /// An enum; variants are numbered from 0.
    Enum(Vec<Variant>),
    /// Flags: bits of a number, from bit 0 on.
    Flags {
        /// The unsigned integer that holds them.
        number: Scalar,
        /// The flags, at most one per bit.
        flags: Vec<Variant>,
    },
    /// A struct.
    Struct(Vec<Field>),
}

/// An enum variant or a flag.
#[derive(Clone, Debug)]
pub struct Variant {
    /// The name.
    pub name: String,
    /// Documentation lines.
    pub documentation: Vec<String>,
}

/// The number with this many flags set. It is the maximum value, which is all that the kernel checks; no number up to
/// it has an unknown flag.
pub fn all_flags(count: usize) -> u64 {
    u32::try_from(count).ok().and_then(|count| 1u64.checked_shl(count)).map_or(u64::MAX, |next| next - 1)
}

/// A struct field.
#[derive(Clone, Debug)]
pub struct Field {
    /// Its name.
    pub name: String,
    /// Documentation lines.
    pub documentation: Vec<String>,
    /// Its type.
    pub value: Value,
}

/// The type of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Value {
    /// Element type.
    pub of: ValueType,
    /// Length, for a fixed array.
    pub length: Option<u32>,
}

impl Value {
    /// Whether it is a byte array, which is packed in a message.
    pub fn is_bytes(&self) -> bool {
        self.length.is_some() && self.of == ValueType::Scalar(Scalar::Byte)
    }
}

/// An element type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueType {
    /// Built in.
    Scalar(Scalar),
    /// Declared in the unit.
    Declared(TypeIndex),
}

macro_rules! scalars {
    ($($name:ident = $text:literal, $rust:literal, $max:expr;)*) => {
        /// A built-in type.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Scalar { $(#[doc = $text] $name,)* }
        impl Scalar {
            /// Finds a built-in type by name.
            pub fn from_text(text: &str) -> Option<Scalar> {
                match text { $($text => Some(Scalar::$name),)* _ => None }
            }
            /// Name in contracts.
            pub const fn text(self) -> &'static str {
                match self { $(Scalar::$name => $text,)* }
            }
            /// Name in Rust.
            pub const fn rust(self) -> &'static str {
                match self { $(Scalar::$name => $rust,)* }
            }
            /// The maximum of its word. Signed numbers are bit patterns of their own width.
            pub const fn max(self) -> u64 {
                match self { $(Scalar::$name => $max,)* }
            }
        }
    };
}

impl Scalar {
    /// Size and alignment, in bytes.
    pub const fn bytes(self) -> u64 {
        match self {
            Scalar::Bool | Scalar::Byte | Scalar::Sbyte => 1,
            Scalar::Ushort | Scalar::Short => 2,
            Scalar::Uint | Scalar::Int | Scalar::Char => 4,
            Scalar::Ulong | Scalar::Long => 8,
        }
    }
}

scalars! {
    Bool = "bool", "bool", 1;
    Byte = "byte", "u8", u8::MAX as u64;
    Ushort = "ushort", "u16", u16::MAX as u64;
    Uint = "uint", "u32", u32::MAX as u64;
    Ulong = "ulong", "u64", u64::MAX;
    Sbyte = "sbyte", "i8", u8::MAX as u64;
    Short = "short", "i16", u16::MAX as u64;
    Int = "int", "i32", u32::MAX as u64;
    Long = "long", "i64", u64::MAX;
    Char = "char", "char", char::MAX as u64;
}

/// A checked contract.
#[derive(Clone, Debug)]
pub struct Contract {
    /// Its name.
    pub name: String,
    /// Documentation lines.
    pub documentation: Vec<String>,
    /// Types declared in it.
    pub types: Vec<TypeIndex>,
    /// Messages, by tag.
    pub messages: Vec<Message>,
    /// States, by number; named states come first.
    pub states: Vec<State>,
    /// The automaton for the kernel's monitor.
    pub automaton: Automaton,
    /// SHA-256 of the automaton's canonical bytes.
    pub fingerprint: [u8; 32],
}

/// A message.
#[derive(Clone, Debug)]
pub struct Message {
    /// Its name.
    pub name: String,
    /// Documentation lines.
    pub documentation: Vec<String>,
    /// Direction.
    pub direction: Direction,
    /// Arguments.
    pub arguments: Vec<Argument>,
}

/// A message argument.
#[derive(Clone, Debug)]
pub struct Argument {
    /// Its name.
    pub name: String,
    /// Its kind.
    pub kind: ArgumentKind,
}

/// The kind of an argument.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ArgumentKind {
    /// Inline in the message.
    Inline(Value),
    /// An exchange-heap block.
    Block {
        /// Element type.
        element: Value,
        /// Whether it is an array of elements; otherwise it is one.
        many: bool,
        /// How it is passed.
        passing: Passing,
    },
    /// An endpoint of a contract in the unit.
    Endpoint {
        /// Index of the contract.
        contract: usize,
        /// Whether it is the importing end.
        importer: bool,
        /// Its state.
        state: u16,
    },
    /// An endpoint of any contract.
    Any {
        /// Whether it is the importing end.
        importer: bool,
    },
}

/// A state.
#[derive(Clone, Debug)]
pub struct State {
    /// Its name; for a state inside a sequence `READY after Say`.
    pub name: String,
    /// Its name in Rust: `ReadyAfterSay`.
    pub rust_name: String,
    /// Documentation lines.
    pub documentation: Vec<String>,
    /// Whether it is inside a sequence, without a name of its own.
    pub intermediate: bool,
}
