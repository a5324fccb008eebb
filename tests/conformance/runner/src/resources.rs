//! Counts of the system's resources in use, to be equal before and after a test.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use sip::{Deadline, diagnostics, memory, process, thread};

/// Counters that a test must restore.
const COUNTED: [&str; 10] = [
    "processes",
    "threads",
    "channels",
    "blocks",
    "compound principals",
    "quarantined blocks",
    "synchronization objects",
    "pages",
    "exchange bytes",
    "stacks",
];

/// Counters that not every machine has.
const COUNTED_IF_THERE: &str = "hardware domains";
/// What the runner itself holds.
const OWN: [&str; 4] = ["own handles", "own endpoints", "own children", "own blocks"];

/// Timeout for the cleanup of a test's last thread.
const TIMEOUT_MS: u64 = 20_000;

/// Counters of what a program that has ended may give back later than its end is known.
const OF_ENDED: [&str; 3] = ["processes", "threads", "stacks"];

/// How much of [`OF_ENDED`] there is.
pub(crate) struct Running(Vec<u64>);

impl Running {
    /// Takes a count.
    pub(crate) fn now() -> Result<Running, String> {
        let counters = diagnostics::counters().map_err(|status| format!("the counters: {}", status.text()))?;
        let of_ended = counters.iter().filter(|record| OF_ENDED.contains(&diagnostics::name(&record.name).as_str()));
        Ok(Running(of_ended.map(|record| record.value).collect()))
    }

    /// Waits until programs that were started meanwhile, and have ended, have given back everything: a count that began
    /// earlier would have what they still hold in it.
    pub(crate) fn wait_until_back(&self) -> Result<(), String> {
        let deadline = Deadline::after_ms(TIMEOUT_MS);
        while Running::now()?.0.iter().zip(&self.0).any(|(now, before)| now > before) {
            if deadline.has_passed() {
                return Err("programs that have ended do not give back their threads".into());
            }
            thread::sleep(Deadline::after_ms(1));
        }
        Ok(())
    }
}

/// One count.
#[derive(PartialEq, Eq)]
pub(crate) struct Count(Vec<u64>);

impl Count {
    /// Takes a count.
    pub(crate) fn now() -> Result<Count, String> {
        let counters = diagnostics::counters().map_err(|status| format!("the counters: {}", status.text()))?;
        let own_pages = (memory::usage().used_bytes / 4096) as u64;
        let value = |name: &str| {
            let record = counters.iter().find(|record| diagnostics::name(&record.name) == name);
            let value = record.map(|record| record.value).ok_or_else(|| format!("there is no counter `{name}`"))?;
            // The runner's own heap may grow meanwhile.
            Ok(if name == "pages" { value - own_pages } else { value })
        };
        let mut counts = COUNTED.iter().map(|name| value(name)).collect::<Result<Vec<u64>, String>>()?;
        counts.push(value(COUNTED_IF_THERE).unwrap_or(0));
        counts.extend(own()?);
        Ok(Count(counts))
    }

    /// Waits until all counters are back at this count; the error lists the differences.
    pub(crate) fn wait_until_back(&self) -> Result<(), String> {
        let deadline = Deadline::after_ms(TIMEOUT_MS);
        loop {
            // After a shortage there may be no memory for a count yet.
            let now = Count::now();
            if now.as_ref() == Ok(self) {
                return Ok(());
            }
            if deadline.has_passed() {
                return Err(self.difference(&now?));
            }
            thread::sleep(Deadline::after_ms(1));
        }
    }

    fn difference(&self, now: &Count) -> String {
        let names = COUNTED.iter().chain([&COUNTED_IF_THERE]).chain(&OWN);
        let rows = names.zip(&self.0).zip(&now.0).filter(|((_, before), after)| before != after);
        let rows: Vec<String> = rows.map(|((name, before), after)| format!("{name}: {before} -> {after}")).collect();
        format!("not everything was given back: {}", rows.join(", "))
    }
}

/// What the runner itself holds, in the order of [`OWN`].
fn own() -> Result<[u64; 4], String> {
    let records = diagnostics::processes().map_err(|status| format!("the processes: {}", status.text()))?;
    let record = records.iter().find(|record| record.id == process::id()).ok_or("the runner is not listed")?;
    Ok([record.handles, record.endpoints, record.children, record.blocks])
}
