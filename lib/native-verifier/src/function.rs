//! The fixpoint: a function is gone through, in the order of its addresses, until nothing changes.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use crate::convention::Convention;
use crate::decode::{Operation, Step, Target, decode};
use crate::join::{Widening, compacted, join};
use crate::module::{Environment, Part};
use crate::state::State;
use crate::step::Next;
use crate::{Place, Rule, Violation};

/// Size of a return address.
const RETURN_BYTES: i64 = 8;
/// Number of joins at a place after which facts are widened.
const PATIENT_JOINS: u8 = 3;
/// Units of work that a function of one instruction may take, and each instruction more.
const WORK: u64 = 100_000;
const WORK_OF_STEP: u64 = 2_000;
/// A state is compacted when it has this many symbols more than places.
const MAX_GARBAGE: usize = 256;

/// What the proof may cost: time that is bounded by the size of the function.
pub struct Budget {
    all: u64,
    left: u64,
}

impl Budget {
    pub fn of(steps: usize) -> Budget {
        let all = WORK + WORK_OF_STEP * steps as u64;
        Budget { all, left: all }
    }

    pub fn used(&self) -> u64 {
        self.all - self.left
    }

    fn take(&mut self, work: usize) -> Option<()> {
        self.left = self.left.checked_sub(work as u64)?;
        Some(())
    }
}

/// A function or entry that is verified.
pub struct Function<'a> {
    pub environment: &'a Environment<'a>,
    pub part: &'a Part,
    pub place: Place,
    pub convention: Convention,
    pub steps: Vec<Step>,
    /// The address behind it.
    pub end: u64,
}

/// What is known where several ways meet.
struct Meeting {
    /// Number of ways there, counted up to 2.
    ways: u8,
    joins: u8,
    known: Option<State>,
}

/// A function on its way to the fixpoint.
struct Work {
    meetings: Vec<Meeting>,
    to_do: BTreeSet<u32>,
}

impl<'a> Function<'a> {
    /// Decodes a function.
    pub fn decode(environment: &'a Environment<'a>, part: &'a Part, place: Place) -> Result<Function<'a>, Violation> {
        let range = environment.range(place);
        let module = environment.module;
        let text = module.text.get(range.clone()).unwrap_or_default();
        let convention = match place {
            Place::Function(index) => environment.convention_of(part, index),
            _ => None,
        };
        let steps = decode(text, module.text_address + range.start as u64).map_err(|address| Violation {
            place,
            address,
            rule: Rule::Instruction,
            why: "an instruction that is not known to be harmless",
        })?;
        Ok(Function {
            environment,
            part,
            place,
            convention: convention.unwrap_or(Convention { stack_bytes: 0, results_bytes: None }),
            steps,
            end: module.text_address + range.end as u64,
        })
    }

    /// The offset of the stack behind the return address and the function's own arguments.
    pub fn stack_end(&self) -> i64 {
        RETURN_BYTES + self.convention.stack_bytes
    }

    /// Proves that the function keeps all rules.
    pub fn verify(&self, budget: &mut Budget) -> Result<(), Violation> {
        let mut work = Work { meetings: self.meetings(), to_do: BTreeSet::new() };
        self.arrive(&mut work, 0, &self.initial(), budget)?;
        while let Some(index) = work.to_do.pop_first() {
            let known = work.meetings.get(index as usize).and_then(|meeting| meeting.known.clone());
            if let Some(state) = known {
                self.walk(&mut work, index, state, budget)?;
            }
        }
        Ok(())
    }

    /// Counts the ways to each step. One more goes to the first.
    fn meetings(&self) -> Vec<Meeting> {
        let mut ways = alloc::vec![0u8; self.steps.len()];
        let mut add = |index: usize| {
            if let Some(ways) = ways.get_mut(index) {
                *ways = ways.saturating_add(1).min(2);
            }
        };
        add(0);
        for (index, step) in self.steps.iter().enumerate() {
            let (falls, target) = match step.operation {
                Operation::Jump(Target::Step(to)) => (false, Some(to)),
                Operation::Branch { to: Target::Step(to), .. } => (true, Some(to)),
                Operation::Probe { after, .. } => (true, Some(after)),
                Operation::Jump(_) | Operation::JumpTo(_) | Operation::Return(_) | Operation::Trap => (false, None),
                _ => (true, None),
            };
            if falls {
                add(index + 1);
            }
            if let Some(target) = target {
                add(target as usize);
            }
        }
        ways.into_iter().map(|ways| Meeting { ways, joins: 0, known: None }).collect()
    }

    /// Goes on from a step until control leaves or ways meet.
    fn walk(&self, work: &mut Work, start: u32, mut state: State, budget: &mut Budget) -> Result<(), Violation> {
        let mut index = start;
        loop {
            let Some(step) = self.steps.get(index as usize) else {
                return Err(self.violation(index, (Rule::Jump, "control runs past the end of the function")));
            };
            budget.take(1).ok_or_else(|| self.exhausted(index))?;
            if state.symbols.len() > state.slots.len() + MAX_GARBAGE {
                budget.take(state.symbols.len()).ok_or_else(|| self.exhausted(index))?;
                let flags = state.flags;
                if flags.is_none() {
                    state = compacted(&state);
                }
            }
            match self.step(&mut state, &step.operation).map_err(|refusal| self.violation(index, refusal))? {
                Next::Ends => return Ok(()),
                Next::Falls => index += 1,
                Next::Jumps(to) => index = to,
                Next::Branches(to, condition) => {
                    if !self.is_trap(to) && state.may_hold(condition) {
                        let mut taken = state.clone();
                        taken.assume(condition);
                        budget.take(taken.slots.len()).ok_or_else(|| self.exhausted(index))?;
                        self.arrive(work, to, &taken, budget)?;
                    }
                    if !state.may_hold(condition.inverted()) {
                        return Ok(());
                    }
                    state.assume(condition.inverted());
                    index += 1;
                }
                Next::Selects(targets) => {
                    for to in targets {
                        if let Some(meeting) = work.meetings.get_mut(to as usize) {
                            meeting.ways = 2;
                        }
                        self.arrive(work, to, &state, budget)?;
                    }
                    return Ok(());
                }
            }
            if work.meetings.get(index as usize).is_some_and(|meeting| meeting.ways > 1) {
                return self.arrive(work, index, &state, budget);
            }
        }
    }

    fn is_trap(&self, index: u32) -> bool {
        self.steps.get(index as usize).is_some_and(|step| step.operation == Operation::Trap)
    }

    /// Control comes to a step with what is known.
    fn arrive(&self, work: &mut Work, index: u32, state: &State, budget: &mut Budget) -> Result<(), Violation> {
        if self.is_trap(index) {
            return Ok(());
        }
        budget.take(16 + state.slots.len() + state.symbols.len()).ok_or_else(|| self.exhausted(index))?;
        let Some(meeting) = work.meetings.get_mut(index as usize) else {
            return Err(self.violation(index, (Rule::Jump, "control runs past the end of the function")));
        };
        let known = match &meeting.known {
            Some(known) if meeting.ways > 1 => {
                let widening = if meeting.joins >= PATIENT_JOINS { Widening::On } else { Widening::Off };
                let (joined, is_changed) = join(known, state, widening);
                if !is_changed {
                    return Ok(());
                }
                meeting.joins = meeting.joins.saturating_add(1);
                joined
            }
            // What comes on the only way there replaces what came before.
            _ => compacted(state),
        };
        meeting.known = Some(known);
        work.to_do.insert(index);
        Ok(())
    }

    fn exhausted(&self, index: u32) -> Violation {
        self.violation(
            index,
            (Rule::Bound, "the function is too complex to be proven safe in the time that its size allows"),
        )
    }
}
