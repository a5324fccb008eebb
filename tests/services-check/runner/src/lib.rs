//! Checks the directory service and the service manager as their client, through channels alone.
//!
//! The system's resources are counted before and after each test; a leak is a failure. Key modules: `names`, `access`,
//! `providers` (the directory service), `services` (the service manager). Deliberately not here: the kernel's
//! invariants, which the conformance suite checks.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod access;
mod client;
mod names;
mod providers;
mod services;

use alloc::string::String;

use ::client::namespace::Namespace;
use resource_counts::Count;
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
pub(crate) type Test = (&'static str, fn(&mut Namespace) -> Outcome);

/// Runs the tests; the exit status is 1 if one failed.
pub fn main(startup: Startup) -> i32 {
    let mut namespace = Namespace::new(startup.namespace);
    let (mut passed, mut failed) = (0, 0);
    // A file system's caches after its first use are no leak. Without a disk there are none.
    let _ = namespace.names("/fs/disk0");
    let settled = services::settle(&mut namespace).and_then(|()| access::prepare(&mut namespace));
    if let Err(why) = settled {
        log!("test services: they settle ... FAILED: {why}");
        return 1;
    }
    let tests = names::TESTS.iter().chain(access::TESTS).chain(providers::TESTS).chain(services::TESTS);
    for (name, body) in tests.filter(|(name, _)| name.contains(startup.only.as_str())) {
        let started = sip::time::monotonic();
        let outcome = run(*body, &mut namespace);
        let milliseconds = (sip::time::monotonic() - started) / 1_000_000;
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
    }
    log!("{passed} passed, {failed} failed");
    i32::from(failed > 0 || (passed == 0 && startup.only.is_empty()))
}

fn run(body: fn(&mut Namespace) -> Outcome, namespace: &mut Namespace) -> Outcome {
    let before = Count::settled()?;
    // A fresh view for each test.
    let mut view = namespace.open_directory("").map_err(|error| alloc::format!("the namespace: {error}"))?;
    let outcome = body(&mut view);
    drop(view);
    // The test's own error is more informative than its leaks.
    let left = before.wait_until_back();
    outcome.and(left)
}
