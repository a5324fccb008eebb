//! Runs a program to its end, with a timeout.

use std::collections::BTreeMap;
use std::io::Read;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

/// Timeout for ordinary runs.
pub const LIMIT: Duration = Duration::from_secs(60);
/// Timeout for a command that may build, or wait for another build, on a busy host.
pub const BUILD_LIMIT: Duration = Duration::from_secs(600);

/// How lines of the tool begin that depend on the host and on what else it does.
const NOTES: [&str; 2] = ["sing: installing ", "sing: waiting for another build "];

/// What the tool said on standard error, without the lines that depend on the host and on other tests.
pub fn without_notes(errors: &str) -> String {
    let is_note = |line: &&str| NOTES.iter().any(|note| line.starts_with(note));
    errors.split_inclusive('\n').filter(|line| !is_note(line)).collect()
}

/// The result of a run.
#[derive(Debug)]
pub struct Run {
    /// The command, for failure messages.
    pub asked: String,
    /// Standard output.
    pub output: Vec<u8>,
    /// Standard error.
    pub errors: String,
    /// Exit status; `None` after a signal.
    pub status: Option<i32>,
    /// Wall-clock time of the run.
    pub took: Duration,
}

impl Run {
    /// Standard output as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.output).into_owned()
    }

    /// The counters of each `sysinfo` in its output.
    pub fn counters(&self) -> Vec<BTreeMap<String, u64>> {
        counters(&self.text())
    }

    /// The least value of each counter of each group of listings that [`Run::LOOKS`] made: what is in
    /// flight at one look is gone at another, what leaks is in all of them.
    pub fn steady_counters(&self) -> Vec<BTreeMap<String, u64>> {
        let least = |looks: &[BTreeMap<String, u64>]| {
            let mut least = looks[0].clone();
            least.retain(|name, _| looks.iter().all(|look| look.contains_key(name)));
            for (name, value) in &mut least {
                *value = looks.iter().map(|look| look[name]).min().unwrap_or(*value);
            }
            least
        };
        self.counters().chunks(Self::LOOKS.matches("sysinfo").count()).map(least).collect()
    }

    /// Commands that look at the counters several times.
    pub const LOOKS: &str = "sleep 300ms; sysinfo; sleep 300ms; sysinfo; sleep 300ms; sysinfo";

    /// Asserts that the run ended with status 0 and wrote nothing to standard error except notes on installations on
    /// this host, and on builds of other tests. Returns its output as text.
    #[track_caller]
    pub fn succeeded(&self) -> String {
        let is_silent = without_notes(&self.errors).is_empty();
        assert!(self.status == Some(0) && is_silent, "this should have worked without a word:\n{self}");
        self.text()
    }

    /// Asserts that the run failed cleanly, with one sentence that contains all of `parts`.
    #[track_caller]
    pub fn refused(&self, parts: &[&str]) {
        // 128 and more means that the program was killed.
        assert!(matches!(self.status, Some(1..=127)), "an exit status from 1 to 127 was to be expected:\n{self}");
        self.orderly();
        let found = self.errors.lines().any(|line| parts.iter().all(|part| line.contains(part)));
        assert!(found, "no line on standard error has all of {parts:?}:\n{self}");
    }

    /// Asserts that no part of the system reported a bug, regardless of the exit status.
    #[track_caller]
    pub fn orderly(&self) {
        for word in ["panic", "this is a bug", "unwrap", "RUST_BACKTRACE", "Err(", "None"] {
            assert!(!self.errors.contains(word), "`{word}` on standard error:\n{self}");
        }
        assert!(self.status.is_some(), "ended by a signal:\n{self}");
    }
}

/// The counters of each `sysinfo` in a text.
pub(crate) fn counters(text: &str) -> Vec<BTreeMap<String, u64>> {
    let mut all = Vec::new();
    for line in text.lines() {
        if line.starts_with("COUNTER") {
            all.push(BTreeMap::new());
        }
        let Some(current) = all.last_mut() else { continue };
        if let Some((name, value)) = line.trim().rsplit_once("  ")
            && let Ok(value) = value.replace(',', "").parse()
        {
            current.insert(name.trim().to_string(), value);
        }
    }
    all
}

impl std::fmt::Display for Run {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let text = String::from_utf8_lossy(&self.output[..self.output.len().min(4000)]);
        let status = self.status.map_or_else(|| "a signal".into(), |status| format!("status {status}"));
        let Run { asked, errors, took, .. } = self;
        write!(
            out,
            "asked: {asked}\nended with {status} after {took:?}\nstandard output ({} bytes):\n{text}\nstandard error:\n{errors}",
            self.output.len()
        )
    }
}

/// Runs a command without input. If it takes longer than `limit`, it is killed and the test fails.
#[track_caller]
pub fn finish(mut command: Command, asked: &str, limit: Duration) -> Run {
    let begin = Instant::now();
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| panic!("{:?} does not start: {error}", command.get_program()));
    let output = collect(child.stdout.take());
    let errors = collect(child.stderr.take());
    let in_time = ends_within(&mut child, limit);
    let status = child.wait().expect("a child can be waited for").code();
    let took = begin.elapsed();
    let [output, errors] = [output, errors].map(|bytes| bytes.recv().unwrap_or_default());
    let errors = String::from_utf8_lossy(&errors).into_owned();
    let run = Run { asked: asked.into(), output, errors, status, took };
    assert!(in_time, "no end within {limit:?}; it hangs:\n{run}");
    run
}

/// Waits for the child to end; kills it after the timeout.
fn ends_within(child: &mut Child, limit: Duration) -> bool {
    let begin = Instant::now();
    loop {
        match child.try_wait() {
            Ok(Some(_)) => return true,
            Ok(None) if begin.elapsed() < limit => thread::sleep(Duration::from_millis(2)),
            _ => {
                // It may exit at this very moment; either way it has exited afterwards.
                let _ = child.kill();
                return false;
            }
        }
    }
}

fn collect(stream: Option<impl Read + Send + 'static>) -> mpsc::Receiver<Vec<u8>> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut stream) = stream {
            // Data read before a failure still counts.
            let _ = stream.read_to_end(&mut bytes);
        }
        let _ = sender.send(bytes);
    });
    receiver
}
