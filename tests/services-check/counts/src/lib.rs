//! Counts of the system's resources in use, to be equal before and after a test.
//!
//! Key type: [`Count`]. Neighbours: the suites in the folders beside this one. Deliberately not here: resources within
//! a service.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use sip::{Deadline, diagnostics, thread};

/// Counters that a test must restore. Pages are not among them: the heaps of services never shrink.
const COUNTED: [&str; 6] = ["processes", "threads", "channels", "blocks", "synchronization objects", "exchange bytes"];

/// Timeout for services to release a test's resources.
const TIMEOUT_MS: u64 = 3000;

/// A count unchanged for this long is settled.
const SETTLE_MS: u64 = 5;

/// One count.
#[derive(PartialEq, Eq)]
pub struct Count(Vec<u64>);

impl Count {
    /// Takes a count.
    ///
    /// # Errors
    ///
    /// The system's counters cannot be read.
    pub fn now() -> Result<Count, String> {
        let counters = diagnostics::counters().map_err(|status| format!("the counters: {}", status.text()))?;
        let value = |name: &&str| {
            let record = counters.iter().find(|record| diagnostics::name(&record.name) == *name);
            record.map(|record| record.value).ok_or_else(|| format!("there is no counter `{name}`"))
        };
        COUNTED.iter().map(value).collect::<Result<_, String>>().map(Count)
    }

    /// Takes a count once nothing changes any more: services close their ends slightly after their clients.
    ///
    /// # Errors
    ///
    /// The system's counters cannot be read.
    pub fn settled() -> Result<Count, String> {
        let deadline = Deadline::after_ms(TIMEOUT_MS);
        let mut last = Count::now()?;
        loop {
            thread::sleep(Deadline::after_ms(SETTLE_MS));
            let now = Count::now()?;
            if now == last || deadline.has_passed() {
                return Ok(now);
            }
            last = now;
        }
    }

    /// Waits until all counters are back at this count.
    ///
    /// # Errors
    ///
    /// They are not in time; lists the differences.
    pub fn wait_until_back(&self) -> Result<(), String> {
        let deadline = Deadline::after_ms(TIMEOUT_MS);
        loop {
            let now = Count::now()?;
            if now == *self {
                return Ok(());
            }
            if deadline.has_passed() {
                let rows = COUNTED.iter().zip(&self.0).zip(&now.0).filter(|((_, before), after)| before != after);
                let rows: Vec<String> =
                    rows.map(|((name, before), after)| format!("{name}: {before} -> {after}")).collect();
                return Err(format!("not everything was given back: {}", rows.join(", ")));
            }
            thread::sleep(Deadline::after_ms(1));
        }
    }
}
