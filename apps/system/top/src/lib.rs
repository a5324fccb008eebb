//! Shows the busiest processes, refreshed at intervals on a terminal.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use client::namespace::Namespace;
use line_editor::Key;
use sip::Deadline;
use sip::diagnostics::{LatencyRecord, List, ProcessRecord, name};
use stdio::{Output, report};
use text::{Align, Table, bytes, count, duration};
use tool_kit::screen::{Event, Screen};

sip::startup!();

/// A form feed, on which the console starts a page at the top of the terminal.
const HOME: &str = "\x0c";

/// Number of processes shown.
const ROWS: usize = 20;

/// Prints a table for each interval; on a terminal until `q` is pressed.
pub fn main(startup: Startup) -> i32 {
    let mut output = Output::new(startup.output);
    let mut screen = Screen::open(&mut Namespace::new(startup.namespace)).ok().flatten();
    let terminal = screen.is_some();
    let looks = match startup.count {
        Some(count) => u64::try_from(count).unwrap_or(1),
        None if terminal => u64::MAX,
        None => 1,
    };
    let mut before = (sip::debug::cycles(), sip::diagnostics::processes());
    for look in 0..looks {
        if wait(&mut screen, Deadline::after_ns(startup.interval.as_nanos() as u64)) == Wish::Quit {
            break;
        }
        let now = (sip::debug::cycles(), sip::diagnostics::processes());
        let (Ok(old), Ok(new)) = (&before.1, &now.1) else {
            report::error(format_args!(
                "the processes cannot be listed; the manifest's `diagnostics` permission is missing"
            ));
            return 1;
        };
        let mut text = if terminal && look + 1 < looks { String::from(HOME) } else { String::new() };
        text += &table(old, new, now.0.saturating_sub(before.0));
        if startup.latencies {
            match sip::diagnostics::latencies() {
                Ok(latencies) => text += &latency_table(&latencies),
                Err(status) => {
                    report::error(format_args!("the latencies cannot be listed: {}", status.text()));
                    return 1;
                }
            }
        }
        if output.write(text.as_bytes()).and_then(|()| output.flush()).is_err() {
            return 1;
        }
        before = now;
    }
    output.finish_with(0)
}

/// The user's request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wish {
    More,
    Quit,
}

/// Waits for the deadline or a key.
fn wait(screen: &mut Option<Screen>, deadline: Deadline) -> Wish {
    while let Some(terminal) = screen {
        match terminal.wait(deadline) {
            Event::Keys(keys) if keys.iter().any(|key| matches!(key, Key::Char('q' | 'Q') | Key::Control('C'))) => {
                return Wish::Quit;
            }
            Event::Nothing => return Wish::More,
            Event::Gone => *screen = None,
            Event::Keys(_) | Event::Resized => {}
        }
    }
    sip::time::sleep_until(deadline);
    Wish::More
}

/// Formats the contracts with most samples. A latency is shown as the bound of its bucket.
fn latency_table(latencies: &[LatencyRecord]) -> String {
    let mut busiest: Vec<&LatencyRecord> = latencies.iter().collect();
    busiest.sort_by_key(|one| (core::cmp::Reverse(one.count()), one.contract, one.to_exporter));
    let mut table = Table::new(&[
        ("CONTRACT", Align::Left),
        ("TO", Align::Left),
        ("SAMPLES", Align::Right),
        ("MEDIAN", Align::Right),
        ("99 %", Align::Right),
    ]);
    let below = |bound: Option<u64>| bound.map_or_else(|| String::from("long"), |ns| format!("< {}", duration(ns)));
    for one in busiest.into_iter().take(ROWS) {
        table.row([
            name(&one.contract),
            String::from(if one.to_exporter != 0 { "exporter" } else { "importer" }),
            count(one.count()),
            below(one.quantile_ns(500)),
            below(one.quantile_ns(990)),
        ]);
    }
    format!("\n{}", table.render())
}

fn table(old: &List<ProcessRecord>, new: &List<ProcessRecord>, elapsed_cycles: u64) -> String {
    let mut used: Vec<(u64, &ProcessRecord)> = new
        .iter()
        .map(|process| {
            let before = old.iter().find(|other| other.id == process.id).map_or(0, |other| other.cycles);
            (process.cycles.saturating_sub(before), process)
        })
        .collect();
    used.sort_by_key(|(cycles, process)| (core::cmp::Reverse(*cycles), process.id));
    let mut table = Table::new(&[
        ("CPU %", Align::Right),
        ("ID", Align::Right),
        ("NAME", Align::Left),
        ("THREADS", Align::Right),
        ("MEMORY", Align::Right),
        ("BLOCKS", Align::Right),
        ("MESSAGES", Align::Right),
    ]);
    for (cycles, process) in used.iter().take(ROWS) {
        let permille = u128::from(*cycles) * 1000 / u128::from(elapsed_cycles.max(1));
        table.row([
            format!("{}.{}", permille / 10, permille % 10),
            process.id.to_string(),
            name(&process.name),
            process.threads.to_string(),
            bytes(process.memory_bytes),
            bytes(process.block_bytes),
            count(process.messages_sent.saturating_add(process.messages_received)),
        ]);
    }
    let memory: u64 = new.iter().map(|process| process.memory_bytes).sum();
    format!(
        "up {}, {} processes, {} processors, {} of memory\n\n{}",
        duration(sip::time::monotonic()),
        new.len(),
        sip::thread::processor_count(),
        bytes(memory),
        table.render()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contracts_are_ordered_by_samples() {
        let record = |contract: &str, fast, slow| {
            let mut record = LatencyRecord { contract: text::pad(contract), ..LatencyRecord::default() };
            (record.buckets[1], record.buckets[10]) = (fast, slow);
            record
        };
        let text = latency_table(&[record("File", 3, 0), record("Disk", 90, 10)]);
        let rows: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(rows[2], ["Disk", "importer", "100", "<", "512", "ns", "<", "262.1", "us"]);
        assert_eq!(rows[3][..3], ["File", "importer", "3"]);
    }
}
