//! `sing debug` of a machine that is a process of this host: the hosted one, or the simulated one at a seed.
//!
//! The debugger starts the machine, without confinement, and leaves it the signals that it lives on. As on a bare
//! machine, a hook of the kernel tells of each image that it has mapped. Neighbours: `bare::debug`, which has the bare
//! machines and what both need; [`lldb`]. Deliberately not here: hardware domains, which are processes of their own.

pub mod arguments;
mod lldb;
mod replay;

use std::ffi::OsString;
use std::fmt::Write;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use signal_hook::consts::SIGINT;
use signal_hook::iterator::Signals;

use crate::bare::debug::{self, BATCH, FRAMES, IMAGES, LINES, SETTINGS, SOFTWARE, plain};
use crate::command_line::MachineName;
use crate::failure::{Failure, Outcome};
use crate::host_tools::{self, Tool};
use crate::repository::Repository;
use crate::simulate::SPARED;
use crate::systems::{self, Platform};
use crate::{demo_disk, folder, run};

use arguments::{DebugArguments, DebuggerName, Stop};

/// Signals of the hosted machine: its timer, calls between processors, refused system calls.
const OF_HOSTED: &str = "SIGVTALRM SIGUSR1 SIGUSR2 SIGSYS SIGPIPE";
/// The simulated machine also takes the trap of a read of the cycle counter.
const OF_SIMULATED: &str = "SIGVTALRM SIGUSR1 SIGUSR2 SIGSYS SIGPIPE SIGSEGV";
/// Faults that single-step, and groups with one of them.
const STEPPING: [&str; 5] = ["step", "kernel-step", "race", "all", "harmless"];

/// A machine to debug.
struct Target {
    program: PathBuf,
    arguments: Vec<String>,
    /// Folder of the images' symbols.
    images: PathBuf,
    /// Roots of the sources: of a workspace of one's own, and of the system.
    sources: Vec<PathBuf>,
    /// Signals that are the machine's own.
    signals: &'static str,
    /// More commands for gdb, before the person's.
    more: String,
    /// What gdb says first.
    greeting: &'static str,
}

/// What gdb says of a machine that has not been started.
const NOT_STARTED: &str = "`run` starts the machine.";

/// `sing debug`. Returns the debugger's exit status.
///
/// # Errors
/// The system does not build, or the machine or the debugger cannot be started.
pub fn debug(repository: &Repository, arguments: &DebugArguments) -> Outcome<u8> {
    if let Some(file) = &arguments.replay {
        return replay::debug(repository, arguments, file);
    }
    let is_simulated = arguments.seed.is_some();
    let is_process = is_simulated || arguments.prepare || arguments.debugger == DebuggerName::Lldb;
    match arguments.run.machine {
        Some(MachineName::Hosted) => {}
        None if is_process || arguments.stop == Stop::Program => {}
        Some(MachineName::Qemu | MachineName::Microvm) if is_process => {
            return Err(Failure::new("--debugger lldb and --prepare apply to hosted and simulated machines only")
                .remedy("use gdb, or --machine hosted"));
        }
        _ => return debug::debug(repository, arguments),
    }
    refuse(arguments)?;
    let target = target(repository, arguments)?;
    if arguments.prepare {
        let path = repository.output("debug/launch.py");
        crate::repository::write_if_changed(&path, lldb::module(&target)?.as_bytes())?;
        println!("{}", path.display());
        return Ok(0);
    }
    match arguments.debugger {
        DebuggerName::Gdb => run_gdb(&target, arguments),
        DebuggerName::Lldb => lldb::run(&target, arguments),
    }
}

fn refuse(arguments: &DebugArguments) -> Outcome<()> {
    let faults = arguments.exactly.as_deref().unwrap_or(&arguments.faults);
    let kinds = faults.split(',').map(|fault| fault.split(['/', ':']).next().unwrap_or_default());
    if arguments.seed.is_some() && kinds.into_iter().any(|kind| STEPPING.contains(&kind)) {
        return Err(Failure::new("`step`, `kernel-step` and `race` need the processor's trap flag, as debuggers do")
            .remedy("name the kinds without it, as in --faults preempt,switch,delay; the default has none"));
    }
    let has_one = arguments.run.processors == Some(1);
    if arguments.stop == Stop::Program && (arguments.seed.is_some() || has_one) {
        return Err(Failure::new("--stop program stops a processor, and this machine has no other that goes on")
            .remedy("use --stop machine, or a hosted machine with more --processors"));
    }
    if arguments.stop == Stop::Program && arguments.debugger == DebuggerName::Lldb {
        return Err(Failure::new("lldb stops all threads of a process").remedy("use --debugger gdb, or --stop machine"));
    }
    run::refuse_bare_options(&arguments.run)
}

fn target(repository: &Repository, arguments: &DebugArguments) -> Outcome<Target> {
    let mut given = arguments.run.clone();
    let usual = if given.tap.is_some() { systems::HOSTED_TAP } else { systems::HOSTED };
    let system = repository.system_manifest(given.system.as_deref().unwrap_or(Path::new(usual)))?;
    let platform = if arguments.seed.is_some() { Platform::Simulated } else { Platform::Hosted };
    let ready = systems::current(repository, &system, platform, given.unsafe_tests())?;
    let with_lines = debug::images_with_lines(repository, &arguments.lines)?;
    let images = debug::write_images(repository, &ready.image, &with_lines)?;
    let command = match arguments.seed {
        None => {
            let disks = run::disks(repository, &given)?;
            given.unconfined = true;
            if arguments.stop == Stop::Program && given.processors.is_none() {
                // The stopped one, and one that goes on, on every host.
                given.processors = Some(2);
            }
            run::machine_command(&ready, &disks, &folder::read_all(&given.folder)?, &given)
        }
        Some(seed) => {
            // As `sing simulate` has it, which changes no disk.
            let demo = given.disk.is_empty().then(|| demo_disk::path(repository)).transpose()?;
            let disks: Vec<PathBuf> = given.disk.iter().cloned().chain(demo).collect();
            simulated(&ready.machine, &ready.image, &disks, seed, arguments)
        }
    };
    Ok(Target {
        program: ready.machine,
        arguments: texts(&command)?,
        images,
        sources: sources(repository),
        signals: if arguments.seed.is_some() { OF_SIMULATED } else { OF_HOSTED },
        more: String::new(),
        greeting: NOT_STARTED,
    })
}

/// Returns the arguments of a command.
fn texts(command: &Command) -> Outcome<Vec<String>> {
    let text = |word: &std::ffi::OsStr| {
        word.to_str().map(String::from).ok_or_else(|| Failure::new(format!("{} is not UTF-8", word.display())))
    };
    command.get_args().map(text).collect()
}

/// Returns the roots of the sources.
fn sources(repository: &Repository) -> Vec<PathBuf> {
    let mut roots = vec![repository.root().to_path_buf(), repository.base().to_path_buf()];
    roots.dedup();
    roots
}

/// Returns the command of one run of the simulated machine.
fn simulated(machine: &Path, image: &Path, disks: &[PathBuf], seed: u64, arguments: &DebugArguments) -> Command {
    let mut command = Command::new(machine);
    command.arg("--system").arg(image).args(["--seed", &seed.to_string()]);
    match &arguments.exactly {
        Some(exactly) => command.args(["--exactly", exactly]),
        None => command.args(["--faults", &arguments.faults]),
    };
    for program in SPARED {
        command.args(["--spare", program]);
    }
    command.args(["--processors", &arguments.run.processors.unwrap_or(1).to_string()]);
    for disk in disks {
        command.arg("--disk").arg(disk);
    }
    let commands = arguments.run.commands.iter().map(|commands| format!("commands={commands}"));
    for parameter in commands.chain(arguments.run.parameter.iter().cloned()) {
        command.args(["--parameter", &parameter]);
    }
    command
}

fn run_gdb(target: &Target, arguments: &DebugArguments) -> Outcome<u8> {
    let gdb = host_tools::require(&Tool::GDB)?;
    let folder = tempfile::Builder::new().prefix("sing-debug-").tempdir().map_err(cannot_start)?;
    let (script, batch) = (folder.path().join("script"), folder.path().join("batch"));
    std::fs::write(&batch, arguments.batch.join("\n") + "\n").map_err(cannot_start)?;
    let is_batch = !arguments.batch.is_empty();
    let text = gdb_commands(target, is_batch.then_some(batch.as_path()), arguments.stop)?;
    std::fs::write(&script, text).map_err(cannot_start)?;
    let mut command = Command::new(&gdb);
    command.args(["-q", "-nx"]);
    if is_batch {
        command.arg("-batch").stdin(Stdio::null());
    }
    command.arg("-x").arg(&script).arg("--args").arg(&target.program).args(&target.arguments);
    end_of(command, &gdb)
}

/// Returns gdb's startup commands.
fn gdb_commands(target: &Target, batch: Option<&Path>, stop: Stop) -> Outcome<String> {
    let mut out = String::from(SETTINGS);
    // Writing to a String cannot fail.
    let _ = writeln!(out, "set auto-load safe-path");
    let _ = writeln!(out, "set print thread-events off");
    let _ = writeln!(out, "handle {} nostop noprint pass", target.signals);
    if stop == Stop::Program {
        out.push_str("set non-stop on\n");
    }
    for root in &target.sources {
        let _ = writeln!(out, "directory {}", plain(root)?);
    }
    let _ = writeln!(out, "python point, folder, lines = '{SOFTWARE}', '{}', '{LINES}'", plain(&target.images)?);
    out.push_str(IMAGES);
    out.push_str(FRAMES);
    out.push_str(&target.more);
    match batch {
        None => {
            let _ = writeln!(out, "echo {}\\n", target.greeting);
        }
        Some(batch) => {
            let _ = writeln!(out, "python batch = '{}'", plain(batch)?);
            out.push_str(BATCH);
        }
    }
    Ok(out)
}

/// Runs a debugger to its end; Ctrl-C is the debugger's, which then stops the machine.
fn end_of(mut command: Command, debugger: &Path) -> Outcome<u8> {
    let _interrupts = Signals::new([SIGINT]).map_err(cannot_start)?;
    let status = command.status().map_err(|error| Failure::file("start", debugger, &error))?;
    Ok(status.code().or_else(|| status.signal().map(|signal| 128 + signal)).map_or(1, |code| code as u8))
}

fn cannot_start(error: std::io::Error) -> Failure {
    Failure::new(format!("cannot start the debugger: {error}"))
}

/// Returns words for the command line of a debugger.
fn words<const N: usize>(words: [&str; N]) -> Vec<OsString> {
    words.iter().map(OsString::from).collect()
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::command_line::{self, CommandLine};

    fn arguments(words: &[&str]) -> DebugArguments {
        let line = CommandLine::try_parse_from([&["sing", "debug"], words].concat()).expect("a command line");
        match line.command {
            command_line::Command::Debug(arguments) => arguments,
            other => panic!("{other:?}"),
        }
    }

    fn target() -> Target {
        Target {
            program: "/m".into(),
            arguments: vec!["--x".into()],
            images: "/i".into(),
            sources: vec!["/s".into()],
            signals: OF_HOSTED,
            more: String::new(),
            greeting: NOT_STARTED,
        }
    }

    #[test]
    fn gdb_leaves_the_machine_its_signals_and_gets_the_images() {
        let script = gdb_commands(&target(), None, Stop::Machine).expect("plain paths");
        assert!(script.contains("handle SIGVTALRM SIGUSR1 SIGUSR2 SIGSYS SIGPIPE nostop noprint pass\n"), "{script}");
        assert!(script.contains("point, folder, lines = 'BP_BREAKPOINT', '/i', '.lines'\n"), "{script}");
        assert!(!script.contains("non-stop"), "{script}");
        let one = gdb_commands(&target(), Some(Path::new("/b")), Stop::Program).expect("plain paths");
        assert!(one.contains("set non-stop on\n") && one.ends_with(BATCH), "{one}");
    }

    #[test]
    fn what_a_machine_cannot_do_is_refused_with_a_remedy() {
        for words in [
            &["--seed", "3", "--faults", "step"][..],
            &["--seed", "3", "--faults", "switch,race/4"],
            &["--seed", "3", "--faults", "harmless"],
            &["--seed", "3", "--exactly", "step:4,cut:2"],
            &["--seed", "3", "--stop", "program"],
            &["--machine", "hosted", "--stop", "program", "--processors", "1"],
            &["--machine", "hosted", "--stop", "program", "--debugger", "lldb"],
            &["--machine", "hosted", "--mem", "64M"],
        ] {
            refuse(&arguments(words)).expect_err(&words.join(" "));
        }
        for words in [&["--seed", "3"][..], &["--seed", "3", "--exactly", "cut:2"], &["--machine", "hosted"]] {
            refuse(&arguments(words)).expect("fine");
        }
    }
}
