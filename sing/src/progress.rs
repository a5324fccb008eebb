//! The progress line of a build: on a terminal, a bar that is drawn over itself; elsewhere one
//! sentence, and only when the build takes long.

use std::collections::BTreeSet;
use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

/// A build shorter than this shows nothing.
const QUIET: Duration = Duration::from_millis(400);
/// Away from a terminal, a build shorter than this shows nothing.
const QUIET_IN_A_LOG: Duration = Duration::from_secs(5);
const BAR_CELLS: usize = 24;

/// The progress of one build. Writes to standard error alone.
pub struct Progress {
    what: String,
    expected: usize,
    done: BTreeSet<String>,
    started: Instant,
    on_terminal: bool,
    shown: bool,
}

impl Progress {
    /// Progress towards `expected` parts of `what`.
    pub fn new(what: &str, expected: usize) -> Progress {
        let on_terminal =
            std::io::stderr().is_terminal() && std::env::var_os("TERM").is_none_or(|terminal| terminal != "dumb");
        Progress {
            what: what.to_string(),
            expected,
            done: BTreeSet::new(),
            started: Instant::now(),
            on_terminal,
            shown: false,
        }
    }

    /// One part is ready.
    pub fn step(&mut self, name: &str) {
        self.done.insert(name.to_string());
        let elapsed = self.started.elapsed();
        if self.on_terminal && elapsed > QUIET {
            self.shown = true;
            self.draw(name);
        } else if !self.on_terminal && elapsed > QUIET_IN_A_LOG && !self.shown {
            self.shown = true;
            eprintln!("sing: building {}; the first time takes a few minutes", self.what);
        }
    }

    fn draw(&self, name: &str) {
        let line = bar(&self.what, self.done.len(), self.expected, name);
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
    let filled = done * BAR_CELLS / expected;
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
