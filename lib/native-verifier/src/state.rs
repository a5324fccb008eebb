//! What is known at a place of a function: of registers, of the stack, and how far the stack has been touched.

use alloc::boxed::Box;
use alloc::vec::Vec;

use crate::convention::{PRESERVED, REGISTERS, RSP, Register};
use crate::decode::{Condition, Width};
use crate::value::{Base, Facts, Index, Symbol, Value, ZERO};

/// A comparison whose flags are set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Compared {
    pub left: Value,
    pub right: Value,
}

/// What is known.
#[derive(Clone, Debug)]
pub struct State {
    pub registers: [Value; REGISTERS],
    /// Words of the stack, by their offset from the stack pointer at the entry; ascending.
    pub slots: Vec<(i64, Value)>,
    pub symbols: Vec<Symbol>,
    /// The lowest offset of the stack that has been accessed.
    pub touched: i64,
    /// Number of calls so far.
    pub calls: u32,
    pub flags: Option<Compared>,
}

impl State {
    /// At the entry of a function, whose return address is on top of the stack.
    pub fn at_entry() -> State {
        let mut registers = [Value::UNKNOWN; REGISTERS];
        registers[RSP as usize] = Value::of(Base::Stack, 0);
        for register in PRESERVED {
            registers[register as usize] = Value::of(Base::Saved(register), 0);
        }
        let slots = alloc::vec![(0, Value::of(Base::Return, 0))];
        State { registers, slots, symbols: alloc::vec![Symbol::bounded(0)], touched: 0, calls: 0, flags: None }
    }

    /// A number of which a maximum is known.
    pub fn fresh(&mut self, max: u64) -> Value {
        self.symbols.push(Symbol::bounded(max));
        Value::symbol(self.symbols.len() as Index - 1)
    }

    /// What a register holds. What is unknown gets a symbol, so that copies of it are known to be equal.
    pub fn get(&mut self, register: Register) -> Value {
        let value = self.registers[register as usize & (REGISTERS - 1)];
        if value.base != Base::Unknown {
            return value;
        }
        let fresh = self.fresh(u64::MAX);
        self.set(register, fresh);
        fresh
    }

    pub fn set(&mut self, register: Register, value: Value) {
        self.registers[register as usize & (REGISTERS - 1)] = value;
    }

    /// The offset of the stack pointer.
    pub fn stack_pointer(&self) -> Option<i64> {
        self.registers[RSP as usize].offset_from(Base::Stack)
    }

    /// Moves the stack pointer; what is below it is gone.
    pub fn set_stack_pointer(&mut self, offset: i64) {
        self.set(RSP, Value::of(Base::Stack, offset));
        let gone = self.slots.partition_point(|(at, _)| *at < offset);
        self.slots.drain(..gone);
    }

    /// The word at an offset of the stack.
    pub fn slot(&mut self, offset: i64) -> Value {
        match self.slots.binary_search_by_key(&offset, |(at, _)| *at) {
            Ok(index) => self.slots[index].1,
            Err(index) => {
                let fresh = self.fresh(u64::MAX);
                // A word that overlaps another has no value of its own.
                let overlaps = |at: Option<&(i64, Value)>| at.is_some_and(|(at, _)| (at - offset).abs() < 8);
                if !overlaps(self.slots.get(index)) && !overlaps(index.checked_sub(1).and_then(|at| self.slots.get(at)))
                {
                    self.slots.insert(index, (offset, fresh));
                }
                fresh
            }
        }
    }

    /// Forgets what is in a part of the stack.
    pub fn forget(&mut self, offset: i64, bytes: i64) {
        let first = self.slots.partition_point(|(at, _)| *at <= offset - 8);
        let end = self.slots.partition_point(|(at, _)| *at < offset + bytes);
        if first < end {
            self.slots.drain(first..end);
        }
    }

    pub fn set_slot(&mut self, offset: i64, value: Value) {
        self.forget(offset, 8);
        if value.base != Base::Unknown {
            let index = self.slots.partition_point(|(at, _)| *at < offset);
            self.slots.insert(index, (offset, value));
        }
    }

    /// The maximum of a number.
    pub fn max(&self, value: Value) -> u64 {
        if value.base != Base::Zero {
            return u64::MAX;
        }
        if value.scale == 0 {
            return value.offset as u64;
        }
        let symbol = self.symbols[value.symbol as usize].max.checked_mul(u64::from(value.scale));
        let offset = u64::try_from(value.offset).ok();
        symbol.zip(offset).and_then(|(symbol, offset)| symbol.checked_add(offset)).unwrap_or(u64::MAX)
    }

    pub fn facts(&self, symbol: Index) -> Option<&Facts> {
        self.symbols[symbol as usize].facts.as_deref()
    }

    /// The facts of a symbol, to add to.
    pub fn facts_mut(&mut self, symbol: Index) -> &mut Facts {
        let calls = self.calls;
        let facts = self.symbols[symbol as usize].facts.get_or_insert_with(Box::default);
        if facts.calls != calls {
            facts.calls = calls;
            facts.memory = 0;
            facts.tables.clear();
        }
        facts
    }

    /// How far beyond a symbol memory is known to reach, in bytes.
    pub fn memory_beyond(&self, symbol: Index) -> u64 {
        self.facts(symbol).filter(|facts| facts.calls == self.calls).map_or(0, |facts| facts.memory)
    }

    /// How far beyond a symbol a table is known to reach, in entries.
    pub fn table_beyond(&self, symbol: Index, table: u8) -> u64 {
        let facts = self.facts(symbol).filter(|facts| facts.calls == self.calls);
        let found = facts.and_then(|facts| facts.tables.iter().find(|(at, _)| *at == table));
        found.map_or(0, |(_, entries)| *entries)
    }

    /// The lower 32 bits of a number.
    pub fn low(&mut self, value: Value) -> Value {
        if let Some(constant) = value.as_constant() {
            return Value::constant(i64::from(constant as u32));
        }
        if self.max(value) <= u64::from(u32::MAX) {
            return value;
        }
        let Some(symbol) = value.as_symbol() else { return self.fresh(u64::from(u32::MAX)) };
        if let Some(low) = self.facts(symbol).and_then(|facts| facts.low) {
            return Value::symbol(low);
        }
        let low = self.fresh(u64::from(u32::MAX));
        self.facts_mut(symbol).low = Some(low.symbol);
        low
    }

    /// The sum of two numbers.
    pub fn sum(&mut self, left: Value, right: Value) -> Value {
        let base = match (left.base, right.base) {
            (base, Base::Zero) | (Base::Zero, base) => base,
            _ => return self.fresh(u64::MAX),
        };
        if base == Base::Unknown {
            return self.fresh(u64::MAX);
        }
        let offset = left.offset.wrapping_add(right.offset);
        let (scale, symbol) = match (left.scale, right.scale) {
            (scale, 0) => (scale, left.symbol),
            (0, scale) => (scale, right.symbol),
            (1, 1) if left.symbol == right.symbol => (2, left.symbol),
            _ => {
                let max = self.max(Value { base: Base::Zero, offset: 0, ..left });
                let max = max.saturating_add(self.max(Value { base: Base::Zero, offset: 0, ..right }));
                (1, self.fresh(max).symbol)
            }
        };
        Value { base, scale, symbol, offset }
    }

    /// A multiple of a number, by 1, 2, 4 or 8.
    pub fn times(&mut self, value: Value, factor: u8) -> Value {
        if factor == 1 {
            return value;
        }
        if let Some(constant) = value.as_constant() {
            return Value::constant(constant.wrapping_mul(i64::from(factor)));
        }
        if value.base != Base::Zero || value.scale * factor > 8 {
            return self.fresh(u64::MAX);
        }
        Value { scale: value.scale * factor, offset: value.offset.wrapping_mul(i64::from(factor)), ..value }
    }

    /// A number that is shifted to the left, by less than 64.
    pub fn shifted(&mut self, value: Value, by: u8) -> Value {
        if by <= 3 {
            return self.times(value, 1 << by);
        }
        let max = self.max(value);
        self.fresh(if max.leading_zeros() >= u32::from(by) { max << by } else { u64::MAX })
    }

    /// After a call: what the callee may have changed is forgotten. `above` is the stack pointer then.
    pub fn after_call(&mut self, above: i64) {
        self.calls += 1;
        self.set_stack_pointer(above);
        self.flags = None;
        for register in 0..REGISTERS as Register {
            let is_kept = register == RSP || PRESERVED.contains(&register);
            let value = &mut self.registers[register as usize];
            if !is_kept || value.base.lapses() {
                *value = Value::UNKNOWN;
            }
        }
        self.slots.retain(|(_, value)| !value.base.lapses());
    }

    /// Remembers a comparison.
    pub fn compare(&mut self, left: Value, right: Value, width: Width) {
        self.flags = match width {
            Width::Narrow => None,
            Width::W32 => Some(Compared { left: self.low(left), right: self.low(right) }),
            Width::W64 => Some(Compared { left, right }),
        };
    }

    /// Whether a condition may hold: two constants that are compared decide it.
    pub fn may_hold(&self, condition: Condition) -> bool {
        let Some(Compared { left, right }) = self.flags else { return true };
        let (Some(left), Some(right)) = (left.as_constant(), right.as_constant()) else { return true };
        let (left, right) = (left as u64, right as u64);
        match condition {
            Condition::Above => left > right,
            Condition::AboveOrEqual => left >= right,
            Condition::Below => left < right,
            Condition::BelowOrEqual => left <= right,
            Condition::Equal => left == right,
            Condition::NotEqual => left != right,
            Condition::Other => true,
        }
    }

    /// Learns from a condition that holds.
    pub fn assume(&mut self, condition: Condition) {
        let Some(Compared { left, right }) = self.flags else { return };
        match condition {
            Condition::Above => self.assume_below(right, left, 1),
            Condition::AboveOrEqual => self.assume_below(right, left, 0),
            Condition::Below => self.assume_below(left, right, 1),
            Condition::BelowOrEqual => self.assume_below(left, right, 0),
            Condition::Equal => {
                self.assume_below(left, right, 0);
                self.assume_below(right, left, 0);
                self.assume_signature(left, right);
                self.assume_signature(right, left);
            }
            // Not zero is at least one.
            Condition::NotEqual if right == Value::constant(0) => self.assume_below(right, left, 1),
            Condition::NotEqual if left == Value::constant(0) => self.assume_below(left, right, 1),
            Condition::NotEqual | Condition::Other => {}
        }
    }

    /// The maximum of a number under a condition.
    pub fn max_if(&self, value: Value, condition: Condition) -> u64 {
        let known = self.max(value);
        let Some(Compared { left, right }) = self.flags else { return known };
        let bound = match condition {
            Condition::Below | Condition::BelowOrEqual | Condition::Equal if value == left => self.max(right),
            Condition::Above | Condition::AboveOrEqual | Condition::Equal if value == right => self.max(left),
            _ => known,
        };
        known.min(bound)
    }

    /// The first number plus `distance` is at most the second.
    fn assume_below(&mut self, low: Value, high: Value, distance: u64) {
        let is_scaled = low.base == Base::Zero && low.scale > 1 && high.base == Base::MemoryBytes;
        let low = if is_scaled { self.renamed(low) } else { low };
        let Ok(offset) = u64::try_from(low.offset) else { return };
        let Some(beyond) = offset.checked_add(distance) else { return };
        // The sum must not have wrapped; a constant is the sum of zero and itself.
        let is_exact = low.base == Base::Zero
            && low.scale <= 1
            && self.symbols[low.symbol as usize].max.checked_add(beyond).is_some();
        if !is_exact {
            return;
        }
        match high.base {
            Base::MemoryBytes if high.scale == 0 && high.offset == 0 => {
                let facts = self.facts_mut(low.symbol);
                facts.memory = facts.memory.max(beyond);
            }
            Base::TableEntries(table) if high.scale == 0 && high.offset == 0 => {
                let tables = &mut self.facts_mut(low.symbol).tables;
                match tables.iter_mut().find(|(at, _)| *at == table) {
                    Some((_, entries)) => *entries = (*entries).max(beyond),
                    None => tables.push((table, beyond)),
                }
            }
            Base::Zero if low.symbol != ZERO => {
                let max = self.max(high).saturating_sub(beyond);
                let symbol = &mut self.symbols[low.symbol as usize];
                symbol.max = symbol.max.min(max);
            }
            _ => {}
        }
    }

    /// Gives a multiple of a symbol a symbol of its own, wherever it is a number or an index into memory: only of those
    /// something is known.
    fn renamed(&mut self, value: Value) -> Value {
        let max = self.max(Value { offset: 0, ..value });
        let symbol = self.fresh(max).symbol;
        let places = self.registers.iter_mut().chain(self.slots.iter_mut().map(|(_, place)| place));
        for place in places {
            let is_it = (place.scale, place.symbol) == (value.scale, value.symbol);
            if is_it && matches!(place.base, Base::Zero | Base::Memory | Base::Window) {
                *place = Value { scale: 1, symbol, ..*place };
            }
        }
        Value { scale: 1, symbol, ..value }
    }

    /// If one number is the signature of a function and the other a constant, that is known of the function.
    fn assume_signature(&mut self, signature: Value, number: Value) {
        let number = number.as_constant().and_then(|number| u32::try_from(number).ok());
        let function = signature.as_symbol().and_then(|symbol| self.facts(symbol)?.signature_of);
        if let (Some(number), Some(function)) = (number, function) {
            self.facts_mut(function).signature = Some(number);
        }
    }

    /// The signature of the function whose address a number is.
    pub fn callee(&self, value: Value) -> Option<u32> {
        let facts = self.facts(value.as_symbol()?)?;
        facts.callee.or_else(|| self.facts(facts.address_of?)?.signature)
    }
}
