//! Attacks on each function of the ABI by garbage arguments.

use alloc::format;
use alloc::vec::Vec;

use sip::Deadline;
use sip::process::EpitaphKind;

use crate::job::{attacker, citizen, stop};
use crate::{Body, Outcome, Settings, Test, check};

/// The tests of this module: one for each function of the table.
pub(crate) fn tests() -> Vec<Test> {
    let functions = sip::abi::FUNCTIONS;
    let test = |(number, function): (usize, &sip::abi::Function)| Test {
        name: format!("garbage: {}", function.name),
        body: Body::AbiFunction(garbage, number),
    };
    functions.iter().enumerate().map(test).collect()
}

/// Thousands of calls with garbage: at worst the caller ends, and not by a crash of its own.
fn garbage(_: &Settings, number: usize) -> Outcome {
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
