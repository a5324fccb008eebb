//! Memory exhaustion on a small machine: the program that took the memory ends, and no other.

use alloc::string::String;
use alloc::vec::Vec;

use sip::process::Child;
use sip::{Deadline, Status, thread};

use crate::job::{citizen, end_of};
use crate::{Outcome, Settings, Test, check, function};

/// Memory of ended programs is freed in steps, so it may stay low for a moment.
const FREED_WITHIN_MS: u64 = 5_000;

/// The tests of this module.
pub(crate) fn tests() -> Vec<Test> {
    alloc::vec![
        function("shortage: a program takes memory without end", |_| hoarder(0)),
        function("shortage: a program takes blocks without end", |_| hoarder(1)),
        function("shortage: a program fills channels without end", |_| hoarder(2)),
        function("shortage: a program starts programs without end", |_| hoarder(3)),
        function("shortage: all of them at once", all_at_once),
    ]
}

fn hoarder(number: u64) -> Outcome {
    for _ in 0..3 {
        succeeds("launch", number)?;
    }
    is_as_it_was()
}

/// The system is back at its baseline, once ended programs are freed.
fn is_as_it_was() -> Outcome {
    let deadline = Deadline::after_ms(FREED_WITHIN_MS);
    loop {
        let epitaph = end_of(&started("join", 0)?)?;
        if epitaph.is_success() {
            return Ok(());
        }
        check!(epitaph.text.contains("Exhausted") && !deadline.has_passed(), "join: {epitaph}");
        thread::sleep(Deadline::after_ms(10));
    }
}

fn succeeds(act: &str, number: u64) -> Outcome {
    let epitaph = end_of(&started(act, number)?)?;
    check!(epitaph.is_success(), "{act}: {epitaph}");
    Ok(())
}

/// Starts an act once there is memory for it.
fn started(act: &str, number: u64) -> Result<Child, String> {
    let deadline = Deadline::after_ms(FREED_WITHIN_MS);
    loop {
        match citizen(act).number(number).start() {
            Err(refused) if refused.contains(Status::Exhausted.text()) && !deadline.has_passed() => {
                thread::sleep(Deadline::after_ms(10));
            }
            outcome => return outcome,
        }
    }
}

fn all_at_once(_: &Settings) -> Outcome {
    let launchers: Vec<_> = (4..8).map(|number| citizen("launch").number(number).start()).collect::<Result<_, _>>()?;
    for launcher in &launchers {
        let epitaph = crate::job::end_of(launcher)?;
        check!(epitaph.is_success(), "{epitaph}");
    }
    Ok(())
}
