//! What an instruction does to what is known.

use alloc::vec::Vec;

use crate::access::{Mode, Refusal, touch};
use crate::convention::{RSP, Register};
use crate::decode::{Condition, Effects, Memory, Operation, PAGE, Source, Target, Width};
use crate::function::Function;
use crate::state::State;
use crate::value::{Base, Value};
use crate::{Rule, Violation};

/// Where control goes.
pub enum Next {
    /// To the next instruction.
    Falls,
    /// To a step of the function.
    Jumps(u32),
    /// There, or to the next instruction, by a condition.
    Branches(u32, Condition),
    /// To one of these steps.
    Selects(Vec<u32>),
    /// Out of the function.
    Ends,
}

/// Limit of offsets of the stack pointer, either way.
const MAX_STACK: i64 = 1 << 31;

impl Function<'_> {
    /// Performs a step.
    pub fn step(&self, state: &mut State, operation: &Operation) -> Result<Next, Refusal> {
        match *operation {
            Operation::Move { to, ref from, width } => {
                let value = self.read(state, from)?;
                let value = if width == Width::W32 { state.low(value) } else { value };
                self.write(state, to, value)?;
            }
            Operation::Clear { to } => {
                state.flags = None;
                self.write(state, to, Value::constant(0))?;
            }
            Operation::LoadSigned { to, ref from } => {
                let value = self.load_signed(state, from)?;
                self.write(state, to, value)?;
            }
            Operation::Store { ref to, ref from } => {
                let value = self.read(state, from)?;
                self.store(state, to, value)?;
            }
            Operation::Address { to, ref of } => {
                let value = self.address(state, of);
                self.write(state, to, value)?;
            }
            Operation::Add { to, ref from } => {
                let (left, right) = (state.get(to), self.read(state, from)?);
                let sum = state.sum(left, right);
                state.flags = None;
                self.write(state, to, sum)?;
            }
            Operation::Subtract { to, ref from } => {
                let (left, right) = (state.get(to), self.read(state, from)?);
                let difference = match right.as_constant() {
                    Some(constant) => left.plus(constant.wrapping_neg()),
                    None => state.fresh(u64::MAX),
                };
                state.flags = None;
                self.write(state, to, difference)?;
            }
            Operation::Shift { to, by } => {
                let value = state.get(to);
                let shifted = state.shifted(value, by);
                state.flags = None;
                self.write(state, to, shifted)?;
            }
            Operation::Compare { ref left, ref right, width } => {
                let (left, right) = (self.read(state, left)?, self.read(state, right)?);
                state.compare(left, right, width);
            }
            Operation::IsZero { register, width } => {
                let value = state.get(register);
                state.compare(value, Value::constant(0), width);
            }
            Operation::MoveIf { to, ref from, condition, width } => {
                let (mut other, mut moved) = (state.get(to), self.read(state, from)?);
                if width == Width::W32 {
                    (other, moved) = (state.low(other), state.low(moved));
                }
                let max = state.max_if(moved, condition).max(state.max_if(other, condition.inverted()));
                let value = state.fresh(max);
                self.write(state, to, value)?;
            }
            Operation::Probe { register, bytes, after } => {
                self.probe(state, register, bytes)?;
                return Ok(Next::Jumps(after));
            }
            Operation::Push(ref from) => {
                let value = self.read(state, from)?;
                let pointer = self.stack_pointer(state)? - 8;
                self.write(state, RSP, Value::of(Base::Stack, pointer))?;
                touch(state, pointer)?;
                state.set_slot(pointer, value);
            }
            Operation::Pop(to) => {
                let pointer = self.stack_pointer(state)?;
                self.check(state, Value::of(Base::Stack, pointer), 8, Mode::Read)?;
                let value = state.slot(pointer);
                self.write(state, RSP, Value::of(Base::Stack, pointer + 8))?;
                self.write(state, to, value)?;
            }
            Operation::Other(ref effects) => self.other(state, effects)?,
            Operation::Nothing => {}
            ref transfer => return self.transfer(state, transfer),
        }
        Ok(Next::Falls)
    }

    fn transfer(&self, state: &mut State, operation: &Operation) -> Result<Next, Refusal> {
        match *operation {
            Operation::Jump(Target::Step(to)) => return Ok(Next::Jumps(to)),
            Operation::Jump(Target::Address(to)) => self.tail_call(state, to)?,
            Operation::Branch { condition, to: Target::Step(to) } => return Ok(Next::Branches(to, condition)),
            Operation::Branch { .. } => return Err((Rule::Jump, "a conditional jump leaves the function")),
            Operation::JumpTo(register) => {
                let targets = self.jump_to(state, register)?;
                return Ok(if targets.is_empty() { Next::Ends } else { Next::Selects(targets) });
            }
            Operation::Call(to) => {
                self.call(state, to)?;
                return Ok(Next::Falls);
            }
            Operation::CallTo(ref to) => {
                self.call_to(state, to)?;
                return Ok(Next::Falls);
            }
            Operation::Return(bytes) => self.leave(state, bytes)?,
            _ => {}
        }
        Ok(Next::Ends)
    }

    /// A number that is read.
    pub fn read(&self, state: &mut State, source: &Source) -> Result<Value, Refusal> {
        match source {
            Source::Register(register) => Ok(state.get(*register)),
            Source::Immediate(number) => Ok(Value::constant(*number)),
            Source::Memory(memory) => self.load(state, memory),
        }
    }

    fn write(&self, state: &mut State, register: Register, value: Value) -> Result<(), Refusal> {
        if register != RSP {
            state.set(register, value);
            return Ok(());
        }
        let offset = value.offset_from(Base::Stack).filter(|offset| (-MAX_STACK..=self.stack_end()).contains(offset));
        let offset = offset.ok_or((Rule::Stack, "the stack pointer gets something else than a place of the frame"))?;
        state.set_stack_pointer(offset);
        Ok(())
    }

    fn probe(&self, state: &mut State, register: Register, bytes: i64) -> Result<(), Refusal> {
        let pointer = self.stack_pointer(state)?;
        touch(state, pointer - PAGE)?;
        let end = Value::of(Base::Stack, pointer - bytes);
        self.write(state, RSP, end)?;
        state.touched = state.touched.min(pointer - bytes);
        state.set(register, end);
        state.flags = None;
        Ok(())
    }

    fn other(&self, state: &mut State, effects: &Effects) -> Result<(), Refusal> {
        if let Some(memory) = &effects.memory {
            self.other_access(state, effects, memory)?;
        }
        for register in 0..16 {
            if effects.changed >> register & 1 != 0 {
                state.set(register, Value::UNKNOWN);
            }
        }
        if let Some((register, max)) = effects.bounded {
            let value = state.fresh(max);
            self.write(state, register, value)?;
        }
        if !effects.keeps_flags {
            state.flags = None;
        }
        Ok(())
    }

    fn other_access(&self, state: &mut State, effects: &Effects, memory: &Memory) -> Result<(), Refusal> {
        if effects.reads {
            let address = self.address(state, memory);
            self.check(state, address, i64::from(memory.bytes), Mode::Read)?;
        }
        if effects.writes {
            self.store(state, memory, Value::UNKNOWN)?;
        }
        Ok(())
    }

    /// The violation at a step.
    pub fn violation(&self, index: u32, (rule, why): Refusal) -> Violation {
        let address = self.steps.get(index as usize).map_or(self.end, |step| step.address);
        Violation { place: self.place, address, rule, why }
    }
}
