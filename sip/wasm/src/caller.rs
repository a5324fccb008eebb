//! What a host sees of the instance that calls it.

use wasm_record::layout::MAX_ARGUMENTS;

use crate::instance::State;

/// The instance that calls an import: arguments, memory, and where results go. A number that is read of an argument that
/// the import does not have is one that an earlier call has left there.
pub struct Caller<'a> {
    pub(crate) state: &'a mut State,
}

impl Caller<'_> {
    /// Linear memory; empty if the module has none.
    pub fn memory(&mut self) -> &mut [u8] {
        self.state.memory()
    }

    /// The bits of an argument; zero beyond [`MAX_ARGUMENTS`].
    pub fn bits(&self, index: usize) -> u128 {
        if index < MAX_ARGUMENTS { self.state.context.argument(index) } else { 0 }
    }

    /// An argument of 32 bits.
    pub fn u32(&self, index: usize) -> u32 {
        self.bits(index) as u32
    }

    /// An argument of 64 bits.
    pub fn u64(&self, index: usize) -> u64 {
        self.bits(index) as u64
    }

    /// Sets the bits of a result. Has no effect beyond [`MAX_ARGUMENTS`].
    pub fn set_result(&mut self, index: usize, bits: u128) {
        if index < MAX_ARGUMENTS {
            self.state.context.set_argument(index, bits);
        }
    }
}
