//! The progress line of a build or of copying: on a terminal, a bar that is drawn over itself; elsewhere one
//! sentence, and only when it takes long.

use std::collections::BTreeSet;
use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

/// A build shorter than this shows nothing.
const QUIET: Duration = Duration::from_millis(400);
/// Away from a terminal, a build shorter than this shows nothing.
const QUIET_IN_A_LOG: Duration = Duration::from_secs(5);
const BAR_CELLS: usize = 24;

/// While nothing is ready, it is shown this often that a build goes on.
pub const TICK: Duration = Duration::from_millis(200);
/// Bytes that are shown as one.
const MEBIBYTE: u64 = 1 << 20;

/// The progress of one build, or of copying. Writes to standard error alone.
pub struct Progress {
    what: String,
    /// What is said of it where no bar can be drawn.
    sentence: String,
    expected: usize,
    done: BTreeSet<String>,
    /// What was ready last.
    latest: String,
    started: Instant,
    on_terminal: bool,
    shown: bool,
}

impl Progress {
    /// Progress towards `expected` parts of `what`.
    pub fn new(what: &str, expected: usize) -> Progress {
        Progress::with(what, expected, format!("building {what}; the first time takes a few minutes"))
    }

    /// Progress of copying so many bytes of `what`.
    pub fn of_copying(what: &str, bytes: u64) -> Progress {
        let expected = usize::try_from(bytes.div_ceil(MEBIBYTE)).unwrap_or(usize::MAX);
        Progress::with(what, expected, format!("copying {what}, {expected} MiB"))
    }

    fn with(what: &str, expected: usize, sentence: String) -> Progress {
        let on_terminal =
            std::io::stderr().is_terminal() && std::env::var_os("TERM").is_none_or(|terminal| terminal != "dumb");
        Progress {
            what: what.to_string(),
            sentence,
            expected,
            done: BTreeSet::new(),
            latest: String::new(),
            started: Instant::now(),
            on_terminal,
            shown: false,
        }
    }

    /// One part is ready. Parts of the same name are told apart by `id`.
    pub fn step(&mut self, id: &str, name: &str) {
        self.done.insert(format!("{id} {name}"));
        self.latest = name.to_string();
        self.tick();
    }

    /// Shows where it is, although nothing else is ready.
    pub fn tick(&mut self) {
        self.show(self.done.len(), &self.latest.clone());
    }

    /// So many bytes are copied by now.
    pub fn copied(&mut self, bytes: u64) {
        self.show(usize::try_from(bytes / MEBIBYTE).unwrap_or(usize::MAX), "MiB");
    }

    fn show(&mut self, done: usize, name: &str) {
        let elapsed = self.started.elapsed();
        if self.on_terminal && elapsed > QUIET {
            self.shown = true;
            self.draw(done, name);
        } else if !self.on_terminal && elapsed > QUIET_IN_A_LOG && !self.shown {
            self.shown = true;
            eprintln!("sing: {}", self.sentence);
        }
    }

    fn draw(&self, done: usize, name: &str) {
        let line = bar(&self.what, done, self.expected, name);
        let mut out = std::io::stderr().lock();
        // Progress that cannot be shown is no reason to stop building.
        let _ = write!(out, "\r\x1b[2K{line}");
        let _ = out.flush();
    }

    /// Wipes the line.
    pub fn finish(&mut self) {
        if self.on_terminal && self.shown {
            let mut out = std::io::stderr().lock();
            let _ = write!(out, "\r\x1b[2K");
            let _ = out.flush();
        }
    }
}

/// The line itself, at most 79 columns.
fn bar(what: &str, done: usize, expected: usize, name: &str) -> String {
    let expected = expected.max(done).max(1);
    let filled = done.saturating_mul(BAR_CELLS) / expected;
    let bar: String = (0..BAR_CELLS).map(|cell| if cell < filled { '#' } else { '-' }).collect();
    let line = format!("{what} [{bar}] {done}/{expected} {name}");
    line.chars().take(79).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bar_fills_and_never_overflows() {
        assert!(bar("programs", 0, 10, "abi").contains("[------------------------] 0/10"));
        assert!(bar("programs", 10, 10, "abi").contains("[########################] 10/10"));
        assert!(bar("programs", 11, 10, "abi").contains("11/11"));
        assert!(bar("programs", 1, 0, &"x".repeat(200)).chars().count() <= 79);
    }
}
