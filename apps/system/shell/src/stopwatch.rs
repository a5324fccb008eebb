//! `time`: elapsed time of a statement, and processor time of its programs.

use alloc::format;
use alloc::string::String;

use sip::process::Child;

use crate::shell::Shell;

/// Measures one statement.
pub struct Stopwatch {
    begun_ns: u64,
    begun_cycles: u64,
    /// Cycles that the kernel charged to the programs.
    used_cycles: u64,
}

impl Stopwatch {
    /// Starts a measurement.
    pub fn begin() -> Stopwatch {
        Stopwatch { begun_ns: sip::time::monotonic(), begun_cycles: sip::debug::cycles(), used_cycles: 0 }
    }

    fn line(&self) -> String {
        let passed_ns = sip::time::monotonic().saturating_sub(self.begun_ns);
        let passed_cycles = sip::debug::cycles().saturating_sub(self.begun_cycles);
        let used_ns = nanoseconds(self.used_cycles, passed_cycles, passed_ns);
        format!("{} s, {} s of processor time", seconds(passed_ns), seconds(used_ns))
    }
}

/// Converts cycles to nanoseconds by the clock rate of the measured interval.
fn nanoseconds(cycles: u64, passed_cycles: u64, passed_ns: u64) -> u64 {
    let product = u128::from(cycles) * u128::from(passed_ns);
    u64::try_from(product / u128::from(passed_cycles.max(1))).unwrap_or(u64::MAX)
}

fn seconds(nanoseconds: u64) -> String {
    let milliseconds = nanoseconds.saturating_add(500_000) / 1_000_000;
    format!("{}.{:03}", milliseconds / 1_000, milliseconds % 1_000)
}

impl Shell {
    /// Charges the cycles of an ended program to all running measurements.
    pub fn account(&mut self, child: &Child) {
        if self.stopwatches.is_empty() {
            return;
        }
        let (Ok(id), Ok(processes)) = (child.id(), sip::diagnostics::processes()) else { return };
        let used = processes.iter().find(|process| process.id == id).map_or(0, |process| process.cycles);
        for stopwatch in &mut self.stopwatches {
            stopwatch.used_cycles = stopwatch.used_cycles.saturating_add(used);
        }
    }

    /// Ends the innermost measurement and prints it.
    pub fn end_stopwatch(&mut self) {
        if let Some(stopwatch) = self.stopwatches.pop() {
            let line = stopwatch.line();
            self.report(&line);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_seconds_with_three_digits() {
        for (ns, text) in [(0, "0.000"), (499_999, "0.000"), (500_000, "0.001"), (1_234_567_890, "1.235")] {
            assert_eq!(seconds(ns), text);
        }
        assert_eq!(seconds(u64::MAX), "18446744073.709");
    }

    #[test]
    fn cycles_become_time_by_the_rate_of_the_measurement() {
        assert_eq!(nanoseconds(1_500, 3_000, 1_000), 500);
        assert_eq!(nanoseconds(7, 0, 1_000), 7_000);
        assert_eq!(nanoseconds(u64::MAX, 1, u64::MAX), u64::MAX);
    }
}
