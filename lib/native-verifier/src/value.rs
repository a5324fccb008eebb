//! What is known of a number: what it is derived from, and of what is unknown in it, facts.
//!
//! A [`Value`] is `base + scale * symbol + offset`, all of 64 bits that wrap. A symbol stands for an unsigned number of
//! which a [`Symbol`] tells what is known. Symbols belong to a [`State`](crate::state::State): two places of it with the
//! same symbol hold the same number.

use alloc::boxed::Box;
use alloc::vec::Vec;

use crate::convention::Register;

/// An address, or another number that has a meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Base {
    /// Nothing is known, not even that it equals another number.
    Unknown,
    /// None: a number.
    Zero,
    /// The address of the context.
    Context,
    /// The stack pointer at the entry of the function, where the return address is.
    Stack,
    /// The address of the caller's area for results.
    Results,
    /// The address of linear memory, as it is in the context.
    Memory,
    /// The same in guard mode: that of a window, which no call changes.
    Window,
    /// The size of linear memory.
    MemoryBytes,
    /// The address of a table's entries.
    Table(u8),
    /// The number of a table's entries.
    TableEntries(u8),
    /// The address that the image is relocated to.
    Image,
    /// What a register holds at the entry of the function.
    Saved(Register),
    /// The return address.
    Return,
}

impl Base {
    /// Whether a call may change what the number is.
    pub fn lapses(self) -> bool {
        matches!(self, Base::Memory | Base::MemoryBytes | Base::Table(_) | Base::TableEntries(_))
    }
}

/// The index of a symbol. [`ZERO`] is that of the number 0.
pub type Index = u32;

/// The symbol that is zero.
pub const ZERO: Index = 0;

/// What a register or a place of the stack holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Value {
    pub base: Base,
    /// 0 if there is no symbol, and else 1, 2, 4 or 8.
    pub scale: u8,
    pub symbol: Index,
    pub offset: i64,
}

impl Value {
    pub const UNKNOWN: Value = Value::of(Base::Unknown, 0);

    pub const fn of(base: Base, offset: i64) -> Value {
        Value { base, scale: 0, symbol: ZERO, offset }
    }

    pub const fn constant(number: i64) -> Value {
        Value::of(Base::Zero, number)
    }

    pub const fn symbol(symbol: Index) -> Value {
        Value { base: Base::Zero, scale: 1, symbol, offset: 0 }
    }

    /// The number, if it is a constant.
    pub fn as_constant(self) -> Option<i64> {
        (self.base == Base::Zero && self.scale == 0).then_some(self.offset)
    }

    /// The offset from a base, if nothing else is in it.
    pub fn offset_from(self, base: Base) -> Option<i64> {
        (self.base == base && self.scale == 0).then_some(self.offset)
    }

    /// The symbol, if that is all.
    pub fn as_symbol(self) -> Option<Index> {
        (self.base == Base::Zero && self.scale == 1 && self.offset == 0).then_some(self.symbol)
    }

    pub fn plus(self, offset: i64) -> Value {
        if self.base == Base::Unknown { self } else { Value { offset: self.offset.wrapping_add(offset), ..self } }
    }
}

/// What is known of an unknown number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Symbol {
    /// The number is at most this.
    pub max: u64,
    /// More, if there is more.
    pub facts: Option<Box<Facts>>,
}

impl Symbol {
    pub const fn bounded(max: u64) -> Symbol {
        Symbol { max, facts: None }
    }

    pub fn is_trivial(&self) -> bool {
        self.max == u64::MAX && self.facts.is_none()
    }
}

/// Bounds, and relations to other symbols.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// The number of calls before [`memory`](Self::memory) and [`tables`](Self::tables) were found; they lapse with the
    /// next one.
    pub calls: u32,
    /// The number plus this is at most the size of memory, in bytes. Zero: nothing is known.
    pub memory: u64,
    /// The number plus this is at most that of a table's entries.
    pub tables: Vec<(u8, u64)>,
    /// As the index of a function: its signature.
    pub signature: Option<u32>,
    /// It is the address of a function of this signature.
    pub callee: Option<u32>,
    /// It is the signature of the function with that index.
    pub signature_of: Option<Index>,
    /// It is the address of the function with that index.
    pub address_of: Option<Index>,
    /// Its lower 32 bits.
    pub low: Option<Index>,
    /// It is an entry of a jump table: the table's address, the number of its entries.
    pub jump: Option<(u64, u32)>,
}
