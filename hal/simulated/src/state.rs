//! Everything of the machine that changes in a run, but the contexts of its processors.
//!
//! It is behind one lock, which is never contended, since one host thread runs all: it is released before the kernel is
//! called and before another processor goes on. Key type: [`State`]. Deliberately not here: calls of the kernel.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::choices::{Choices, Kind, mixed};
use crate::clock::Clock;
use crate::console::Console;
use crate::disk::Disk;
use crate::link::Link;
use crate::place::Place;
use crate::processors::Processors;
use crate::report::{End, Report};
use crate::requests::Pending;
use crate::stepping;
use crate::trace::{Entry, Trace};

/// Virtual time that a call or a preemption point takes, in nanoseconds.
const CALL_NS: u64 = 250;
/// Maximum jump of the wall clock, in nanoseconds: two hours.
const MAX_JUMP_NS: u64 = 7_200_000_000_000;

/// Maximum ABI calls of others while a processor stands still.
const MAX_STAND_CALLS: u64 = 256;

/// A disk, and where what it holds at the end goes.
#[derive(Debug)]
pub(crate) struct Drive {
    pub(crate) disk: Disk,
    pub(crate) left_at: Option<PathBuf>,
}

/// The state of a run.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) clock: Clock,
    pub(crate) processors: Processors,
    pub(crate) choices: Choices,
    pub(crate) trace: Trace,
    pub(crate) console: Console,
    pub(crate) drives: Vec<Drive>,
    /// The network card, if there is one.
    pub(crate) link: Option<Link>,
    /// Requests in flight, by the number of their event.
    pub(crate) pending: BTreeMap<u64, Pending>,
    /// Number of the next event.
    pub(crate) next_event: u64,
    pub(crate) calls: u64,
    /// Turns of spin loops since a call ended or a processor was idle.
    pub(crate) spins: u64,
    /// Random bytes drawn, in words.
    pub(crate) random_words: u64,
    pub(crate) seed: u64,
    /// Number of calls by program, as a hash of its name, and function.
    pub(crate) calls_by: BTreeMap<(u64, u32), u64>,
    /// Programs that faults ended: name and process id.
    pub(crate) killed: Vec<String>,
    /// When harmful faults end.
    pub(crate) calm_after_ns: u64,
    /// For how many calls the processor that is to be interrupted will stand still; 0: it will not.
    pub(crate) stand_calls: u64,
}

impl State {
    /// Adds an entry to the trace.
    pub(crate) fn note(&mut self, processor: usize, entry: Entry, words: &[u64]) {
        self.trace.add(self.clock.now_ns(), processor, entry, words);
    }

    /// Meets an opportunity for a fault, which is traced if it is used.
    pub(crate) fn fault(&mut self, processor: usize, kind: Kind) -> Option<u64> {
        let drawn = self.choices.fault(kind)?;
        let number = self.choices.used().last().map_or(0, |fault| fault.number);
        self.note(processor, Entry::Fault, &[kind as u64, number, drawn]);
        Some(drawn)
    }

    /// Lets the time of a call pass.
    pub(crate) fn pass(&mut self) {
        self.move_to(self.clock.now_ns() + CALL_NS);
    }

    /// Moves the time.
    pub(crate) fn move_to(&mut self, time_ns: u64) {
        self.clock.move_to(time_ns);
        if self.clock.now_ns() >= self.calm_after_ns {
            self.choices.calm_down();
        }
        stepping::set_now(self.clock.now_ns());
    }

    /// Makes the wall clock jump, perhaps.
    pub(crate) fn perhaps_jump(&mut self, processor: usize) {
        if let Some(drawn) = self.fault(processor, Kind::Clock) {
            let jump = (drawn >> 1) % MAX_JUMP_NS;
            let wall = self.clock.wall_ns();
            self.clock.set_wall_ns(if drawn & 1 == 0 { wall + jump } else { wall - jump });
        }
    }

    /// Decides whether a program ends at the end of a call. Of each program's calls of a function, the first, second, fourth,
    /// eighth and so on is an opportunity for a `kill-call`.
    pub(crate) fn ends(&mut self, processor: usize, program: &str, function: u32) -> bool {
        let count = self.calls_by.entry((Trace::of(program.as_bytes()), function)).or_default();
        *count += 1;
        let is_counted = count.is_power_of_two();
        let by_time = self.fault(processor, Kind::Kill).is_some();
        let by_function = is_counted && self.fault(processor, Kind::KillCall).is_some();
        by_time || by_function
    }

    /// Chooses another processor that can run: the one that stands still if there is no other.
    pub(crate) fn another_or_standing(&mut self, but: usize) -> Option<usize> {
        self.another(but).or_else(|| {
            self.processors.go_on();
            self.another(but)
        })
    }

    /// Chooses another processor that can run and does not stand still.
    pub(crate) fn another(&mut self, but: usize) -> Option<usize> {
        let others = self.processors.others(but, self.clock.now_ns());
        if others.is_empty() {
            return None;
        }
        let chosen = self.choices.below(others.len() as u64) as usize;
        Some(others[chosen])
    }

    /// Decides at the end of a call whether an interrupt at an instruction follows, and at which one.
    pub(crate) fn place(&mut self, processor: usize) -> Option<Place> {
        self.stand_calls = 0;
        let step = self.fault(processor, Kind::Step).map(Place::after_instructions);
        let kernel_step = self.fault(processor, Kind::KernelStep).map(Place::after_kernel_instructions);
        let now_ns = self.clock.now_ns();
        let can_race = !self.processors.others(processor, now_ns).is_empty();
        let race = can_race.then(|| self.fault(processor, Kind::Race)).flatten();
        if let (None, None, Some(drawn)) = (step, kernel_step, race) {
            self.stand_calls = 1 + (drawn >> 32) % MAX_STAND_CALLS;
        }
        step.or(kernel_step).or(race.map(Place::at_synchronization))
    }

    /// Lets a processor stand still for so many calls, and chooses who goes on.
    pub(crate) fn stand(&mut self, processor: usize, calls: u64) -> Option<usize> {
        let next = self.another_or_standing(processor)?;
        self.processors.stand(processor, self.calls + calls);
        Some(next)
    }

    /// Draws random bytes for programs.
    pub(crate) fn random(&mut self, bytes: usize) -> Vec<u8> {
        let mut drawn = Vec::with_capacity(bytes + 8);
        while drawn.len() < bytes {
            self.random_words += 1;
            drawn.extend(mixed(self.seed, u64::MAX, self.random_words).to_le_bytes());
        }
        drawn.truncate(bytes);
        drawn
    }

    /// Returns the result of the run so far.
    pub(crate) fn report(&self, end: End, status: u8) -> Report {
        Report {
            hash: self.trace.hash(),
            virtual_ns: self.clock.now_ns(),
            calls: self.calls,
            events: self.trace.entries(),
            end,
            status,
            faults: self.choices.used().to_vec(),
            killed: self.killed.clone(),
        }
    }
}
