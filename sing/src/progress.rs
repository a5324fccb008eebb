//! The progress line of a build or a copy: on a terminal, a bar that is redrawn; elsewhere one sentence, and only if
//! it takes long. Concurrent builds share one line.

use std::collections::BTreeSet;
use std::io::{IsTerminal, Write};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Minimum duration before a build shows anything on a terminal.
const QUIET: Duration = Duration::from_millis(400);
/// Minimum duration before a build shows anything elsewhere.
const QUIET_IN_A_LOG: Duration = Duration::from_secs(5);
const BAR_CELLS: usize = 24;
/// Redraw interval while nothing finishes.
pub const TICK: Duration = Duration::from_millis(200);
/// Unit of the progress of a copy, in bytes.
const MEBIBYTE: u64 = 1 << 20;

/// The work in progress in this process.
static LINE: Mutex<Option<Line>> = Mutex::new(None);

/// Progress of one build or copy. Writes to standard error only.
pub struct Progress(());

/// The line shared by all concurrent progress.
struct Line {
    what: String,
    /// Message used without a bar.
    sentence: String,
    /// Number of `Progress` values sharing it.
    parts: usize,
    expected: usize,
    done: BTreeSet<String>,
    copied: usize,
    /// Last finished part.
    latest: String,
    started: Instant,
    on_terminal: bool,
    shown: bool,
}

impl Progress {
    /// Progress towards `expected` parts of `what`.
    pub fn new(what: &str, expected: usize) -> Progress {
        Progress::with(what, expected, building(what))
    }

    /// Progress of copying this many bytes of `what`.
    pub fn of_copying(what: &str, bytes: u64) -> Progress {
        let expected = usize::try_from(bytes.div_ceil(MEBIBYTE)).unwrap_or(usize::MAX);
        Progress::with(what, expected, format!("copying {what}, {expected} MiB"))
    }

    fn with(what: &str, expected: usize, sentence: String) -> Progress {
        let mut line = LINE.lock().unwrap_or_else(PoisonError::into_inner);
        match &mut *line {
            Some(line) => line.join(what, expected),
            None => *line = Some(Line::new(what, expected, sentence)),
        }
        Progress(())
    }

    /// Reports a finished part; `id` distinguishes parts of the same name.
    pub fn step(&mut self, id: &str, name: &str) {
        change(|line| {
            line.done.insert(format!("{id} {name}"));
            line.latest = name.to_string();
        });
    }

    /// Reports the bytes copied so far.
    pub fn copied(&mut self, bytes: u64) {
        change(|line| {
            line.copied = usize::try_from(bytes / MEBIBYTE).unwrap_or(usize::MAX);
            line.latest = "MiB".into();
        });
    }

    /// Redraws the line although nothing new finished.
    pub fn tick(&mut self) {
        change(|_| {});
    }
}

/// The last one dropped erases the line.
impl Drop for Progress {
    fn drop(&mut self) {
        let mut line = LINE.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(others) = line.as_ref().map(|line| line.parts - 1) else { return };
        match line.as_mut().filter(|_| others > 0) {
            Some(line) => line.parts = others,
            None => line.take().iter().for_each(Line::wipe),
        }
    }
}

fn change(change: impl FnOnce(&mut Line)) {
    if let Some(line) = &mut *LINE.lock().unwrap_or_else(PoisonError::into_inner) {
        change(line);
        line.show();
    }
}

impl Line {
    fn new(what: &str, expected: usize, sentence: String) -> Line {
        let on_terminal =
            std::io::stderr().is_terminal() && std::env::var_os("TERM").is_none_or(|terminal| terminal != "dumb");
        Line {
            what: what.to_string(),
            sentence,
            parts: 1,
            expected,
            done: BTreeSet::new(),
            copied: 0,
            latest: String::new(),
            started: Instant::now(),
            on_terminal,
            shown: false,
        }
    }

    fn join(&mut self, what: &str, expected: usize) {
        if !self.what.contains(what) {
            self.what = format!("{} and {what}", self.what);
            self.sentence = building(&self.what);
        }
        self.parts += 1;
        self.expected += expected;
    }

    fn show(&mut self) {
        let elapsed = self.started.elapsed();
        if self.on_terminal && elapsed > QUIET {
            self.shown = true;
            let line = bar(&self.what, self.done.len() + self.copied, self.expected, &self.latest);
            self.draw(&line);
        } else if !self.on_terminal && elapsed > QUIET_IN_A_LOG && !self.shown {
            self.shown = true;
            eprintln!("sing: {}", self.sentence);
        }
    }

    fn wipe(&self) {
        if self.on_terminal && self.shown {
            self.draw("");
        }
    }

    fn draw(&self, line: &str) {
        let mut out = std::io::stderr().lock();
        // Failing to show progress is no reason to stop a build.
        let _ = write!(out, "\r\x1b[2K{line}");
        let _ = out.flush();
    }
}

/// Returns the sentence for a build where no bar can be drawn.
fn building(what: &str) -> String {
    format!("building {what}; the first time takes a few minutes")
}

/// Formats the bar, at most 79 columns.
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

    fn line() -> Line {
        Line::new("the machine", 30, String::new())
    }

    #[test]
    fn builds_at_the_same_time_have_one_line() {
        let mut line = line();
        line.join("programs", 180);
        assert_eq!((line.what.as_str(), line.parts, line.expected), ("the machine and programs", 2, 210));
    }

    /// Images must count, or the bar stands full while they link.
    #[test]
    fn an_image_counts_beside_the_library_of_its_name() {
        let mut progress = Progress::new("programs", 3);
        for id in ["path+file:///apps/cat#0.1.0", "path+file:///apps/cat#0.1.0", "path+file:///stubs/cat#0.0.0"] {
            progress.step(id, "cat");
        }
        let is_of_test = |done: &&String| done.ends_with("cat#0.1.0 cat") || done.ends_with("cat#0.0.0 cat");
        let count = |line: &Line| line.done.iter().filter(is_of_test).count();
        let counted = LINE.lock().expect("no test panics with it").as_ref().map(count);
        assert_eq!(counted, Some(2));
    }

    #[test]
    fn the_bar_fills_and_never_overflows() {
        assert!(bar("programs", 0, 10, "abi").contains("[------------------------] 0/10"));
        assert!(bar("programs", 10, 10, "abi").contains("[########################] 10/10"));
        assert!(bar("programs", 11, 10, "abi").contains("11/11"));
        assert!(bar("programs", 1, 0, &"x".repeat(200)).chars().count() <= 79);
    }
}
