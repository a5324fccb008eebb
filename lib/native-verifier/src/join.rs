//! What is known where two ways meet: what both know.
//!
//! Places are grouped by the pair of numbers that they hold on either way; each group gets a symbol of its own. So what
//! is equal on both ways stays equal, and what differs by a constant keeps doing so.

use alloc::boxed::Box;
use alloc::vec::Vec;

use crate::convention::REGISTERS;
use crate::state::State;
use crate::value::{Base, Facts, Index, Symbol, Value, ZERO};

/// How facts that keep getting weaker are treated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Widening {
    Off,
    /// They are rounded down, to powers of two, so that a loop comes to an end.
    On,
}

/// A symbol of the result: a symbol and an offset on either way.
#[derive(Clone, Copy)]
struct Group {
    old: (Index, i64),
    new: (Index, i64),
    result: Index,
    next: Option<u32>,
}

struct Join<'a> {
    old: &'a State,
    new: &'a State,
    groups: Vec<Group>,
    /// The first group of each old symbol.
    first: Vec<Option<u32>>,
    is_changed: bool,
}

/// Removes symbols that no place has, and what is known of no use.
pub fn compacted(state: &State) -> State {
    join(state, state, Widening::Off).0
}

/// Joins a state with another one; also returns whether less is known than in the first.
pub fn join(old: &State, new: &State, widening: Widening) -> (State, bool) {
    let mut join = Join {
        old,
        new,
        groups: alloc::vec![Group { old: (ZERO, 0), new: (ZERO, 0), result: ZERO, next: None }],
        first: alloc::vec![None; old.symbols.len()],
        is_changed: false,
    };
    join.first[ZERO as usize] = Some(0);
    let mut registers = [Value::UNKNOWN; REGISTERS];
    for (register, value) in registers.iter_mut().enumerate() {
        *value = join.values(old.registers[register], new.registers[register]);
    }
    let slots = join.slots();
    let symbols = join.symbols(widening);
    let touched = old.touched.max(new.touched);
    let is_changed = join.is_changed || touched != old.touched;
    let mut state = State { registers, slots, symbols, touched, calls: old.calls, flags: None };
    forget_trivial(&mut state);
    (state, is_changed)
}

impl Join<'_> {
    fn slots(&mut self) -> Vec<(i64, Value)> {
        let (old, new) = (self.old, self.new);
        let mut slots = Vec::with_capacity(old.slots.len());
        let mut others = new.slots.iter().peekable();
        for &(offset, value) in &old.slots {
            while others.next_if(|(at, _)| *at < offset).is_some() {}
            let other = others.next_if(|(at, _)| *at == offset).map_or(Value::UNKNOWN, |(_, other)| *other);
            let joined = self.values(value, other);
            if joined.base != Base::Unknown {
                slots.push((offset, joined));
            }
        }
        slots
    }

    fn values(&mut self, old: Value, new: Value) -> Value {
        if old.base == Base::Unknown {
            return Value::UNKNOWN;
        }
        let joined = self.known(old, new);
        if joined.base == Base::Unknown || old.scale == 0 && joined.scale != 0 {
            self.is_changed = true;
        }
        joined
    }

    fn known(&mut self, old: Value, new: Value) -> Value {
        if old.base != new.base {
            return Value::UNKNOWN;
        }
        match (old.scale, new.scale) {
            (0, 0) if old.offset == new.offset => old,
            // Two constants: the symbol stands for all of it.
            (0, 0 | 1) if old.base == Base::Zero => {
                let symbol = self.group((ZERO, old.offset), (new.symbol, new.offset));
                Value { scale: 1, symbol, offset: 0, ..old }
            }
            (1, 0 | 1) => {
                let symbol = self.group((old.symbol, 0), (new.symbol, new.offset.wrapping_sub(old.offset)));
                Value { symbol, ..old }
            }
            (left, right) if left == right && old.offset == new.offset => {
                let symbol = self.group((old.symbol, 0), (new.symbol, 0));
                Value { symbol, ..old }
            }
            _ => Value::UNKNOWN,
        }
    }

    /// The symbol of a pair.
    fn group(&mut self, old: (Index, i64), new: (Index, i64)) -> Index {
        let mut at = self.first[old.0 as usize];
        let mut is_first = true;
        while let Some(index) = at {
            let group = self.groups[index as usize];
            if group.old == old && group.new == new {
                return group.result;
            }
            is_first = false;
            at = group.next;
        }
        // What was one symbol becomes two. The first of zero's is zero itself.
        if !is_first && old.0 != ZERO {
            self.is_changed = true;
        }
        let result = self.groups.len() as Index;
        let next = self.first[old.0 as usize].replace(result);
        self.groups.push(Group { old, new, result, next });
        result
    }

    fn symbols(&mut self, widening: Widening) -> Vec<Symbol> {
        let mut symbols: Vec<Symbol> = Vec::with_capacity(self.groups.len());
        // Relations add groups while they are gone through.
        while let Some(&group) = self.groups.get(symbols.len()) {
            let symbol = self.symbol(group, widening);
            symbols.push(symbol);
        }
        symbols
    }

    fn symbol(&mut self, group: Group, widening: Widening) -> Symbol {
        let (old, new) = (shifted(self.old, group.old), shifted(self.new, group.new));
        let mut max = old.max.max(new.max);
        if max > old.max {
            self.is_changed = true;
            if widening == Widening::On {
                max = if max <= u64::from(u32::MAX) { u64::from(u32::MAX) } else { u64::MAX };
            }
        }
        let facts = old.facts.as_ref().and_then(|facts| self.facts(facts, new.facts.as_deref(), widening));
        if old.facts.is_some() != facts.is_some() {
            self.is_changed = true;
        }
        Symbol { max, facts }
    }

    /// What both know.
    fn facts(&mut self, old: &Facts, new: Option<&Facts>, widening: Widening) -> Option<Box<Facts>> {
        let new = new?;
        let weaker = |old: u64, new: u64| match widening {
            Widening::On if new < old => floor(new),
            _ => old.min(new),
        };
        let beyond = |table: u8| new.tables.iter().find(|(at, _)| *at == table).map_or(0, |(_, entries)| *entries);
        let tables = old.tables.iter().map(|&(table, entries)| (table, weaker(entries, beyond(table))));
        let both = |old: Option<u32>, new: Option<u32>| old.filter(|_| old == new);
        let calls = self.old.calls;
        let mut relation =
            |old: Option<Index>, new: Option<Index>| old.zip(new).map(|(old, new)| self.group((old, 0), (new, 0)));
        let facts = Facts {
            calls,
            memory: weaker(old.memory, new.memory),
            tables: tables.filter(|(_, entries)| *entries > 0).collect(),
            signature: both(old.signature, new.signature),
            callee: both(old.callee, new.callee),
            signature_of: relation(old.signature_of, new.signature_of),
            address_of: relation(old.address_of, new.address_of),
            low: relation(old.low, new.low),
            jump: old.jump.filter(|_| old.jump == new.jump),
        };
        if facts.memory != old.memory
            || facts.tables != old.tables
            || facts.signature != old.signature
            || facts.callee != old.callee
            || facts.signature_of.is_some() != old.signature_of.is_some()
            || facts.address_of.is_some() != old.address_of.is_some()
            || facts.low.is_some() != old.low.is_some()
            || facts.jump != old.jump
        {
            self.is_changed = true;
        }
        let nothing = Facts { calls: facts.calls, ..Facts::default() };
        (facts != nothing).then(|| Box::new(facts))
    }
}

/// The largest power of two that is not above a number, or zero: what gets weaker does so at most 65 times.
fn floor(number: u64) -> u64 {
    number.checked_ilog2().map_or(0, |power| 1 << power)
}

/// What is known of the sum of a symbol and an offset. Facts that have lapsed are left out.
fn shifted(state: &State, (symbol, offset): (Index, i64)) -> Symbol {
    let known = &state.symbols[symbol as usize];
    let mut facts = known.facts.as_deref().cloned();
    if let Some(facts) = facts.as_mut().filter(|facts| facts.calls != state.calls) {
        facts.memory = 0;
        facts.tables.clear();
    }
    // Zero plus an offset is a constant, which may be any number.
    let exact = if symbol == ZERO { Some(offset as u64) } else { None };
    let up = u64::try_from(offset).ok();
    let max = exact.or_else(|| up.and_then(|up| known.max.checked_add(up)));
    if offset != 0 {
        facts = facts.zip(up.filter(|_| max.is_some())).map(|(facts, up)| Facts {
            calls: facts.calls,
            memory: facts.memory.saturating_sub(up),
            tables: facts.tables.iter().map(|(table, entries)| (*table, entries.saturating_sub(up))).collect(),
            ..Facts::default()
        });
    }
    if let Some(facts) = &mut facts {
        facts.tables.retain(|(_, entries)| *entries > 0);
        // Only of an address and its function together something is known: the function may be gone.
        facts.calls = state.calls;
    }
    let nothing = Facts { calls: state.calls, ..Facts::default() };
    Symbol { max: max.unwrap_or(u64::MAX), facts: facts.filter(|facts| *facts != nothing).map(Box::new) }
}

/// Forgets symbols of which nothing is known, and which only one place has.
fn forget_trivial(state: &mut State) {
    let mut uses = alloc::vec![0u32; state.symbols.len()];
    let values = || state.registers.iter().chain(state.slots.iter().map(|(_, value)| value));
    for value in values().filter(|value| value.scale != 0) {
        uses[value.symbol as usize] += 1;
    }
    for facts in state.symbols.iter().filter_map(|symbol| symbol.facts.as_deref()) {
        for related in [facts.signature_of, facts.address_of, facts.low].into_iter().flatten() {
            uses[related as usize] += 1;
        }
    }
    let symbols = &state.symbols;
    let is_useless = |value: &Value| {
        value.base == Base::Zero
            && value.scale != 0
            && uses[value.symbol as usize] == 1
            && symbols[value.symbol as usize].is_trivial()
    };
    for register in state.registers.iter_mut().filter(|value| is_useless(value)) {
        *register = Value::UNKNOWN;
    }
    state.slots.retain(|(_, value)| !is_useless(value));
}
