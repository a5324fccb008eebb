//! What is known of the values in registers and stack slots.

use core::mem::{offset_of, size_of};

use abi::limits::STACK_SLOT_BYTES;
use abi::{AbiTable, ThreadBlock};
use iced_x86::Register;

/// What is known of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tag {
    /// Nothing.
    Unknown,
    /// The stack pointer, this many bytes below that at the function's entry.
    Stack(i64),
    /// An address at this distance from the last one of the thread's stack slot, where its thread block ends.
    Top(i64),
    /// The address of the kernel's function table.
    Table,
    /// A word that was read at this distance from an unknown address.
    Word(i64),
    /// A word of the kernel's function table.
    Kernel(usize),
    /// The address of code or data of the image.
    Address(u64),
    /// One of a few numbers that are in the code.
    Numbers(Numbers),
    /// A target of a `switch`, from the table at this address.
    Case(u64),
}

/// A few numbers, each once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Numbers {
    numbers: [u64; Numbers::MOST],
    count: u8,
}

impl Numbers {
    const MOST: usize = 6;

    /// Returns one number.
    pub(crate) fn one(number: u64) -> Numbers {
        Numbers { numbers: [number, 0, 0, 0, 0, 0], count: 1 }
    }

    /// Returns all of them.
    pub fn all(&self) -> &[u64] {
        &self.numbers[..usize::from(self.count)]
    }

    /// Returns the numbers of both; `None` if there are too many.
    pub(crate) fn with(mut self, other: &Numbers) -> Option<Numbers> {
        for &number in other.all() {
            if !self.all().contains(&number) {
                *self.numbers.get_mut(usize::from(self.count))? = number;
                self.count += 1;
            }
        }
        Some(self)
    }

    pub(crate) fn map(self, change: impl Fn(u64) -> u64) -> Option<Numbers> {
        let mut all = self.all().iter().map(|&number| Numbers::one(change(number)));
        let first = all.next()?;
        all.try_fold(first, |sum, next| sum.with(&next))
    }
}

impl Tag {
    /// What is known of a value that is one of two.
    pub(crate) fn or(self, other: Tag) -> Tag {
        match (self, other) {
            (one, two) if one == two => one,
            (Tag::Numbers(one), Tag::Numbers(two)) => one.with(&two).map_or(Tag::Unknown, Tag::Numbers),
            _ => Tag::Unknown,
        }
    }
}

/// Stack slots whose values are followed.
const SLOTS: usize = 24;

/// Returns the number of the general-purpose register that contains this one.
fn number(register: Register) -> Option<usize> {
    let within = |first: Register| (register as usize).checked_sub(first as usize).filter(|number| *number < 16);
    let byte = || match (register as usize).checked_sub(Register::AL as usize)? {
        number @ 0..4 => Some(number),
        // The second bytes of the first four have numbers of their own.
        number @ 4..20 => Some(number - 4),
        _ => None,
    };
    within(Register::RAX).or_else(|| within(Register::EAX)).or_else(|| within(Register::AX)).or_else(byte)
}

/// Returns whether it is a whole general-purpose register.
pub(crate) fn is_whole(register: Register) -> bool {
    (Register::RAX as usize..=Register::R15 as usize).contains(&(register as usize))
}

/// Registers and stack slots at one place in a function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct State {
    /// Bytes in use below the stack pointer at the function's entry; `None` if that depends on the run.
    pub(crate) depth: Option<i64>,
    registers: [Tag; 16],
    /// Known words of the stack, by their distance below the entry.
    slots: [(i64, Tag); SLOTS],
    used: usize,
}

impl State {
    /// The state at the entry of a function.
    pub(crate) fn entry() -> State {
        State { depth: Some(0), registers: [Tag::Unknown; 16], slots: [(0, Tag::Unknown); SLOTS], used: 0 }
    }

    pub(crate) fn get(&self, register: Register) -> Tag {
        if number(register) == number(Register::RSP) {
            return self.depth.map_or(Tag::Unknown, Tag::Stack);
        }
        number(register).map_or(Tag::Unknown, |index| self.registers[index])
    }

    pub(crate) fn set(&mut self, register: Register, tag: Tag) {
        if let Some(index) = number(register) {
            self.registers[index] = tag;
        }
    }

    /// Forgets what a call does not keep (System V ABI).
    pub(crate) fn after_call(&mut self) {
        for register in [
            Register::RAX,
            Register::RCX,
            Register::RDX,
            Register::RSI,
            Register::RDI,
            Register::R8,
            Register::R9,
            Register::R10,
            Register::R11,
        ] {
            self.set(register, Tag::Unknown);
        }
    }

    /// Returns the word of the stack this far below the entry.
    pub(crate) fn slot(&self, below: i64) -> Tag {
        let known = self.slots[..self.used].iter().find(|(at, _)| *at == below);
        known.map_or(Tag::Unknown, |(_, tag)| *tag)
    }

    pub(crate) fn set_slot(&mut self, below: i64, tag: Tag) {
        let place = self.slots[..self.used].iter().position(|(at, _)| *at == below);
        match place {
            Some(place) => self.slots[place].1 = tag,
            None if self.used < SLOTS && tag != Tag::Unknown => {
                self.slots[self.used] = (below, tag);
                self.used += 1;
            }
            None => {}
        }
    }

    /// Joins the state of another way to the same place; returns whether this one changed.
    pub(crate) fn join(&mut self, other: &State) -> bool {
        let before = self.clone();
        self.depth = match (self.depth, other.depth) {
            (Some(one), Some(two)) => Some(one.max(two)),
            _ => None,
        };
        for (mine, theirs) in self.registers.iter_mut().zip(&other.registers) {
            // Sets that differ in order only must not change for ever.
            let joined = mine.or(*theirs);
            let is_more = match (*mine, joined) {
                (Tag::Numbers(mine), Tag::Numbers(joined)) => joined.all().len() > mine.all().len(),
                (mine, joined) => mine != joined,
            };
            if is_more {
                *mine = joined;
            }
        }
        for place in 0..self.used {
            let (at, tag) = self.slots[place];
            if tag != other.slot(at) {
                self.slots[place].1 = Tag::Unknown;
            }
        }
        *self != before
    }
}

/// Distance of the table's address in a thread block from the block's last byte.
pub(crate) const TABLE: i64 = offset_of!(ThreadBlock, abi_table) as i64 - (size_of::<ThreadBlock>() as i64 - 1);
/// What the stack pointer is combined with to find the thread block.
pub(crate) const SLOT_MASK: u64 = STACK_SLOT_BYTES as u64 - 1;

/// Returns the index in [`abi::FUNCTIONS`] of the word of the table at this distance.
pub(crate) fn kernel_function(distance: i64) -> Option<usize> {
    let first = size_of::<u64>();
    let distance = usize::try_from(distance).ok()?.checked_sub(first)?;
    let index = distance / size_of::<u64>();
    let is_word = distance.is_multiple_of(size_of::<u64>()) && index < abi::FUNCTIONS.len();
    (is_word && size_of::<AbiTable>() > first).then_some(index)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn registers_contain_each_other() {
        use Register::*;
        for (part, whole) in [
            (AL, RAX),
            (AH, RAX),
            (BH, RBX),
            (SPL, RSP),
            (DIL, RDI),
            (R8L, R8),
            (R15L, R15),
            (AX, RAX),
            (R15W, R15),
            (EAX, RAX),
            (R15D, R15),
            (RSP, RSP),
        ] {
            assert_eq!(number(part), number(whole), "{part:?}");
            assert_eq!(is_whole(part), part == whole);
        }
        assert_eq!((number(XMM0), number(RIP), number(None)), (Option::None, Option::None, Option::None));
        let mut numbers: alloc::vec::Vec<_> = [RAX, RCX, RDX, RBX, RSP, RBP, RSI, RDI, R8, R15].map(number).into();
        numbers.dedup();
        assert_eq!(numbers.len(), 10);
    }

    #[test]
    fn the_table_is_read_as_the_runtime_reads_it() {
        let first = &abi::FUNCTIONS[0];
        assert_eq!(kernel_function(8), Some(0), "{}", first.name);
        assert_eq!((kernel_function(0), kernel_function(12), kernel_function(-8)), (None, None, None));
        assert_eq!(kernel_function(8 + 8 * abi::FUNCTIONS.len() as i64), None);
        assert_eq!((TABLE, SLOT_MASK), (-0x1ff, 0x7f_ffff));
    }
}
