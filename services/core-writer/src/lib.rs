//! Writes the core of each program that dies: to a file of its own in a folder, or to the debug output.
//!
//! The kernel keeps cores for a while and tells nobody of deaths, so this looks for new ones ten times a second, which
//! costs the reading of one list of counters while there are none. A core that cannot be written to the folder goes to
//! the debug output. docs/autopsy.md has the whole picture. Deliberately not here: the text of a core, which
//! `post-mortem` makes.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::{String, ToString};

use client::file_writer::{Existing, FileWriter};
use client::namespace::Namespace;
use post_mortem::conversations::contracts_of;
use post_mortem::words::Names;
use post_mortem::{End, core_text};
use sip::exheap::ExVec;
use sip::time::Deadline;
use sip::{Status, diagnostics};

sip::startup!();

/// Milliseconds between two looks.
const PERIOD_MS: u64 = 100;
/// The counter that tells of new deaths.
const ENDED: &str = "processes ended";
/// Nanoseconds per second.
const SECOND_NS: u64 = 1_000_000_000;

/// Writes cores until the machine ends.
pub fn main(startup: Startup) -> i32 {
    let mut writer = Writer { namespace: Namespace::new(startup.namespace), folder: startup.folder, seen: None };
    let mut counted = None;
    loop {
        let ended = ended();
        if ended != counted || ended.is_none() {
            match writer.look() {
                Ok(()) => counted = ended,
                Err(status) => sip::debug::write_line(format_args!("cores cannot be read: {}", status.text())),
            }
        }
        sip::time::sleep_until(Deadline::after_ms(PERIOD_MS));
    }
}

/// Number of processes that have ended; `None` if it cannot be read.
fn ended() -> Option<u64> {
    let counters = diagnostics::counters().ok()?;
    counters.iter().find(|counter| diagnostics::name(&counter.name) == ENDED).map(|counter| counter.value)
}

struct Writer {
    namespace: Namespace,
    /// Path of a folder; empty: the debug output.
    folder: String,
    /// Process ids of the ends that were seen; `None` before the first look.
    seen: Option<BTreeSet<u64>>,
}

impl Writer {
    /// Writes the cores of deaths since the last look.
    fn look(&mut self) -> Result<(), Status> {
        let lines = diagnostics::epitaphs()?;
        let ends = || lines.lines().filter_map(End::parse);
        // A writer that was restarted writes again what is still kept: its files are the same.
        let seen = self.seen.take().unwrap_or_default();
        let processes = diagnostics::processes()?;
        let running = processes.iter().map(|process| (process.id, diagnostics::name(&process.name)));
        let names = Names::new(running.chain(ends().map(|end| (end.id, String::from(end.program)))));
        for end in ends().filter(|end| !seen.contains(&end.id)) {
            match diagnostics::trace(end.id) {
                Ok(trace) => {
                    if let Some(text) = core_text(&end, &trace, &names, &contracts_of(&trace)) {
                        self.write(&end, &text);
                    }
                }
                // Displaced by others meanwhile.
                Err(Status::NotFound) => {}
                Err(status) => return Err(status),
            }
        }
        self.seen = Some(ends().map(|end| end.id).collect());
        Ok(())
    }

    fn write(&mut self, end: &End<'_>, text: &str) {
        if !self.folder.is_empty() {
            // Process ids begin anew with each boot.
            let begun_s = (sip::time::wall().saturating_sub(sip::time::monotonic()) + SECOND_NS / 2) / SECOND_NS;
            let path = format!("{}/{}-{}-{begun_s}.core", self.folder, end.program, end.id);
            match self.write_file(&path, text) {
                Ok(()) => return,
                Err(reason) => sip::debug::write_line(format_args!("{path} cannot be written: {reason}")),
            }
        }
        for line in text.lines() {
            sip::debug::write_line(format_args!("{line}"));
        }
    }

    fn write_file(&mut self, path: &str, text: &str) -> Result<(), String> {
        let block = ExVec::from_slice(text.as_bytes()).map_err(|status| String::from(status.text()))?;
        let mut file =
            FileWriter::open(&mut self.namespace, path, Existing::Replace).map_err(|error| error.to_string())?;
        file.write(block, text.len()).map_err(|error| error.to_string())?;
        file.finish().map(drop).map_err(|error| error.to_string())
    }
}
