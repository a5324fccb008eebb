//! Very many processes simultaneously, and very many in sequence.

use alloc::string::ToString;
use alloc::vec::Vec;

use conformance_contract::errand;
use errand::ImpReadyAfterCall;
use sip::diagnostics;

use crate::job::{channel, citizen, end_of};
use crate::resources::Count;
use crate::{Outcome, Settings, Test, check, function};

const PROCESSES: usize = 10_000;
/// With hardware domains, of which a machine has 1,024.
const PROCESSES_IN_DOMAINS: usize = 900;
const CHANNELS_EACH: u64 = 9;
const IN_A_ROW: u64 = 20_000;
const IN_A_ROW_LONG: u64 = 1_000_000;

/// The tests of this module.
pub(crate) fn tests() -> Vec<Test> {
    alloc::vec![
        function("crowd: channels made and closed in a row", channels_in_a_row),
        function("crowd: processes in a row", processes_in_a_row),
        function("crowd: 10,000 processes with 100,000 channels at once", at_once),
    ]
}

fn channels_in_a_row(settings: &Settings) -> Outcome {
    let before = Count::now()?;
    for _ in 0..if settings.long { 5_000_000 } else { 200_000 } {
        drop(channel()?);
    }
    before.wait_until_back()
}

fn processes_in_a_row(settings: &Settings) -> Outcome {
    let count = if settings.long { IN_A_ROW_LONG } else { IN_A_ROW };
    let before = Count::now()?;
    for number in 0..count {
        let epitaph = citizen("exit").number(number % 100).run()?;
        check!(epitaph.status as u64 == number % 100, "process {number}: {epitaph}");
        if number % 10_000 == 9_999 {
            before.wait_until_back()?;
        }
    }
    Ok(())
}

fn at_once(settings: &Settings) -> Outcome {
    let processes = if settings.own_domains { PROCESSES_IN_DOMAINS } else { PROCESSES };
    let mut crowd = Vec::new();
    for number in 0..processes {
        let (importer, exporter) = channel()?;
        let child = citizen("hold-channels")
            .number(CHANNELS_EACH)
            .server(exporter)
            .start()
            .map_err(|why| alloc::format!("process {number}: {why}"))?;
        crowd.push((importer, child));
    }
    let mut asked = Vec::new();
    for (number, (importer, child)) in crowd.into_iter().enumerate() {
        asked.push((importer.call(number as u64), child));
    }
    let mut answered = Vec::new();
    for (number, (importer, child)) in asked.into_iter().enumerate() {
        let ImpReadyAfterCall::Answer { value, next } = importer.receive() else {
            return Err(alloc::format!("process {number} did not answer: {:?}", end_of(&child)));
        };
        check!(value == number as u64 + 1, "process {number} answered {value}");
        answered.push((next, child));
    }
    let counters = diagnostics::counters().map_err(|status| status.text().to_string())?;
    for (name, least) in [("processes", processes as u64), ("channels", processes as u64 * (CHANNELS_EACH + 1))] {
        let record = counters.iter().find(|record| diagnostics::name(&record.name) == name);
        let value = record.map_or(0, |record| record.value);
        check!(value >= least, "only {value} {name} are alive");
    }
    drop(counters);
    for (number, (importer, child)) in answered.into_iter().enumerate() {
        drop(importer);
        let epitaph = end_of(&child)?;
        check!(epitaph.is_success(), "process {number}: {epitaph}");
    }
    Ok(())
}
