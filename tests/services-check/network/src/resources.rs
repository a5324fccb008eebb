//! Resource counts of the system and its network stack, which a test must restore.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use client::namespace::Namespace;
use network::ip::IpStack;
use sip::{Deadline, diagnostics, thread};

/// Counters that a test must restore. Pages are not among them: the heaps of services never shrink.
const COUNTED: [&str; 6] = ["processes", "threads", "channels", "blocks", "synchronization objects", "exchange bytes"];
/// Timeout for the stack to release a test's resources.
const TIMEOUT_MS: u64 = 5000;
/// A count unchanged for this long is settled.
const SETTLE_MS: u64 = 5;

/// One count: the system's counters, and the stack's sockets.
#[derive(PartialEq, Eq)]
pub(crate) struct Count(Vec<u64>);

impl Count {
    /// Takes a count.
    pub(crate) fn now(namespace: &mut Namespace) -> Result<Count, String> {
        let sockets = IpStack::open(namespace).and_then(|mut stack| stack.sockets());
        let sockets = sockets.map_err(|error| format!("the sockets cannot be counted: {error}"))?.len() as u64;
        let counters = diagnostics::counters().map_err(|status| format!("the counters: {}", status.text()))?;
        let value = |name: &&str| {
            let record = counters.iter().find(|record| diagnostics::name(&record.name) == *name);
            record.map(|record| record.value).ok_or_else(|| format!("there is no counter `{name}`"))
        };
        let counts: Result<Vec<u64>, String> = COUNTED.iter().map(value).chain([Ok(sockets)]).collect();
        counts.map(Count)
    }

    /// Takes a count once nothing changes any more: the stack closes its ends slightly after its clients.
    pub(crate) fn settled(namespace: &mut Namespace) -> Result<Count, String> {
        let deadline = Deadline::after_ms(TIMEOUT_MS);
        let mut last = Count::now(namespace)?;
        loop {
            thread::sleep(Deadline::after_ms(SETTLE_MS));
            let now = Count::now(namespace)?;
            if now == last || deadline.has_passed() {
                return Ok(now);
            }
            last = now;
        }
    }

    /// Waits until all counters are back at this count; the error lists the differences.
    pub(crate) fn wait_until_back(&self, namespace: &mut Namespace) -> Result<(), String> {
        let deadline = Deadline::after_ms(TIMEOUT_MS);
        loop {
            let now = Count::now(namespace)?;
            if now == *self {
                return Ok(());
            }
            if deadline.has_passed() {
                let names = COUNTED.iter().chain([&"sockets"]);
                let rows = names.zip(&self.0).zip(&now.0).filter(|((_, before), after)| before != after);
                let rows: Vec<String> =
                    rows.map(|((name, before), after)| format!("{name}: {before} -> {after}")).collect();
                return Err(format!("not everything was given back: {}", rows.join(", ")));
            }
            thread::sleep(Deadline::after_ms(1));
        }
    }
}
