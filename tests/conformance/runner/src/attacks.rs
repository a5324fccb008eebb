//! Attacks on each function of the ABI: garbage arguments, and kills in the middle of it.

use alloc::format;
use alloc::vec::Vec;

use sip::process::{EpitaphKind, StopReason};
use sip::{Deadline, thread};

use crate::job::{attacker, citizen, end_of, stop};
use crate::{Body, Outcome, Test, check};

/// Processes that are killed in each function.
const KILLED: u64 = 8;

/// The tests of this module: two for each function of the table.
pub(crate) fn tests() -> Vec<Test> {
    let functions = sip::abi::FUNCTIONS;
    let garbage = functions.iter().enumerate().map(|(number, function)| Test {
        name: format!("garbage: {}", function.name),
        body: Body::AbiFunction(garbage, number),
    });
    let killed = functions.iter().enumerate().map(|(number, function)| Test {
        name: format!("killed in: {}", function.name),
        body: Body::AbiFunction(killed, number),
    });
    garbage.chain(killed).collect()
}

/// Thousands of calls with garbage: at worst the caller ends, and not by a crash of its own.
fn garbage(number: usize) -> Outcome {
    for seed in 0..2u64 {
        let child = attacker("garbage").number(number as u64 | seed << 32).start()?;
        // It may wait forever in a blocking function: that is no error.
        let epitaph = match child.wait_until(Deadline::after_ms(200)) {
            Ok(epitaph) => epitaph,
            Err(_) => stop(&child)?,
        };
        let legitimate =
            [EpitaphKind::Exited, EpitaphKind::Panicked, EpitaphKind::ContractViolation, EpitaphKind::Stopped];
        check!(legitimate.contains(&epitaph.kind), "it ended by {:?}: {epitaph}", epitaph.kind);
        let own_panic = epitaph.kind == EpitaphKind::Panicked && epitaph.text.contains("panicked at");
        check!(!own_panic, "{epitaph}");
    }
    // The system is back at its baseline.
    citizen("join").succeed()
}

/// Processes that call a function forever, with two threads, are stopped at arbitrary moments.
fn killed(number: usize) -> Outcome {
    for round in 0..KILLED {
        let child = attacker("call-for-ever").number(number as u64).start()?;
        thread::sleep(Deadline::after_ns(round * round * 37_000));
        child.stop(StopReason::Requested).map_err(|status| format!("it cannot be stopped: {}", status.text()))?;
        let epitaph = end_of(&child)?;
        let own_panic = epitaph.kind == EpitaphKind::Panicked && epitaph.text.contains("panicked at");
        check!(!own_panic && epitaph.kind != EpitaphKind::Faulted, "it ended otherwise: {:?}, {epitaph}", epitaph.kind);
    }
    Ok(())
}
