//! The conformance suite: checks the system's invariants from inside, as the root of a system.
//!
//! Each test starts other programs, the safe citizen and the unsafe attacker, and checks how they end and their
//! effects on others. The system's resources are counted before and after each test; a leak is a failure. Deliberately
//! not here: anything visible only to the host (page protections, the host's memory), and the misbehaviour itself.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod accounts;
mod attacks;
mod copies;
mod crowds;
mod domains;
mod endings;
mod hardware;
mod host_calls;
mod installing;
mod job;
mod kills;
mod latency;
mod lifecycle;
mod loans;
mod messages;
mod principals;
mod resources;
mod scheduling;
mod shortage;
mod stream;

use alloc::string::String;
use alloc::vec::Vec;

use sip::log;

sip::startup!();

/// Fails the test with a formatted reason unless the condition holds.
macro_rules! check {
    ($condition:expr, $($reason:tt)+) => {
        if !$condition {
            return Err(alloc::format!($($reason)+));
        }
    };
}
pub(crate) use check;

/// Result of a test; an error is the reason.
pub(crate) type Outcome = Result<(), String>;

/// A test by name.
pub(crate) struct Test {
    name: String,
    body: Body,
}

/// Kind of a test.
pub(crate) enum Body {
    /// Runs a function.
    Function(fn(&Settings) -> Outcome),
    /// Starts a program and checks its exit.
    Ending(&'static endings::Ending),
    /// Attacks one ABI function, by its number in the table.
    AbiFunction(fn(&Settings, usize) -> Outcome, usize),
    /// Kills while blocks of this size cross, given or lent.
    Copies(fn(&Settings, u64) -> Outcome, u64),
}

/// Settings of the suite.
pub(crate) struct Settings {
    /// Whether long tests run in full.
    long: bool,
    /// Whether the programs run in hardware domains that contain any code.
    domains: bool,
    /// Whether each process has a domain of its own, of whatever kind.
    own_domains: bool,
    /// Kills in each ABI function and each kind of copy.
    kills: u64,
}

/// Runs the tests; the exit status is 1 if one failed.
pub fn main(startup: Startup) -> i32 {
    let kills = startup.kills.unsigned_abs();
    let settings = Settings { long: startup.long, domains: startup.domains, own_domains: startup.own_domains, kills };
    let (mut passed, mut failed) = (0, 0);
    // The first start of each program maps its image and registers its contracts, which persist.
    let running = resources::Running::now();
    endings::load_programs();
    if let Err(why) = running.and_then(|running| running.wait_until_back()) {
        log!("FAILED: {why}");
        return 1;
    }
    let all = [
        endings::tests(),
        lifecycle::tests(),
        messages::tests(),
        loans::tests(),
        principals::tests(),
        attacks::tests(),
        kills::tests(),
        copies::tests(),
        accounts::tests(),
        stream::tests(),
        scheduling::tests(),
        crowds::tests(),
        hardware::tests(),
        host_calls::tests(),
        domains::tests(&settings),
        installing::tests(),
    ];
    // If memory is short, most of the other tests would report only that.
    let groups: Vec<Vec<Test>> = if startup.short_of_memory { alloc::vec![shortage::tests()] } else { all.into() };
    for test in groups.into_iter().flatten().filter(|test| test.name.contains(startup.only.as_str())) {
        let started = sip::time::monotonic();
        let outcome = run(&test, &settings);
        let milliseconds = (sip::time::monotonic() - started) / 1_000_000;
        match outcome {
            Ok(()) => {
                passed += 1;
                log!("test {} ... ok ({milliseconds} ms)", test.name);
            }
            Err(why) => {
                failed += 1;
                log!("test {} ... FAILED: {why}", test.name);
            }
        }
    }
    for line in latency::longest() {
        log!("{line}");
    }
    log!("{passed} passed, {failed} failed");
    // A suite without tests is broken, unless a name filter excluded them all.
    i32::from(failed > 0 || (passed == 0 && startup.only.is_empty()))
}

fn run(test: &Test, settings: &Settings) -> Outcome {
    let before = resources::Count::now()?;
    let outcome = match test.body {
        Body::Function(function) => function(settings),
        Body::Ending(ending) => ending.check(),
        Body::AbiFunction(function, number) => function(settings, number),
        Body::Copies(function, number) => function(settings, number),
    };
    // The test's own error is more informative than its leaks.
    let left = before.wait_until_back();
    outcome.and(left)
}

pub(crate) fn function(name: &str, body: fn(&Settings) -> Outcome) -> Test {
    Test { name: name.into(), body: Body::Function(body) }
}
