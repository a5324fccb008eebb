//! Memory accesses: where an address lies, and what is read there.

use wasm_record::layout::{MEMORY_BASE, MEMORY_BYTES, WINDOW_BYTES};

use crate::Rule;
use crate::decode::{Memory, PAGE};
use crate::function::Function;
use crate::state::State;
use crate::value::{Base, Value};

/// Whether an access reads or writes; one that does both writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    Read,
    Write,
}

/// Why an access is refused.
pub type Refusal = (Rule, &'static str);

const UNKNOWN: Refusal = (Rule::Access, "the address is derived from nothing that code may access");

impl Function<'_> {
    /// The address of an operand.
    pub fn address(&self, state: &mut State, memory: &Memory) -> Value {
        let base = if memory.is_image { Base::Image } else { Base::Zero };
        let mut sum = Value::of(base, memory.displacement);
        if let Some(register) = memory.base {
            let value = state.get(register);
            sum = state.sum(value, sum);
        }
        if let Some(register) = memory.index {
            let value = state.get(register);
            let scaled = state.times(value, memory.scale);
            sum = state.sum(sum, scaled);
        }
        sum
    }

    /// Checks an access of this many bytes at an address.
    pub fn check(&self, state: &mut State, address: Value, bytes: i64, mode: Mode) -> Result<(), Refusal> {
        match address.base {
            Base::Memory => check_memory(state, address, bytes),
            Base::Window => check_window(state, address, bytes),
            Base::Table(table) => check_table(state, address, bytes, table),
            Base::Context => self.check_context(address, bytes, mode),
            Base::Stack => self.check_stack(state, address, bytes),
            Base::Results => self.check_results(address, bytes),
            Base::Image => self.check_image(state, address, bytes, mode),
            _ => Err(UNKNOWN),
        }
    }

    fn check_context(&self, address: Value, bytes: i64, mode: Mode) -> Result<(), Refusal> {
        let offset = address.offset_from(Base::Context).filter(|offset| (0..1 << 30).contains(offset));
        let offset = offset.ok_or((Rule::Access, "the offset in the context is not a constant within it"))?;
        let range = offset..offset + bytes;
        match mode {
            Mode::Read if !self.part.is_readable(&range) => {
                Err((Rule::Access, "this part of the context is not the module's"))
            }
            Mode::Write if !self.part.is_writable(&range) => {
                Err((Rule::ReadOnly, "this part of the context is not to be written"))
            }
            _ => Ok(()),
        }
    }

    fn check_stack(&self, state: &mut State, address: Value, bytes: i64) -> Result<(), Refusal> {
        let offset =
            address.offset_from(Base::Stack).ok_or((Rule::Access, "the place on the stack is not a constant"))?;
        let pointer = state.stack_pointer().ok_or((Rule::Stack, "the stack pointer is not known"))?;
        if offset < pointer {
            return Err((Rule::Access, "the place is below the stack pointer"));
        }
        if offset > self.stack_end() - bytes {
            return Err((Rule::Access, "the place is above the function's own arguments"));
        }
        touch(state, offset)
    }

    fn check_results(&self, address: Value, bytes: i64) -> Result<(), Refusal> {
        let offset = address.offset_from(Base::Results).filter(|offset| *offset >= 0);
        let end = self.convention.results_bytes.unwrap_or(0) - bytes;
        if offset.is_some_and(|offset| offset <= end) {
            Ok(())
        } else {
            Err((Rule::Access, "the place is outside of the caller's area for results"))
        }
    }

    fn check_image(&self, state: &State, address: Value, bytes: i64, mode: Mode) -> Result<(), Refusal> {
        if mode == Mode::Write {
            return Err((Rule::ReadOnly, "the image is read-only"));
        }
        let outside = (Rule::Access, "the place in the image is not proven to be in the module's read-only data");
        let first = u64::try_from(address.offset).map_err(|_| outside)?;
        let span = state.max(Value { base: Base::Zero, offset: 0, ..address });
        let bytes = span.checked_add(bytes as u64).ok_or(outside)?;
        self.environment.data(first, bytes).map(|_| ()).ok_or(outside)
    }

    /// Reads a number of 64 bits, or of 32 that are extended.
    pub fn load(&self, state: &mut State, memory: &Memory) -> Result<Value, Refusal> {
        let address = self.address(state, memory);
        let bytes = i64::from(memory.bytes);
        self.check(state, address, bytes, Mode::Read)?;
        let max = if bytes >= 8 { u64::MAX } else { (1 << (bytes * 8)) - 1 };
        Ok(match (address.base, bytes) {
            (Base::Context, 8) => self.word_of_context(state, address.offset),
            (Base::Stack, 8) => state.slot(address.offset),
            (Base::Stack, 4) => {
                let word = state.slot(address.offset);
                state.low(word)
            }
            (Base::Image, 8) => self.word_of_functions(state, address),
            (Base::Image, 4) => self.word_of_signatures(state, address),
            _ => state.fresh(max),
        })
    }

    fn word_of_context(&self, state: &mut State, offset: i64) -> Value {
        let base = match offset {
            _ if offset == i64::from(MEMORY_BASE) && self.part.has_window => Base::Window,
            _ if offset == i64::from(MEMORY_BASE) => Base::Memory,
            _ if offset == i64::from(MEMORY_BYTES) => Base::MemoryBytes,
            _ => match self.part.table_word(offset) {
                Some((table, false)) => Base::Table(table),
                Some((table, true)) => Base::TableEntries(table),
                None => return state.fresh(u64::MAX),
            },
        };
        Value::of(base, 0)
    }

    /// A word at an address that is in the read-only data: perhaps that of a function.
    fn word_of_functions(&self, state: &mut State, address: Value) -> Value {
        let array = self.part.function_array as i64;
        let count = self.part.function_count();
        if let Some(bytes) = self.plain(address, 8) {
            return Value::constant(u64::from_le_bytes(bytes) as i64);
        }
        let index = Value { base: Base::Zero, scale: 1, symbol: address.symbol, offset: 0 };
        let found = state.fresh(u64::MAX);
        if address.scale == 8 && address.offset == array && state.max(index) < count {
            state.facts_mut(found.symbol).address_of = Some(address.symbol);
        } else if let Some(function) = constant_index(address, array, 8).filter(|index| *index < count) {
            state.facts_mut(found.symbol).callee = self.part.signature(function as u32);
        }
        found
    }

    /// Four bytes at an address that is in the read-only data: perhaps the signature of a function.
    fn word_of_signatures(&self, state: &mut State, address: Value) -> Value {
        let array = self.part.signature_array as i64;
        let count = self.part.function_count();
        let index = Value { base: Base::Zero, scale: 1, symbol: address.symbol, offset: 0 };
        if let Some(signature) = constant_index(address, array, 4).and_then(|index| self.part.signature(index as u32)) {
            return Value::constant(i64::from(signature));
        }
        if let Some(bytes) = self.plain(address, 4) {
            return Value::constant(i64::from(u32::from_le_bytes(bytes)));
        }
        let found = state.fresh(u64::from(u32::MAX));
        if address.scale == 4 && address.offset == array && state.max(index) < count {
            state.facts_mut(found.symbol).signature_of = Some(address.symbol);
        }
        found
    }

    /// Bytes at a constant address that are as they are in the file: behind the arrays, nothing is relocated.
    fn plain<const N: usize>(&self, address: Value, bytes: u64) -> Option<[u8; N]> {
        let at = u64::try_from(address.offset).ok()?;
        let is_plain = address.scale == 0 && at >= self.environment.plain_data;
        self.environment.data(at, bytes).filter(|_| is_plain)?.first_chunk().copied()
    }

    /// Reads an entry of what may be a jump table: 32 bits, sign-extended.
    pub fn load_signed(&self, state: &mut State, memory: &Memory) -> Result<Value, Refusal> {
        let address = self.address(state, memory);
        self.check(state, address, i64::from(memory.bytes), Mode::Read)?;
        let found = state.fresh(u64::MAX);
        if address.base == Base::Image && address.scale <= 4 && address.scale != 1 {
            let most = state.max(Value { base: Base::Zero, scale: 1, symbol: address.symbol, offset: 0 });
            // All of the data is smaller than this, or the access would have been refused.
            let entries = if address.scale == 4 { most.saturating_add(1) } else { 1 };
            if let (4 | 0, Ok(entries)) = (address.scale, u32::try_from(entries)) {
                state.facts_mut(found.symbol).jump = Some((address.offset as u64, entries));
            }
        }
        Ok(found)
    }

    /// Writes; `value` is what is written, if it is known and has 64 bits.
    pub fn store(&self, state: &mut State, memory: &Memory, value: Value) -> Result<(), Refusal> {
        let address = self.address(state, memory);
        let bytes = i64::from(memory.bytes);
        self.check(state, address, bytes, Mode::Write)?;
        if address.base == Base::Stack {
            if bytes == 8 {
                state.set_slot(address.offset, value);
            } else {
                state.forget(address.offset, bytes);
            }
        }
        Ok(())
    }
}

fn check_memory(state: &State, address: Value, bytes: i64) -> Result<(), Refusal> {
    let beyond = state.memory_beyond(address.symbol);
    let end = u64::try_from(address.offset).ok().and_then(|offset| offset.checked_add(bytes as u64));
    if address.scale <= 1 && end.is_some_and(|end| end <= beyond) {
        Ok(())
    } else {
        Err((Rule::Access, "the index is not proven to be within linear memory"))
    }
}

/// What is behind memory in a window faults, and memory does not move; or the access was checked. A window is for a module
/// that has memory alone: the address is that of none otherwise.
fn check_window(state: &State, address: Value, bytes: i64) -> Result<(), Refusal> {
    let last = state.max(Value { base: Base::Zero, ..address });
    let is_inside = last.checked_add(bytes as u64).is_some_and(|end| end <= WINDOW_BYTES);
    if is_inside || check_memory(state, address, bytes).is_ok() {
        Ok(())
    } else {
        Err((Rule::Access, "the index and offset are not proven to be within the window of linear memory"))
    }
}

fn check_table(state: &State, address: Value, bytes: i64, table: u8) -> Result<(), Refusal> {
    let beyond = state.table_beyond(address.symbol, table).saturating_mul(4);
    let end = u64::try_from(address.offset).ok().and_then(|offset| offset.checked_add(bytes as u64));
    if matches!(address.scale, 0 | 4) && end.is_some_and(|end| end <= beyond) {
        Ok(())
    } else {
        Err((Rule::Access, "the index is not proven to be within the table"))
    }
}

/// The index of an entry at a constant address.
fn constant_index(address: Value, array: i64, bytes: i64) -> Option<u64> {
    let distance = address.offset.checked_sub(array).filter(|_| address.scale == 0)?;
    (distance % bytes == 0).then(|| u64::try_from(distance / bytes).ok()).flatten()
}

/// Accesses a place of the stack. Pages are touched from above, so that a stack that overflows meets its guard page.
pub fn touch(state: &mut State, offset: i64) -> Result<(), Refusal> {
    if offset < state.touched - PAGE {
        return Err((Rule::Stack, "a page of the stack is skipped: the frame is not probed"));
    }
    state.touched = state.touched.min(offset);
    Ok(())
}
