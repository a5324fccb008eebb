//! Runs of the simulated machine, each a process.
//!
//! Key types: [`Case`] (what to run), [`Run`] (what came of it). Deliberately not here: what it means.

use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::Deserialize;

use crate::failure::{Failure, Outcome};
use crate::process::run_machine_with;
use crate::systems::Ready;

use super::link::{self, Link};

/// Timeout of one run, in time of the host. Only a program that computes for ever without an ABI call takes so long.
const HOST_LIMIT: Duration = Duration::from_secs(180);

/// The faults that a run may have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Faults {
    /// Those of these kinds that the seed selects.
    Kinds(String),
    /// These and no others.
    Exactly(Vec<String>),
}

/// Maximum bytes of the list of faults in a command. Linux takes no longer argument than 128 KiB.
const MAX_LIST_BYTES: usize = 100 << 10;
/// File of the list of faults that a machine reads.
const LIST: &str = "faults";

impl Faults {
    /// Returns the option of this tool that asks for them; `None` if they are too many for a command.
    pub fn option(&self) -> Option<[String; 2]> {
        Some(match self {
            Faults::Kinds(kinds) => ["--faults".into(), kinds.clone()],
            Faults::Exactly(faults) if faults.is_empty() => ["--faults".into(), "none".into()],
            Faults::Exactly(faults) => ["--exactly".into(), faults.join(",")],
        })
        .filter(|[_, value]| value.len() <= MAX_LIST_BYTES)
    }

    /// Returns the same option of the machine, which reads a list from a file in this folder.
    fn machine_option(&self, folder: &Path) -> Outcome<[OsString; 2]> {
        match self {
            Faults::Exactly(faults) if !faults.is_empty() => {
                let path = folder.join(LIST);
                std::fs::write(&path, faults.join("\n")).map_err(|error| Failure::file("write", &path, &error))?;
                Ok(["--exactly".into(), path.into()])
            }
            Faults::Exactly(_) => Ok(["--faults", "none"].map(OsString::from)),
            Faults::Kinds(kinds) => Ok(["--faults", kinds].map(OsString::from)),
        }
    }
}

/// Content of a disk.
#[derive(Debug, Clone)]
pub enum DiskContent {
    /// Of a file, which the name may mark as read-only.
    File(PathBuf),
    /// These bytes, which cases share.
    Bytes(Arc<Vec<u8>>),
}

impl DiskContent {
    /// Makes the content of these bytes.
    pub fn of(bytes: Vec<u8>) -> DiskContent {
        DiskContent::Bytes(Arc::new(bytes))
    }
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
    /// Whether what is left on the disks is wanted.
    pub keeps_disks: bool,
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
    run_at(ready, case, None)
}

/// Runs machines that a link joins. The result is that of the last one, and has the other ones' faults, ends and disks, too.
///
/// # Errors
/// A machine cannot be started, or its files cannot be written; or the faults are none.
pub fn run_linked(ready: &Ready, cases: &[Case]) -> Outcome<Run> {
    let Some(first) = cases.first() else { unreachable!("a link without machines") };
    let (of_link, of_machines) = match &first.faults {
        Faults::Kinds(kinds) => {
            let (link, rest) = link::Faults::of_kinds(kinds).map_err(Failure::new)?;
            (link, vec![Faults::Kinds(rest); cases.len()])
        }
        Faults::Exactly(faults) => {
            let of = |number: usize| {
                let own = faults.iter().filter_map(|fault| fault.strip_prefix(&format!("{number}/")));
                Faults::Exactly(own.map(str::to_owned).collect())
            };
            (link::Faults::exactly(faults), (1..=cases.len()).map(of).collect())
        }
    };
    let pairs = cases.iter().map(|_| UnixStream::pair()).collect::<Result<Vec<_>, _>>();
    let pairs = pairs.map_err(|error| Failure::new(format!("the link cannot be made ({error})")))?;
    let (own, theirs): (Vec<UnixStream>, Vec<UnixStream>) = pairs.into_iter().unzip();
    let link = Link::new(own, first.seed, of_link);
    let link = if first.trace.is_some() { link.traced() } else { link };
    std::thread::scope(|scope| {
        let link = scope.spawn(|| link.run());
        let machines = cases.iter().zip(of_machines).zip(theirs).zip(1..).map(|(((case, faults), link), number)| {
            let trace = case.trace.as_ref().map(|path| path.with_extension(number.to_string()));
            let case = Case { faults, trace, ..case.clone() };
            scope.spawn(move || run_at(ready, &case, Some((link, number))))
        });
        let machines: Vec<_> = machines.collect();
        let runs = machines.into_iter().map(|machine| machine.join().unwrap_or_else(|panic| resume_unwind(panic)));
        let runs = runs.collect::<Outcome<Vec<Run>>>()?;
        let (used, frames) = link.join().unwrap_or_else(|panic| resume_unwind(panic));
        if let (Some(path), Some(frames)) = (&first.trace, frames) {
            let path = path.with_extension("link");
            std::fs::write(&path, frames).map_err(|error| Failure::file("write", &path, &error))?;
        }
        Ok(joined(runs, used))
    })
}

/// Makes one result of those of all machines.
fn joined(runs: Vec<Run>, of_link: Vec<String>) -> Run {
    let mut whole: Option<Run> = None;
    for (run, number) in runs.into_iter().zip(1..) {
        let named = |mut report: Report| {
            report.faults = report.faults.iter().map(|fault| format!("{number}/{fault}")).collect();
            report
        };
        let run = Run { report: run.report.map(named), ..run };
        whole = Some(match whole {
            None => run,
            Some(before) => before.and(run),
        });
    }
    let Some(mut whole) = whole else { unreachable!("a link without machines") };
    if let Ok(report) = &mut whole.report {
        report.faults.extend(of_link);
    }
    whole
}

impl Run {
    /// Adds the run of another machine, which has the say how both ended.
    fn and(self, last: Run) -> Run {
        let report = match (self.report, last.report) {
            (Err(why), _) | (_, Err(why)) => Err(why),
            (Ok(first), Ok(last)) => Ok(Report {
                hash: format!("{}{}", first.hash, last.hash),
                virtual_ns: first.virtual_ns.max(last.virtual_ns),
                calls: first.calls + last.calls,
                events: first.events + last.events,
                end: if first.end == End::Off { last.end } else { first.end },
                status: last.status,
                faults: [first.faults, last.faults].concat(),
                killed: [first.killed, last.killed].concat(),
            }),
        };
        let (text, disks) = (self.text + &last.text, [self.disks, last.disks].concat());
        Run { report, text, disks, host: self.host.max(last.host) }
    }
}

/// Returns why the machine refused its options, such as faults that there are not: no run came of it. A list of faults that
/// it got in a file of this folder was the value of an option here.
fn refusal(text: &str, folder: &Path) -> Option<String> {
    let line = text.lines().next()?.strip_prefix("error: ")?;
    let list = format!("invalid value '{}' for '--exactly <FILE>'", folder.join(LIST).display());
    text.contains("For more information, try '--help'").then(|| line.replace(&list, "invalid value for '--exactly'"))
}

/// Runs a case to its end, at a link as the station with this number.
fn run_at(ready: &Ready, case: &Case, link: Option<(UnixStream, u8)>) -> Outcome<Run> {
    let folder = tempfile::tempdir().map_err(|error| Failure::file("make", &std::env::temp_dir(), &error))?;
    let report = folder.path().join("report");
    let mut command = Command::new(&ready.machine);
    command.arg("--system").arg(&ready.image).arg("--report").arg(&report);
    command.args(["--seed", &case.seed.to_string(), "--processors", &case.processors.to_string()]);
    command.args(case.faults.machine_option(folder.path())?);
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
                std::fs::write(&path, &**bytes).map_err(|error| Failure::file("write", &path, &error))?;
                path
            }
        };
        command.arg("--disk").arg(path);
        if case.keeps_disks {
            left.push(folder.path().join(format!("left{number}")));
            command.arg("--disk-left").arg(&left[number]);
        }
    }
    for (name, value) in &case.parameters {
        command.args(["--parameter", &format!("{name}={value}")]);
    }
    if let Some((_, number)) = &link {
        command.args(["--link", &number.to_string()]);
    }
    let stdin = link.map_or_else(Stdio::null, |(socket, _)| Stdio::from(OwnedFd::from(socket)));
    let begin = Instant::now();
    let output = run_machine_with(command, stdin, HOST_LIMIT)?;
    let host = begin.elapsed();
    let without = || output.problem.clone().unwrap_or_else(|| "the machine left no report".into());
    if let Some(refused) = refusal(&output.text, folder.path()) {
        return Err(Failure::new(refused));
    }
    let report = std::fs::read(&report).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok()).ok_or_else(without);
    let disks = left.iter().map(|path| std::fs::read(path).unwrap_or_default()).collect();
    Ok(Run { report, text: output.text, disks, host })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_that_no_command_has_room_for_go_to_the_machine_in_a_file() {
        let many = Faults::Exactly((0..20_000).map(|number| format!("preempt:{number}")).collect());
        assert_eq!(many.option(), None);
        let folder = tempfile::tempdir().expect("a folder");
        let [option, path] = many.machine_option(folder.path()).expect("a file");
        assert_eq!(option, "--exactly");
        assert_eq!(std::fs::read_to_string(path).expect("the file").lines().count(), 20_000);
        assert_eq!(Faults::Exactly(vec![]).option(), Some(["--faults".into(), "none".into()]));
    }

    #[test]
    fn options_that_are_refused_are_no_run() {
        let text = "error: invalid value 'x' for '--faults <KIND,...>': there is no fault\n\nFor more information, try '--help'.\n";
        let refusal = |text: &str| refusal(text, Path::new("/tmp/x"));
        assert_eq!(refusal(text).as_deref(), Some("invalid value 'x' for '--faults <KIND,...>': there is no fault"));
        let text = "error: invalid value '/tmp/x/faults' for '--exactly <FILE>': there is no fault\n\nFor more information, try '--help'.\n";
        assert_eq!(refusal(text).as_deref(), Some("invalid value for '--exactly': there is no fault"));
        for run in ["", "error: a program's line\n", "hello\nerror: late\n"] {
            assert_eq!(refusal(run), None, "{run}");
        }
    }
}
