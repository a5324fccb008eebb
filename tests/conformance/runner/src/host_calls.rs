//! Host system calls of a program that escaped the language, on a machine that is a process.
//!
//! On a confined machine each call ends the program. On an unconfined one each works, which proves that these tests
//! can fail. Other machines have no host.

use alloc::format;

use sip::diagnostics::{counters, name};
use sip::log;
use sip::process::EpitaphKind;

use crate::job::attacker;
use crate::{Outcome, Settings, Test, check, function};

/// The attacker's calls, by number.
const CALLS: [&str; 14] = [
    "ask for the process's number",
    "open a file",
    "open a file below a folder",
    "make a file",
    "execute a program",
    "start a process",
    "open a connection",
    "talk to the host's services",
    "signal the process that started the machine",
    "trace a process",
    "get memory to write and execute",
    "make memory executable",
    "remove a file",
    "ask for the user",
];

/// The tests of this module.
pub(crate) fn tests() -> alloc::vec::Vec<Test> {
    alloc::vec![function("host: a program that broke out can open no file and start no program", break_out)]
}

/// System calls that the machine's process may make, 0 for all; none without a host.
pub(crate) fn calls_allowed() -> Result<Option<u64>, alloc::string::String> {
    let counters = counters().map_err(|status| format!("no counters: {}", status.text()))?;
    Ok(counters.iter().find(|counter| name(&counter.name) == "host calls allowed").map(|counter| counter.value))
}

fn break_out(_: &Settings) -> Outcome {
    let Some(allowed) = calls_allowed()? else { return Ok(()) };
    let mut could = 0;
    for (number, what) in (0..).zip(CALLS) {
        let epitaph = attacker("host-call").number(number).run()?;
        if allowed > 0 {
            let is_ended =
                epitaph.kind == EpitaphKind::Faulted && epitaph.text.contains("made a system call of the host");
            check!(is_ended, "it tried to {what} and ended otherwise: {epitaph}");
        } else {
            let worked = epitaph.kind == EpitaphKind::Exited && epitaph.status == 0;
            check!(worked, "nothing confines it, but it could not {what}: {epitaph}");
            could += 1;
        }
    }
    log!("{} of {} system calls were refused", CALLS.len() - could, CALLS.len());
    Ok(())
}
