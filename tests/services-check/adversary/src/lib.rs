//! Starts intruders, and checks that each is refused and that its only effect is its line in the audit ring.
//!
//! An intruder has the rights of most programs: it is invoked as by the shell, gets the namespace, and the system
//! manifest lets it reach some things. Key modules: `attacks` (the attacks and their audit lines), `ground` (their
//! targets), `smuggling` (packages that must not be installed), `ring` (reads `/status/audit`). Neighbours: the
//! program `intruder`, which attacks, and `resource-counts`, which checks for leaks. Deliberately not here: refusals
//! of single kernel calls; those are in the conformance suite.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod attacks;
mod ground;
mod ring;
mod smuggling;

use alloc::string::String;

use client::namespace::Namespace;
use resource_counts::Count;
use sip::log;

sip::startup!();

/// Result of a test; an error is the reason.
pub(crate) type Outcome = Result<(), String>;

/// Fails the test with a formatted reason unless the condition holds.
macro_rules! check {
    ($condition:expr, $($reason:tt)+) => {
        if !$condition {
            return Err(alloc::format!($($reason)+));
        }
    };
}
pub(crate) use check;

/// Runs the attacks; the exit status is 1 if one succeeded.
pub fn main(startup: Startup) -> i32 {
    let mut namespace = Namespace::new(startup.namespace);
    if let Err(why) = ground::prepare(&mut namespace) {
        log!("test adversary: what is attacked is there ... FAILED: {why}");
        return 1;
    }
    let (mut passed, mut failed) = (0, 0);
    for attack in attacks::ALL.iter().filter(|attack| attack.name.contains(startup.only.as_str())) {
        let started = sip::time::monotonic();
        let outcome = run(attack, &mut namespace);
        let milliseconds = (sip::time::monotonic() - started) / 1_000_000;
        match outcome {
            Ok(()) => {
                passed += 1;
                log!("test adversary: {} ... ok ({milliseconds} ms)", attack.name);
            }
            Err(why) => {
                failed += 1;
                log!("test adversary: {} ... FAILED: {why}", attack.name);
            }
        }
    }
    log!("{passed} passed, {failed} failed");
    i32::from(failed > 0 || (passed == 0 && startup.only.is_empty()))
}

fn run(attack: &attacks::Attack, namespace: &mut Namespace) -> Outcome {
    let before = Count::settled()?;
    let lines = ring::Ring::read(namespace)?;
    let repelled = attacks::send(attack, namespace);
    let noted = ring::Ring::read(namespace).and_then(|now| now.has_more_than(&lines, attack.lines));
    let unharmed = ground::is_unharmed(namespace);
    // A successful attack is more informative than its leaks.
    repelled.and(noted).and(unharmed).and_then(|()| before.wait_until_back())
}
