//! Runs hostile programs beside a victim and checks after each that the system is intact.
//!
//! A hostile program is one of `tests/hostile/run`: safe Rust, built and signed as every program is. After each
//! attempt the program must have ended as the table requires, the victim's canaries must be intact, no other process
//! may have ended, the machine must still serve, and nothing may leak. Key modules: `attempts` (the table), `ground`
//! (targets and services that must still work), `leftovers` (leak detection). Neighbours: `hostile-victim`.
//! Deliberately not here: attacks by programs with unsafe code (the conformance suite's), and on the protection by
//! services (`tests/services-check/adversary`).
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod attempt;
mod attempts;
mod fuzz;
mod ground;
mod leftovers;

use alloc::string::String;

use attempt::{Attempt, Machine};
use ground::Ground;
use sip::log;

sip::startup!();

/// Result of a check; an error is the reason.
pub(crate) type Outcome = Result<(), String>;

/// Fails with a formatted reason unless the condition holds.
macro_rules! check {
    ($condition:expr, $($reason:tt)+) => {
        if !$condition {
            return Err(alloc::format!($($reason)+));
        }
    };
}
pub(crate) use check;

/// Selects the attempts that run on machines of several sizes.
const MEMORY: &str = "memory";
/// Prefix of a request to run fuzzers instead.
const FUZZ: &str = "fuzz ";

/// Runs the attempts; the exit status is 1 if one failed.
pub fn main(startup: Startup) -> i32 {
    let (machine, only) = match startup.only.strip_prefix(MEMORY) {
        Some(rest) => (Machine::OfEachSize, rest.trim()),
        None => (Machine::Any, startup.only.as_str()),
    };
    let mut ground = match Ground::prepare(startup.namespace) {
        Ok(ground) => ground,
        Err(why) => {
            log!("test hostile: the ground is prepared ... FAILED: {why}");
            return 1;
        }
    };
    if let Some(request) = startup.only.strip_prefix(FUZZ) {
        return fuzz::run(request, &mut ground);
    }
    let (mut passed, mut failed) = (0, 0);
    for attempt in attempts::ALL.iter().filter(|attempt| attempt.machine == machine) {
        let name = attempt.name();
        if !name.contains(only) {
            continue;
        }
        let started = sip::time::monotonic();
        let outcome = run(attempt, &mut ground);
        let milliseconds = (sip::time::monotonic() - started) / 1_000_000;
        match outcome {
            Ok(()) => {
                passed += 1;
                log!("test {name} ... ok ({milliseconds} ms)");
            }
            Err(why) => {
                failed += 1;
                log!("test {name} ... FAILED: {why}");
                // Damage persists, and would be reported again after each of the others.
                if let Err(why) = ground.renew_victim() {
                    log!("test hostile: a new victim ... FAILED: {why}");
                    return 1;
                }
            }
        }
    }
    log!("{passed} passed, {failed} failed");
    i32::from(failed > 0 || (passed == 0 && only.is_empty()))
}

fn run(attempt: &Attempt, ground: &mut Ground) -> Outcome {
    let before = leftovers::Count::settled()?;
    let ended = attempt.run(ground);
    let unharmed = ground.is_unharmed();
    let serves = ground.serves();
    let back = before.wait_until_back();
    let alone = ground.nobody_else_ended();
    // Damage is more informative than the program's exit, and that more than leaks.
    unharmed.and(alone).and(ended).and(serves).and(back)
}
