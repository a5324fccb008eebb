//! One attempt: a hostile program, its resources, and its required exit.

use alloc::format;
use alloc::string::{String, ToString};

use sip::Deadline;
use sip::process::{Child, Epitaph, EpitaphKind, StopReason, create};

use crate::ground::Ground;
use crate::{Outcome, check};

/// The parameter of every hostile program: number of the attempt.
const NUMBER_PARAMETER: usize = 0;
/// Its endpoint to the victim, if it declares one.
const VICTIM_SLOT: usize = 0;
/// Its endpoint to the namespace, after the one to the victim.
const NAMES_SLOT: usize = 1;
/// Timeout for a program to end; bare machines may be emulated.
const LIMIT_MS: u64 = 180_000;

/// An attempt of a hostile program.
pub(crate) struct Attempt {
    pub(crate) program: &'static str,
    pub(crate) number: u64,
    /// Short description of the attack.
    pub(crate) tries: &'static str,
    pub(crate) given: Given,
    pub(crate) end: End,
    pub(crate) machine: Machine,
}

/// Resources of a hostile program at start.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Given {
    Nothing,
    /// A conversation with the victim.
    Victim,
    /// The same, and the namespace.
    VictimAndNames,
}

/// Required exit of a hostile program.
#[derive(Clone, Copy)]
pub(crate) enum End {
    /// With exit status 0: its attack had no effect.
    Repelled,
    /// Ended by the system or its own panic, with an epitaph that contains all of these texts.
    Ended(EpitaphKind, &'static [&'static str]),
    /// It runs until it is killed after this time.
    StoppedAfter { milliseconds: u64 },
}

/// Machines on which an attempt is made.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Machine {
    /// On the machine shared by the other attempts.
    Any,
    /// On dedicated machines with several memory sizes.
    OfEachSize,
}

impl Attempt {
    /// An attack reported as ineffective by its own program.
    pub(crate) const fn repelled(program: &'static str, number: u64, tries: &'static str) -> Attempt {
        Attempt { program, number, tries, given: Given::Nothing, end: End::Repelled, machine: Machine::Any }
    }

    /// An attack that ends its program.
    pub(crate) const fn ends(self, kind: EpitaphKind, says: &'static [&'static str]) -> Attempt {
        Attempt { end: End::Ended(kind, says), ..self }
    }

    /// An attack that runs until it is killed.
    pub(crate) const fn stopped_after(self, milliseconds: u64) -> Attempt {
        Attempt { end: End::StoppedAfter { milliseconds }, ..self }
    }

    /// With endpoints.
    pub(crate) const fn given(self, given: Given) -> Attempt {
        Attempt { given, ..self }
    }

    /// On machines of several sizes of memory.
    pub(crate) const fn of_each_size(self) -> Attempt {
        Attempt { machine: Machine::OfEachSize, ..self }
    }

    /// The name in reports.
    pub(crate) fn name(&self) -> String {
        format!("{} {}: {}", self.program, self.number, self.tries)
    }

    /// Runs the program to its end.
    pub(crate) fn run(&self, ground: &mut Ground) -> Outcome {
        let child = self.start(ground)?;
        let limit = match self.end {
            End::StoppedAfter { milliseconds } => milliseconds,
            End::Repelled | End::Ended(..) => LIMIT_MS,
        };
        let epitaph = match child.wait_until(Deadline::after_ms(limit)) {
            Ok(epitaph) => epitaph,
            Err(_) => stop(&child)?,
        };
        self.judge(&epitaph)
    }

    fn start(&self, ground: &mut Ground) -> Result<Child, String> {
        let refused = |what: &'static str| move |status: sip::Status| format!("{what}: {}", status.text());
        let child = create(self.program).map_err(|error| format!("it cannot be created: {error}"))?;
        let mut child = child.invoke().map_err(refused("it cannot be invoked"))?;
        child = child.parameter(NUMBER_PARAMETER, &self.number.to_string()).map_err(refused("its number"))?;
        if self.given != Given::Nothing {
            child = child.endpoint(VICTIM_SLOT, ground.new_client()?).map_err(refused("its victim"))?;
        }
        if self.given == Given::VictimAndNames {
            child = child.endpoint(NAMES_SLOT, ground.new_names()?).map_err(refused("its namespace"))?;
        }
        child.start().map_err(refused("cannot start"))
    }

    fn judge(&self, epitaph: &Epitaph) -> Outcome {
        match self.end {
            End::Repelled => {
                check!(epitaph.kind == EpitaphKind::Exited, "it ended by {:?}: {epitaph}", epitaph.kind);
                check!(epitaph.status == 0, "its attack went through: exit status {}", epitaph.status);
            }
            End::Ended(kind, says) => {
                check!(epitaph.kind == kind, "it ended by {:?}, not {kind:?}: {epitaph}", epitaph.kind);
                for part in says {
                    check!(epitaph.text.contains(part), "its epitaph does not say `{part}`: {epitaph}");
                }
            }
            End::StoppedAfter { .. } => {
                check!(epitaph.kind == EpitaphKind::Stopped, "it ended before it was stopped: {epitaph}");
            }
        }
        Ok(())
    }
}

fn stop(child: &Child) -> Result<Epitaph, String> {
    child.stop(StopReason::Requested).map_err(|status| format!("it cannot be stopped: {}", status.text()))?;
    child
        .wait_until(Deadline::after_ms(LIMIT_MS))
        .map_err(|status| format!("it was stopped and has not ended: {}", status.text()))
}
