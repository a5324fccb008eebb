//! A bare machine that measures, as `sing run` starts it.

use std::process::Command;

use crate::bench::MEBIBYTES;
use crate::builder::UnsafeTests;
use crate::command_line::MachineName;
use crate::failure::{Failure, Outcome};
use crate::repository::Repository;
use crate::systems::{self, Platform};

/// The system that is measured on bare machines.
const SYSTEM: &str = "bench-bare";

/// How the machine is called on the command line.
pub fn word(machine: MachineName) -> &'static str {
    match machine {
        MachineName::Hosted => "hosted",
        MachineName::Qemu => "qemu",
        MachineName::Microvm => "microvm",
    }
}

/// The command that starts the machine with the commands, and further arguments for QEMU. The system is
/// built before: no build runs within the time that the machine has.
///
/// # Errors
/// The system does not build.
pub fn command(
    repository: &Repository,
    machine: MachineName,
    processors: u32,
    more: &[&str],
    commands: &str,
) -> Outcome<Command> {
    let manifest = repository.system_manifest(SYSTEM.as_ref())?;
    systems::prepare(repository, &manifest, Platform::Bare, UnsafeTests::Refused)?;
    let tool = std::env::current_exe().map_err(|error| Failure::new(format!("this tool cannot be found: {error}")))?;
    let mut command = Command::new(tool);
    command.current_dir(repository.root()).args(["run", "--machine", word(machine), "--system", SYSTEM]);
    command.args(["--accel", "tcg", "--processors", &processors.to_string(), "--mem", &format!("{MEBIBYTES}M")]);
    for argument in more {
        command.args(["--qemu", argument]);
    }
    command.args(["-c", commands]);
    Ok(command)
}
