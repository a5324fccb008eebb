//! The decisions of a run: what happens by chance, and the list of what happened.
//!
//! Each kind of fault has opportunities, numbered from 0 as a run meets them. Whether one is used is a function of seed,
//! kind and number alone, so leaving one fault out does not move the others. Key types: [`Choices`], [`Fault`]. The
//! generator is ours because a seed must mean the same run for ever, whichever version a library has. Deliberately not
//! here: what a fault does.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::str::FromStr;

/// Kinds of faults, and of scheduling decisions, which are left out in the same way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(usize)]
pub enum Kind {
    /// The quantum expires at the end of an ABI call.
    Preempt,
    /// A program, or the kernel, is interrupted some instructions after an ABI call.
    Step,
    /// Another processor goes on at the end of an ABI call.
    Switch,
    /// A disk takes long for a request, so that later ones overtake it.
    Delay,
    /// A disk fails a read.
    ReadError,
    /// A disk fails a write, of which nothing is written.
    WriteError,
    /// The power fails at a disk request.
    Cut,
    /// A program is ended at the end of an ABI call.
    Kill,
    /// The wall clock jumps.
    Clock,
    /// A program is ended at the end of an ABI call, by function: rare calls are as likely as frequent ones.
    KillCall,
    /// There are no pages for a program, although memory is free.
    Memory,
    /// The kernel is interrupted some of its own instructions after an ABI call, and another processor goes on.
    KernelStep,
    /// The kernel is interrupted at an instruction by which processors synchronize, or just after one, and stands still there
    /// while others go on.
    Race,
}

/// All kinds, with their names and how many opportunities there are for each that is used, on average.
const KINDS: [(Kind, &str, u64); 13] = [
    (Kind::Preempt, "preempt", 64),
    (Kind::Step, "step", 250),
    (Kind::Switch, "switch", 16),
    (Kind::Delay, "delay", 12),
    (Kind::ReadError, "read-error", 400),
    (Kind::WriteError, "write-error", 400),
    (Kind::Cut, "cut", 150),
    (Kind::Kill, "kill", 4_000),
    (Kind::Clock, "clock", 3_000),
    (Kind::KillCall, "kill-call", 250),
    (Kind::Memory, "memory", 500),
    (Kind::KernelStep, "kernel-step", 250),
    (Kind::Race, "race", 16),
];

impl Kind {
    /// Whether programs may notice it, so that a system needs calm to recover.
    fn is_harmful(self) -> bool {
        !matches!(self, Kind::KernelStep | Kind::Race) && !Kind::HARMLESS.contains(&self)
    }

    /// The default: kinds that a correct system survives without anybody noticing, but for `kernel-step` and
    /// `race`, which take time.
    pub const HARMLESS: [Kind; 4] = [Kind::Preempt, Kind::Step, Kind::Switch, Kind::Delay];

    /// Returns all kinds.
    pub fn all() -> impl Iterator<Item = Kind> {
        KINDS.into_iter().map(|(kind, ..)| kind)
    }

    /// Returns its name.
    pub fn name(self) -> &'static str {
        KINDS[self as usize].1
    }
}

impl FromStr for Kind {
    type Err = String;

    fn from_str(text: &str) -> Result<Kind, String> {
        let found = KINDS.into_iter().find(|(_, name, _)| *name == text).map(|(kind, ..)| kind);
        let names = || KINDS.map(|(_, name, _)| name).join(", ");
        found.ok_or_else(|| format!("there is no fault {text:?}; the faults are {}", names()))
    }
}

/// One fault of a run: a used opportunity. Written as `kill:17`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Fault {
    /// Its kind.
    pub kind: Kind,
    /// Number of the opportunity.
    pub number: u64,
}

impl fmt::Display for Fault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:{}", self.kind.name(), self.number)
    }
}

impl FromStr for Fault {
    type Err = String;

    fn from_str(text: &str) -> Result<Fault, String> {
        let (kind, number) = text.split_once(':').ok_or_else(|| format!("write the fault {text:?} as KIND:NUMBER"))?;
        let number = number.parse().map_err(|_| format!("{number:?} is no number of an opportunity"))?;
        Ok(Fault { kind: kind.parse()?, number })
    }
}

/// Kinds of faults, each with how many opportunities there are for one that is used, on average. Written as
/// `kill/500,delay`; `all` and `none` are all and no kinds, and `harmless` those of [`Kind::HARMLESS`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Kinds(BTreeMap<Kind, u64>);

impl FromStr for Kinds {
    type Err = String;

    fn from_str(text: &str) -> Result<Kinds, String> {
        let mut kinds = BTreeMap::new();
        for word in text.split(',').filter(|word| !word.is_empty()) {
            let (name, every) = word.split_once('/').map_or((word, None), |(name, every)| (name, Some(every)));
            let group: Vec<Kind> = match name {
                "all" => Kind::all().collect(),
                "harmless" => Kind::HARMLESS.into(),
                "none" => Vec::new(),
                name => vec![name.parse()?],
            };
            for kind in group {
                let every = match every {
                    None => KINDS[kind as usize].2,
                    Some(every) => every
                        .parse()
                        .ok()
                        .filter(|&every| every > 0)
                        .ok_or_else(|| format!("{every:?} is no number of opportunities"))?,
                };
                kinds.insert(kind, every);
            }
        }
        Ok(Kinds(kinds))
    }
}

/// Which faults a run may have.
#[derive(Clone, Debug)]
pub enum Plan {
    /// Those that the seed selects.
    Kinds(Kinds),
    /// These and no others.
    Exactly(BTreeSet<Fault>),
}

/// The decisions of a run.
#[derive(Debug)]
pub struct Choices {
    seed: u64,
    plan: Plan,
    /// Opportunities met, by kind.
    met: [u64; KINDS.len()],
    /// Draws of numbers that are no fault.
    draws: u64,
    /// Whether harmful faults are over.
    is_calm: bool,
    used: Vec<Fault>,
}

/// Separates the draws from the decisions.
const DRAWS: u64 = 0x6472_6177;

impl Choices {
    /// Starts the decisions of a seed.
    pub fn new(seed: u64, plan: Plan) -> Choices {
        Choices { seed, plan, met: [0; KINDS.len()], draws: 0, is_calm: false, used: Vec::new() }
    }

    /// Meets an opportunity. If it is used, returns a number from which the fault takes its details.
    pub fn fault(&mut self, kind: Kind) -> Option<u64> {
        let number = self.met[kind as usize];
        self.met[kind as usize] += 1;
        let drawn = mixed(self.seed, kind as u64 + 1, number);
        let fault = Fault { kind, number };
        let is_used = !(self.is_calm && kind.is_harmful())
            && match &self.plan {
                Plan::Kinds(Kinds(kinds)) => kinds.get(&kind).is_some_and(|&every| drawn.is_multiple_of(every)),
                Plan::Exactly(faults) => faults.contains(&fault),
            };
        is_used.then(|| {
            self.used.push(fault);
            mixed(self.seed, drawn, number)
        })
    }

    /// Ends the harmful faults: from now on opportunities for them are met and not used.
    pub fn calm_down(&mut self) {
        self.is_calm = true;
    }

    /// Draws a number below `end`, which is not 0.
    pub fn below(&mut self, end: u64) -> u64 {
        self.draws += 1;
        mixed(self.seed, DRAWS, self.draws) % end
    }

    /// Returns the faults so far.
    pub fn used(&self) -> &[Fault] {
        &self.used
    }
}

/// A number that looks random, of three: the output function of SplitMix64 (Steele and others, 2014) over their sum.
pub fn mixed(seed: u64, stream: u64, number: u64) -> u64 {
    let mut word = seed
        .wrapping_mul(0x9e37_79b9_7f4a_7c15)
        .wrapping_add(finished(stream.wrapping_add(0x9e37_79b9_7f4a_7c15)))
        .wrapping_add(number.wrapping_mul(0xd134_2543_de82_ef95));
    word = finished(word);
    finished(word.wrapping_add(0x9e37_79b9_7f4a_7c15))
}

fn finished(mut word: u64) -> u64 {
    word = (word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ word >> 31
}

#[cfg(test)]
mod tests {
    use super::*;

    fn used(plan: Plan, kind: Kind, count: usize) -> Vec<Fault> {
        let mut choices = Choices::new(7, plan);
        for _ in 0..count {
            choices.fault(kind);
        }
        choices.used().to_vec()
    }

    #[test]
    fn kinds_are_in_the_order_of_their_numbers() {
        assert!(Kind::all().enumerate().all(|(number, kind)| kind as usize == number));
    }

    #[test]
    fn a_fault_is_used_about_as_often_as_it_says() {
        for (kind, _, every) in KINDS {
            let count = 200 * every as usize;
            let used = used(Plan::Kinds("all".parse().expect("a group")), kind, count).len();
            assert!((100..300).contains(&used), "{}: {used}", kind.name());
        }
    }

    #[test]
    fn the_faults_of_a_run_given_one_by_one_are_the_same() {
        let chosen = used(Plan::Kinds("preempt".parse().expect("a kind")), Kind::Preempt, 1000);
        assert!(!chosen.is_empty());
        let mut fewer: BTreeSet<Fault> = chosen.iter().copied().collect();
        assert_eq!(used(Plan::Exactly(fewer.clone()), Kind::Preempt, 1000), chosen);
        fewer.pop_first();
        assert_eq!(used(Plan::Exactly(fewer), Kind::Preempt, 1000), chosen[1..]);
    }

    #[test]
    fn kinds_may_be_as_frequent_as_asked() {
        let kinds = |text: &str| text.parse::<Kinds>();
        assert_eq!(kinds("none"), Ok(Kinds::default()));
        assert_eq!(kinds("all").map(|Kinds(all)| all.len()), Ok(KINDS.len()));
        let expected = [(Kind::Cut, 9), (Kind::Kill, KINDS[Kind::Kill as usize].2)].into();
        assert_eq!(kinds("cut/9,kill"), Ok(Kinds(expected)));
        for bad in ["rain", "cut/0", "cut/x", "rain/3"] {
            assert!(kinds(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_fault_is_written_and_read() {
        let fault = Fault { kind: Kind::ReadError, number: 12 };
        assert_eq!(fault.to_string(), "read-error:12");
        assert_eq!(fault.to_string().parse(), Ok(fault));
        for bad in ["x:1", "kill", "kill:", "kill:-1"] {
            assert!(bad.parse::<Fault>().is_err(), "{bad}");
        }
    }
}
