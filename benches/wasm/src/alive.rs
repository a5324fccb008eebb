//! Many programs that are alive and idle at the same time.

use alloc::string::String;
use alloc::vec::Vec;

use client::namespace::Namespace;
use sip::diagnostics;

use crate::Figures;
use crate::started::{Program, Running};

/// Starts so many of a program, each of which writes and then waits for its standard input; measures the memory that the
/// kernel counts for each, and ends them.
///
/// # Errors
/// One cannot be started, or does not write, or fails.
pub fn measure(namespace: &mut Namespace, name: &str, count: u32) -> Result<Figures, String> {
    let program = Program::find(name)?;
    let before = memory_bytes()?;
    let start = sip::time::monotonic();
    let mut all = Vec::with_capacity(count as usize);
    for _ in 0..count {
        let mut running = program.start(namespace, &[], "")?;
        // Its output shows that it runs, and waits.
        running.first()?;
        all.push(running);
    }
    let passed = sip::time::monotonic() - start;
    let alive = diagnostics::processes().map_err(|status| String::from(status.text()))?;
    let alive = alive.iter().filter(|process| diagnostics::name(&process.name) == name).count() as u64;
    let each = memory_bytes()?.saturating_sub(before) / u64::from(count);
    all.into_iter().try_for_each(Running::ended)?;
    Ok(Vec::from([("alive", alive), ("bytes_each", each), ("start_ns_each", passed / u64::from(count))]))
}

/// Paged memory of all processes.
fn memory_bytes() -> Result<u64, String> {
    let processes = diagnostics::processes().map_err(|status| String::from(status.text()))?;
    Ok(processes.iter().map(|process| process.memory_bytes).sum())
}
