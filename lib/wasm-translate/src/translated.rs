//! What comes out: text, read-only data, and the references between them and to the template.

use alloc::vec::Vec;

use wasm_record::layout::Bounds;

use crate::Error;
use crate::separate::Separated;

/// Alignment of functions, in bytes: a cache line, so that a loop costs the same wherever its function lies.
pub const ALIGNMENT: usize = 64;
/// Alignment of constants, in bytes.
pub const CONSTANT_ALIGNMENT: usize = 16;
/// `int3`, between functions.
pub const TRAP: u8 = 0xCC;

/// What a reference in the text points to. Each is a field of four bytes that gets the distance from its own address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// The template's function that performs imports.
    Host,
    /// The template's function that performs builtins.
    Builtin,
    /// The array of the functions' addresses (8 bytes each).
    FunctionTable,
    /// The array of the functions' signatures (4 bytes each).
    SignatureTable,
    /// [`Translated::constants`].
    Constants,
    /// The entries of tables that nothing changes, at the start of the module's constants.
    SealedTables,
}

/// A reference in the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Relocation {
    /// Where the field is.
    pub offset: u32,
    /// What it points to.
    pub target: Target,
    /// What is added to the distance.
    pub addend: i64,
}

/// An entry of a jump table: four bytes that get the distance of a place in the text from the start of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableEntry {
    /// Where it is in [`Translated::constants`].
    pub offset: u32,
    /// Where its table starts there.
    pub table: u32,
    /// The place in the text.
    pub target: u32,
}

/// Why an instruction traps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum TrapKind {
    /// `unreachable` was executed.
    Unreachable = 0,
    /// A memory access out of bounds.
    MemoryBounds = 1,
    /// An indirect call of an entry out of bounds.
    UndefinedElement = 2,
    /// An indirect call of null.
    NullCall = 3,
    /// An indirect call of a function of another signature.
    Signature = 4,
    /// An integer that is too large for its type.
    IntegerOverflow = 5,
    /// A division by zero.
    DivisionByZero = 6,
    /// The conversion of a float that is not a number, or too large.
    Conversion = 7,
    /// A table access out of bounds.
    TableBounds = 8,
    /// An exception that nothing caught.
    Uncaught = 9,
}

impl TrapKind {
    /// As the specification's test suite words it.
    pub const fn text(self) -> &'static str {
        match self {
            TrapKind::Unreachable => "unreachable",
            TrapKind::MemoryBounds => "out of bounds memory access",
            TrapKind::UndefinedElement => "undefined element",
            TrapKind::NullCall => "uninitialized element",
            TrapKind::Signature => "indirect call type mismatch",
            TrapKind::IntegerOverflow => "integer overflow",
            TrapKind::DivisionByZero => "integer divide by zero",
            TrapKind::Conversion => "invalid conversion to integer",
            TrapKind::TableBounds => "out of bounds table access",
            TrapKind::Uncaught => "uncaught exception",
        }
    }
}

/// An instruction that traps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trap {
    /// Where it is in the text.
    pub offset: u32,
    /// Why it traps.
    pub kind: TrapKind,
}

/// A compiled module.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Translated {
    /// Machine code; references are zero.
    pub text: Vec<u8>,
    /// References in it.
    pub relocations: Vec<Relocation>,
    /// Constants and jump tables, to be aligned to 16 bytes.
    pub constants: Vec<u8>,
    /// Entries of the jump tables, which are zero.
    pub table_entries: Vec<TableEntry>,
    /// Where each function starts in the text.
    pub functions: Vec<u32>,
    /// Where the entry of each signature starts.
    pub entries: Vec<u32>,
    /// The number of each function's signature.
    pub signatures: Vec<u32>,
    /// Instructions that trap, ascending.
    pub traps: Vec<Trap>,
    /// The [`Record`](wasm_record::Record).
    pub record: Vec<u8>,
    /// How code keeps to linear memory.
    pub bounds: Bounds,
}

/// Puts functions together.
pub struct Assembler {
    out: Translated,
    calls: Vec<(u32, u32, i64)>,
}

impl Assembler {
    /// Begins with the entries of sealed tables.
    pub fn new(sealed: &[u8]) -> Assembler {
        Assembler { out: Translated { constants: sealed.into(), ..Translated::default() }, calls: Vec::new() }
    }

    pub fn add_function(&mut self, function: Separated) {
        let start = self.add(function);
        self.out.functions.push(start);
    }

    pub fn add_entry(&mut self, function: Separated) {
        let start = self.add(function);
        self.out.entries.push(start);
    }

    fn add(&mut self, function: Separated) -> u32 {
        let out = &mut self.out;
        out.text.resize(out.text.len().next_multiple_of(ALIGNMENT), TRAP);
        out.constants.resize(out.constants.len().next_multiple_of(CONSTANT_ALIGNMENT), 0);
        let (start, constants) = (out.text.len() as u32, out.constants.len() as u32);
        out.text.extend_from_slice(&function.text);
        out.constants.extend_from_slice(&function.constants);
        self.calls.extend(function.calls.iter().map(|&(offset, callee, addend)| (start + offset, callee, addend)));
        out.relocations.extend(function.relocations.iter().map(|one| Relocation {
            offset: start + one.offset,
            target: one.target,
            addend: one.addend + if one.target == Target::Constants { i64::from(constants) } else { 0 },
        }));
        out.table_entries.extend(function.table_entries.iter().map(|entry| TableEntry {
            offset: constants + entry.offset,
            table: constants + entry.table,
            target: start + entry.target,
        }));
        out.traps.extend(function.traps.iter().map(|trap| Trap { offset: start + trap.offset, ..*trap }));
        start
    }

    /// Resolves calls between functions.
    pub fn finish(mut self, signatures: Vec<u32>, record: Vec<u8>) -> Result<Translated, Error> {
        let wrong = || Error::Backend("a call to a function that there is not".into());
        for (offset, callee, addend) in self.calls {
            let target = *self.out.functions.get(callee as usize).ok_or_else(wrong)?;
            let distance = i64::from(target) + addend - i64::from(offset);
            let distance = i32::try_from(distance).map_err(|_| wrong())?;
            let field = self.out.text.get_mut(offset as usize..offset as usize + 4).ok_or_else(wrong)?;
            field.copy_from_slice(&distance.to_le_bytes());
        }
        self.out.signatures = signatures;
        self.out.record = record;
        Ok(self.out)
    }
}
