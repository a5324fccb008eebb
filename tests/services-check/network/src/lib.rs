//! Checks a network stack through its contracts alone, as client and server of itself over the loopback.
//!
//! The system's resources are counted before and after each test; a test that does not return to its baseline fails.
//! Key modules: `connections`, `datagrams` (normal operation), `deaths` (clients that end midway), `restarts` (a stack
//! that does), `rules` (refusals by the system manifest), `crowds` (no sockets left), `failures` (sockets that fail).
//! Neighbours: `ends` (both ends of a connection). Deliberately not here: which stack it is.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod connections;
mod crowds;
mod datagrams;
mod deaths;
mod ends;
mod failures;
mod resources;
mod restarts;
mod rules;

use alloc::string::String;

use client::namespace::Namespace;
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

/// Receives an endpoint's next message. The test fails on a timeout.
macro_rules! answer {
    ($endpoint:expr) => {
        match $endpoint.receive_by(sip::Deadline::after_ms($crate::ends::TIMEOUT_MS)) {
            Ok(event) => event,
            // Converts to the function's error type.
            Err(_) => {
                Err(alloc::format!("no answer within {} s at line {}", $crate::ends::TIMEOUT_MS / 1000, line!()))?
            }
        }
    };
}
pub(crate) use answer;

/// Result of a test; an error is the reason.
pub(crate) type Outcome = Result<(), String>;

/// A test by name.
pub(crate) type Test = (&'static str, fn(&mut Namespace) -> Outcome);

/// The tests of a machine that has few sockets.
const CROWDED: &str = "crowded";
/// Tests with intermittent socket failures; the number of rounds follows.
const FAILING: &str = "failing";
const SOME_ROUNDS: u32 = 100;

/// Runs the tests; the exit status is 1 if one failed.
pub fn main(startup: Startup) -> i32 {
    let mut namespace = Namespace::new(startup.namespace);
    let (mut passed, mut failed) = (0, 0);
    let mut report = |name: &str, started_ns: u64, outcome: Outcome| {
        let milliseconds = (sip::time::monotonic() - started_ns) / 1_000_000;
        match outcome {
            Ok(()) => {
                passed += 1;
                log!("test {name} ... ok ({milliseconds} ms)");
            }
            Err(why) => {
                failed += 1;
                log!("test {name} ... FAILED: {why}");
            }
        }
    };
    let begun = sip::time::monotonic();
    let settled = ends::settle(&mut namespace);
    if let Some(rounds) = startup.only.strip_prefix(FAILING) {
        let rounds = rounds.trim().parse().unwrap_or(SOME_ROUNDS);
        report("network: what fails is told, and nothing is kept", begun, failures::rounds(&mut namespace, rounds));
    } else if let Err(why) = settled {
        report("network: it is there", begun, Err(why));
    } else {
        let tests: &[&[Test]] = match startup.only.as_str() {
            CROWDED => &[crowds::TESTS],
            _ => &[connections::TESTS, datagrams::TESTS, deaths::TESTS, restarts::TESTS, rules::TESTS],
        };
        let chosen = |test: &&Test| startup.only == CROWDED || test.0.contains(startup.only.as_str());
        for (name, body) in tests.iter().copied().flatten().filter(chosen) {
            let started = sip::time::monotonic();
            report(name, started, run(*body, &mut namespace));
        }
    }
    log!("{passed} passed, {failed} failed");
    i32::from(failed > 0 || (passed == 0 && startup.only.is_empty()))
}

fn run(body: fn(&mut Namespace) -> Outcome, namespace: &mut Namespace) -> Outcome {
    let before = resources::Count::settled(namespace)?;
    let outcome = body(namespace);
    // The test's own error is more informative than its leaks.
    let left = before.wait_until_back(namespace);
    outcome.and(left)
}
