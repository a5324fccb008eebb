//! Runs of the simulated machine, each a process.
//!
//! Key types: [`Case`] (what to run), [`Run`] (what came of it). Deliberately not here: what it means.

use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use serde::Deserialize;

use crate::failure::{Failure, Outcome};
use crate::process::run_machine;
use crate::systems::Ready;

/// Timeout of one run, in time of the host. Only a program that computes for ever without an ABI call takes so long.
const HOST_LIMIT: Duration = Duration::from_secs(60);

/// The faults that a run may have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Faults {
    /// Those of these kinds that the seed selects.
    Kinds(String),
    /// These and no others.
    Exactly(Vec<String>),
}

impl Faults {
    /// Returns the option that asks for them, for machine and tool.
    pub fn option(&self) -> [String; 2] {
        match self {
            Faults::Kinds(kinds) => ["--faults".into(), kinds.clone()],
            Faults::Exactly(faults) if faults.is_empty() => ["--faults".into(), "none".into()],
            Faults::Exactly(faults) => ["--exactly".into(), faults.join(",")],
        }
    }
}

/// Content of a disk.
#[derive(Debug, Clone)]
pub enum DiskContent {
    /// Of a file, which the name may mark as read-only.
    File(PathBuf),
    /// These bytes.
    Bytes(Vec<u8>),
}

/// What to run.
#[derive(Debug, Clone)]
pub struct Case {
    /// Decides all that is open.
    pub seed: u64,
    /// Number of processors.
    pub processors: u8,
    /// Its faults.
    pub faults: Faults,
    /// Parameters of the system's first program.
    pub parameters: Vec<(&'static str, String)>,
    /// The disks, in order.
    pub disks: Vec<DiskContent>,
    /// Programs that no fault ends.
    pub spared: Vec<String>,
    /// Virtual time in seconds after which no fault harms.
    pub calm_after_s: Option<u64>,
    /// File for the text of the trace.
    pub trace: Option<PathBuf>,
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum End {
    /// Powered off by the system.
    Off,
    /// Restarted by the system.
    Restart,
    /// The power failed.
    Cut,
    /// Everybody waited for ever.
    Stuck,
    /// A lock of the kernel was never released.
    Spin,
    /// The limit of virtual time was over.
    Late,
}

/// The machine's own report.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Report {
    /// Hash of the trace, as text.
    pub hash: String,
    /// Virtual time in nanoseconds.
    pub virtual_ns: u64,
    /// ABI calls that ended.
    pub calls: u64,
    /// Entries of the trace.
    pub events: u64,
    /// How it ended.
    pub end: End,
    /// The system's exit status.
    pub status: u8,
    /// The faults, in order.
    pub faults: Vec<String>,
    /// The programs that faults ended: name and process id.
    pub killed: Vec<String>,
}

/// What came of a run.
#[derive(Debug, Clone)]
pub struct Run {
    /// The machine's report; an error says how it died without one.
    pub report: Result<Report, String>,
    /// Console and debug output.
    pub text: String,
    /// What is left on each disk.
    pub disks: Vec<Vec<u8>>,
    /// Time that it took on the host.
    pub host: Duration,
}

/// Runs a case to its end.
///
/// # Errors
/// The machine cannot be started, or its files cannot be written.
pub fn run(ready: &Ready, case: &Case) -> Outcome<Run> {
    let folder = tempfile::tempdir().map_err(|error| Failure::file("make", &std::env::temp_dir(), &error))?;
    let report = folder.path().join("report");
    let mut command = Command::new(&ready.machine);
    command.arg("--system").arg(&ready.image).arg("--report").arg(&report);
    command.args(["--seed", &case.seed.to_string(), "--processors", &case.processors.to_string()]);
    command.args(case.faults.option());
    for program in &case.spared {
        command.args(["--spare", program]);
    }
    if let Some(seconds) = case.calm_after_s {
        command.args(["--calm-after", &seconds.to_string()]);
    }
    if let Some(trace) = &case.trace {
        command.arg("--trace").arg(trace);
    }
    let mut left = Vec::new();
    for (number, content) in case.disks.iter().enumerate() {
        let path = match content {
            DiskContent::File(path) => path.clone(),
            DiskContent::Bytes(bytes) => {
                let path = folder.path().join(format!("disk{number}"));
                std::fs::write(&path, bytes).map_err(|error| Failure::file("write", &path, &error))?;
                path
            }
        };
        left.push(folder.path().join(format!("left{number}")));
        command.arg("--disk").arg(path).arg("--disk-left").arg(&left[number]);
    }
    for (name, value) in &case.parameters {
        command.args(["--parameter", &format!("{name}={value}")]);
    }
    let begin = Instant::now();
    let output = run_machine(command, HOST_LIMIT)?;
    let host = begin.elapsed();
    let without = || output.problem.clone().unwrap_or_else(|| "the machine left no report".into());
    let report = std::fs::read(&report).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok()).ok_or_else(without);
    let disks = left.iter().map(|path| std::fs::read(path).unwrap_or_default()).collect();
    Ok(Run { report, text: output.text, disks, host })
}
