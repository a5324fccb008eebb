//! Scripts of WebAssembly's test suite in the form that a template runs: instances to make, functions to call, and how
//! that must end.
//!
//! Key types: [`File`] (a file of the suite), [`Step`]. The crate `wasm-spec` writes them, the template `wasm-spec` reads
//! them from its attachment. Deliberately not here: names of exports; calls have the indices of their functions.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod format;

use alloc::string::String;
use alloc::vec::Vec;

pub use format::{Malformed, files, read, write};

/// A file of the suite.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    /// Its name, such as `simd/simd_address`.
    pub name: String,
    /// What is done in turn.
    pub steps: Vec<Step>,
}

/// A directive of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// Its line in the file, from 1.
    pub line: u32,
    /// What is done.
    pub act: Act,
    /// How it must end.
    pub end: End,
}

/// What is done. Instances are numbered in the order in which they are made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Act {
    /// Makes an instance, and runs its start function.
    Instantiate {
        /// The module, by its number in the bundle.
        module: u32,
        /// Functions of other instances: those that imports beyond the template's list mean, in their order.
        links: Vec<Link>,
    },
    /// Calls a function.
    Call {
        /// The instance.
        instance: u32,
        /// The function, by its index.
        function: u32,
        /// Arguments.
        arguments: Vec<Value>,
    },
    /// Reads a global.
    Global {
        /// The instance.
        instance: u32,
        /// The global, by its index.
        global: u32,
    },
}

/// A function of an instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    /// The instance.
    pub instance: u32,
    /// The function, by its index.
    pub function: u32,
}

/// The bits of a number, reference or vector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value {
    /// 32 bits.
    Word(u32),
    /// 64 bits.
    Double(u64),
    /// 128 bits.
    Vector(u128),
}

impl Value {
    /// The bits, as instances have them.
    pub fn bits(self) -> u128 {
        match self {
            Value::Word(bits) => u128::from(bits),
            Value::Double(bits) => u128::from(bits),
            Value::Vector(bits) => bits,
        }
    }

    /// A mask of its width.
    fn ones(self) -> u128 {
        match self {
            Value::Word(_) => u128::from(u32::MAX),
            Value::Double(_) => u128::from(u64::MAX),
            Value::Vector(_) => u128::MAX,
        }
    }
}

/// What a result must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// These bits.
    Exact(Value),
    /// These bits under this mask, of the same width: floats that are not a number may have any sign or payload.
    Masked(Value, Value),
    /// A reference that is not null.
    Reference,
}

impl Pattern {
    /// Whether a result is as it must be.
    pub fn fits(self, bits: u128) -> bool {
        match self {
            Pattern::Exact(value) => bits & value.ones() == value.bits(),
            Pattern::Masked(value, mask) => bits & mask.bits() == value.bits(),
            Pattern::Reference => bits as u32 != u32::MAX,
        }
    }
}

/// How a step must end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// With these results.
    Results(Vec<Pattern>),
    /// With a trap, in the suite's words.
    Trap(String),
    /// With a stack that is used up.
    Exhaustion,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_knows_its_width_and_mask() {
        assert!(Pattern::Exact(Value::Word(7)).fits(7 | 1 << 40));
        assert!(!Pattern::Exact(Value::Double(7)).fits(7 | 1 << 40));
        assert!(!Pattern::Exact(Value::Vector(7)).fits(7 | 1 << 100));
        let canonical = Pattern::Masked(Value::Word(0x7fc0_0000), Value::Word(0x7fff_ffff));
        assert!(canonical.fits(0x7fc0_0000) && canonical.fits(0xffc0_0000));
        assert!(!canonical.fits(0x7fc0_0001) && !canonical.fits(0x7f80_0000));
        assert!(Pattern::Reference.fits(0) && !Pattern::Reference.fits(u128::from(u32::MAX)));
    }
}
