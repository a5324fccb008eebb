//! `sing replay`: runs a recording again, or answers questions about it.
//!
//! Key types: [`ReplayArguments`]; [`Trace`] has who did what. Neighbours: the hosted machine replays, `recording`
//! reads the file. Deliberately not here: the recording of bare machines, which is QEMU's (`bare::recording`).

mod blocks;
mod messages;
mod trace;

use std::io::{BufWriter, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use clap::Args;
use recording::Reader;

use crate::failure::{Failure, Outcome};
use crate::repository::Repository;
use crate::systems::{self, Platform};
use trace::Trace;

/// `sing replay`.
#[derive(Debug, Args)]
pub struct ReplayArguments {
    /// A recording made by `cargo sing run --record FILE`
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Replay this process alone, or list only its messages
    #[arg(long, value_name = "ID")]
    pub process: Option<u64>,
    /// List the processes of the recording, and how each ended
    #[arg(long, conflicts_with_all = ["process", "messages", "block"])]
    pub processes: bool,
    /// List messages: by whom and when each was sent and received
    #[arg(long, conflicts_with = "block")]
    pub messages: bool,
    /// List when the block at this address changed its owner
    #[arg(long, value_name = "ADDRESS", value_parser = address)]
    pub block: Option<u64>,
    /// Do not confine the machine by seccomp and Landlock, for debuggers
    #[arg(long)]
    pub unconfined: bool,
}

fn address(text: &str) -> Result<u64, String> {
    let (digits, radix) = text.strip_prefix("0x").map_or((text, 10), |digits| (digits, 16));
    u64::from_str_radix(digits, radix).map_err(|_| "write an address such as 0x1a0000001000".into())
}

/// `sing replay`. For a replay, this process becomes the machine.
///
/// # Errors
/// The file is no recording of this build, or the machine does not build.
pub fn replay(repository: &Repository, arguments: &ReplayArguments) -> Outcome<u8> {
    if arguments.processes || arguments.messages || arguments.block.is_some() {
        return query(repository, arguments);
    }
    let machine = systems::machine(repository, Platform::Hosted)?;
    let confined = if arguments.unconfined { Confined::No } else { Confined::Yes };
    let error = command(&machine, &arguments.file, arguments.process, confined).exec();
    Err(Failure::file("start", &machine, &error))
}

/// Whether a replay is confined by seccomp and Landlock.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Confined {
    /// As ever.
    Yes,
    /// For debuggers.
    No,
}

/// Returns the command of a replay, of one process or all.
pub fn command(machine: &Path, file: &Path, process: Option<u64>, confined: Confined) -> Command {
    let mut command = Command::new(machine);
    command.arg("--replay").arg(file);
    if let Some(process) = process {
        command.arg("--process").arg(process.to_string());
    }
    if confined == Confined::No {
        command.arg("--unconfined");
    }
    command
}

fn query(repository: &Repository, arguments: &ReplayArguments) -> Outcome<u8> {
    let mut reader = read(&arguments.file)?;
    if !arguments.processes {
        reader = completed(repository, &arguments.file)?;
    }
    let trace = Trace::new(reader.events());
    let mut output = BufWriter::new(std::io::stdout().lock());
    let lines = match arguments.block {
        _ if arguments.processes => trace.processes(),
        Some(address) => blocks::changes(&trace, reader.events(), address, arguments.process),
        None => messages::lines(&trace, reader.events(), arguments.process),
    };
    if lines.is_empty() {
        return Err(nothing_found(arguments));
    }
    for line in lines {
        writeln!(output, "{line}").map_err(|error| Failure::new(format!("cannot write the list: {error}")))?;
    }
    Ok(0)
}

fn nothing_found(arguments: &ReplayArguments) -> Failure {
    let what = match (arguments.block, arguments.process) {
        (Some(address), _) => format!("the recording has no block at {address:#x}"),
        (None, Some(id)) => format!("the recording has no messages of a process {id}"),
        (None, None) => "the recording has no messages".into(),
    };
    Failure::new(what).remedy("`--processes` lists the processes, `--messages` the messages")
}

/// Reads a recording with the arguments and messages of its calls, which a silent replay makes again.
fn completed(repository: &Repository, file: &Path) -> Outcome<Reader> {
    let machine = systems::machine(repository, Platform::Hosted)?;
    let failed = |error: &std::io::Error| Failure::file("write to", &std::env::temp_dir(), error);
    let folder = tempfile::Builder::new().prefix("sing-replay-").tempdir().map_err(|error| failed(&error))?;
    let complete = folder.path().join("complete.rec");
    let mut command = command(&machine, file, None, Confined::Yes);
    let output = command.arg("--complete").arg(&complete).output();
    let output = output.map_err(|error| Failure::file("start", &machine, &error))?;
    if output.status.success() {
        let cut = |_| Failure::new(format!("the answers of the replay do not fit into {}", folder.path().display()));
        return read(&complete).map_err(|error| cut(error).remedy("make room there, or set TMPDIR to another folder"));
    }
    let told = String::from_utf8_lossy(&output.stderr);
    let why = told.lines().last().unwrap_or("it ended without a reason");
    let reader = read(&complete).map_err(|_| Failure::new(format!("the replay failed: {why}")))?;
    eprintln!("sing: {why}; what programs did afterwards is not known");
    Ok(reader)
}

/// Reads a recording.
///
/// # Errors
/// The file cannot be read, or is no recording of this build.
pub fn read(path: &Path) -> Outcome<Reader> {
    let file = std::fs::read(path).map_err(|error| Failure::file("read", path, &error))?;
    Reader::new(&file).map_err(|error| Failure::new(format!("the file {} {error}", path.display())))
}
