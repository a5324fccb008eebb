//! Calls, tail calls and returns.

use crate::access::{Mode, Refusal, touch};
use crate::convention::{Convention, PRESERVED, RDI, RSI, Register, STACK_ALIGNMENT};
use crate::decode::{Source, step_at};
use crate::function::Function;
use crate::state::State;
use crate::value::{Base, Value};
use crate::{Place, Rule};

/// Offset of the stack pointer, modulo [`STACK_ALIGNMENT`], at a call: a return address is on top at the entry.
const AT_CALL: i64 = 8;
/// Size of a return address.
const RETURN_BYTES: i64 = 8;
/// Maximum number of entries of a jump table.
const MAX_TARGETS: u32 = 1 << 20;

const NO_FUNCTION: Refusal = (Rule::Call, "it goes neither to the start of a function nor to the template");
const UNPROVEN: Refusal = (Rule::Call, "what is called is not proven to be a function of a known signature");

impl Function<'_> {
    /// A call of an address.
    pub fn call(&self, state: &mut State, target: u64) -> Result<(), Refusal> {
        let module = self.environment.module;
        if target == module.host || target == module.builtin {
            let convention = Convention { stack_bytes: 0, results_bytes: None };
            return self.call_with(state, convention);
        }
        self.call_with(state, self.environment.convention_at(self.part, target).ok_or(NO_FUNCTION)?)
    }

    /// A call of a function that was looked up.
    pub fn call_to(&self, state: &mut State, source: &Source) -> Result<(), Refusal> {
        let value = self.read(state, source)?;
        let convention = self.callee(state, value)?;
        self.call_with(state, convention)
    }

    fn callee(&self, state: &State, value: Value) -> Result<Convention, Refusal> {
        let signature = state.callee(value).ok_or(UNPROVEN)?;
        self.environment.convention(self.part, signature).ok_or(UNPROVEN)
    }

    fn call_with(&self, state: &mut State, convention: Convention) -> Result<(), Refusal> {
        let pointer = self.stack_pointer(state)?;
        if pointer.rem_euclid(STACK_ALIGNMENT) != AT_CALL {
            return Err((Rule::Stack, "the stack is not aligned at a call"));
        }
        let above = pointer + convention.stack_bytes;
        if above > 0 {
            return Err((Rule::Stack, "arguments on the stack lie above the frame"));
        }
        self.check_arguments(state, convention, above)?;
        // The return address.
        touch(state, pointer - RETURN_BYTES)?;
        let results = state.registers[RDI as usize].offset_from(Base::Stack);
        state.after_call(above);
        if let (Some(bytes), Some(offset)) = (convention.results_bytes, results) {
            state.forget(offset, bytes);
        }
        Ok(())
    }

    /// Checks the context and the area for results. `above` is the end of the arguments on the stack.
    fn check_arguments(&self, state: &mut State, convention: Convention, above: i64) -> Result<(), Refusal> {
        if state.get(convention.context()).offset_from(Base::Context) != Some(0) {
            return Err((Rule::Call, "the first argument is not the context"));
        }
        let Some(bytes) = convention.results_bytes else { return Ok(()) };
        let area = state.get(RDI);
        match area.base {
            Base::Results => self.check(state, area, bytes, Mode::Write),
            // The callee takes its own arguments and the area to be apart, and the return address to stay.
            Base::Stack if area.scale == 0 && area.offset >= above && area.offset <= -bytes => {
                self.check(state, area, bytes, Mode::Write)?;
                // Every page of it is touched.
                touch(state, area.offset)
            }
            _ => Err((Rule::Call, "the area for results is not proven to be in the frame")),
        }
    }

    /// Whether control may leave: the stack is as at the entry but for arguments, and preserved registers are restored.
    fn check_leaving(&self, state: &mut State, arguments: i64) -> Result<(), Refusal> {
        let pointer = self.stack_pointer(state)?;
        if state.slot(pointer) != Value::of(Base::Return, 0) {
            return Err((Rule::Return, "the return address is not on top of the stack"));
        }
        if pointer + RETURN_BYTES + arguments != self.stack_end() {
            return Err((Rule::Return, "the stack is not balanced: its own arguments are not what is released"));
        }
        let is_restored =
            |register: &Register| state.registers[*register as usize] == Value::of(Base::Saved(*register), 0);
        if !PRESERVED.iter().all(is_restored) {
            return Err((Rule::Return, "a register that the caller wants preserved is not restored"));
        }
        Ok(())
    }

    /// A return that releases arguments.
    pub fn leave(&self, state: &mut State, bytes: i64) -> Result<(), Refusal> {
        self.check_leaving(state, bytes)
    }

    /// A jump to another function.
    pub fn tail_call(&self, state: &mut State, target: u64) -> Result<(), Refusal> {
        let convention = self.environment.convention_at(self.part, target);
        let convention =
            convention.ok_or((Rule::Jump, "it goes neither within the function nor to the start of one"))?;
        self.tail_call_with(state, convention)
    }

    fn tail_call_with(&self, state: &mut State, convention: Convention) -> Result<(), Refusal> {
        if matches!(self.place, Place::Entry(_)) {
            return Err((Rule::Jump, "an entry does not jump to functions"));
        }
        self.check_leaving(state, convention.stack_bytes)?;
        if state.get(convention.context()).offset_from(Base::Context) != Some(0) {
            return Err((Rule::Call, "the first argument is not the context"));
        }
        let Some(bytes) = convention.results_bytes else { return Ok(()) };
        let area = state.get(RDI);
        if area.base != Base::Results {
            return Err((Rule::Call, "the area for results is not the caller's"));
        }
        self.check(state, area, bytes, Mode::Write)
    }

    /// A jump to a computed address: by a jump table of the read-only data, whose targets are returned, or to a function
    /// that was looked up.
    pub fn jump_to(&self, state: &mut State, register: Register) -> Result<alloc::vec::Vec<u32>, Refusal> {
        let value = state.get(register);
        let entries = state.facts(value.symbol).and_then(|facts| facts.jump);
        if value.base == Base::Image
            && let Some((table, count)) = entries.filter(|(table, _)| value.scale == 1 && value.offset as u64 == *table)
        {
            return self.targets(table, count);
        }
        let convention = self.callee(state, value)?;
        self.tail_call_with(state, convention).map(|()| alloc::vec::Vec::new())
    }

    fn targets(&self, table: u64, count: u32) -> Result<alloc::vec::Vec<u32>, Refusal> {
        let outside = (Rule::Jump, "a jump table is not in the module's read-only data");
        // What is before it is relocated, and not what it reads as here.
        let is_plain = count <= MAX_TARGETS && table >= self.environment.plain_data;
        let bytes = self.environment.data(table, u64::from(count.min(MAX_TARGETS)) * 4).filter(|_| is_plain);
        let entries = bytes.ok_or(outside)?.chunks_exact(4);
        let mut targets = entries
            .map(|entry| {
                let distance = entry.first_chunk().map_or(0, |entry| i32::from_le_bytes(*entry));
                let target = table.wrapping_add_signed(i64::from(distance));
                step_at(&self.steps, target)
                    .ok_or((Rule::Jump, "an entry of a jump table is no instruction of the function"))
            })
            .collect::<Result<alloc::vec::Vec<u32>, Refusal>>()?;
        targets.sort_unstable();
        targets.dedup();
        Ok(targets)
    }

    pub fn stack_pointer(&self, state: &State) -> Result<i64, Refusal> {
        state.stack_pointer().ok_or((Rule::Stack, "the stack pointer is not known"))
    }

    /// What is known at the entry.
    pub fn initial(&self) -> State {
        let mut state = State::at_entry();
        if let Place::Entry(signature) = self.place {
            state.set(RDI, Value::of(Base::Context, 0));
            let function = state.fresh(u64::MAX);
            state.facts_mut(function.symbol).callee = self.part.signature_of_entry(signature);
            state.set(RSI, function);
            return state;
        }
        if self.convention.results_bytes.is_some() {
            state.set(RDI, Value::of(Base::Results, 0));
        }
        state.set(self.convention.context(), Value::of(Base::Context, 0));
        state
    }
}
