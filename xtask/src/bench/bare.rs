//! A bare machine that measures, as `sing run` starts it.

use std::process::Command;

use crate::bench::LIMIT;
use sing::builder::UnsafeTests;
use sing::command_line::MachineName;
use sing::failure::{Failure, Outcome};
use sing::process::{MachineOutput, run_machine};
use sing::repository::Repository;
use sing::systems::{self, Platform};

/// A machine and what it is to do.
#[derive(Debug, Clone, Copy)]
pub struct Machine<'a> {
    /// Its kind; not the hosted one.
    pub kind: MachineName,
    /// Its processors.
    pub processors: u32,
    /// Its memory.
    pub mebibytes: u32,
    /// Name of its system.
    pub system: &'a str,
    /// Parameters of its system, as `NAME=VALUE`.
    pub parameters: &'a [&'a str],
    /// Further arguments for QEMU.
    pub qemu: &'a [&'a str],
    /// What its shell does.
    pub commands: &'a str,
}

impl Machine<'_> {
    /// Runs it to its end. The system is built before: no build runs within the time that the machine has.
    ///
    /// # Errors
    /// The system does not build, or the machine cannot be started.
    pub fn run(&self, repository: &Repository) -> Outcome<MachineOutput> {
        let manifest = repository.system_manifest(self.system.as_ref())?;
        systems::prepare(repository, &manifest, Platform::Bare, UnsafeTests::Refused)?;
        let tool = sing::tool::path().map_err(|error| Failure::new(format!("this tool cannot be found: {error}")))?;
        let mut command = Command::new(tool);
        command.current_dir(repository.base()).args(["run", "--machine", self.word(), "--system", self.system]);
        command.args(["--accel", "tcg", "--processors", &self.processors.to_string()]);
        command.args(["--mem", &format!("{}M", self.mebibytes)]);
        for parameter in self.parameters {
            command.args(["--parameter", parameter]);
        }
        for argument in self.qemu {
            command.args(["--qemu", argument]);
        }
        command.args(["-c", self.commands]);
        run_machine(command, LIMIT)
    }

    /// How a person starts it, behind the tool's name.
    pub fn way(&self) -> String {
        format!("run --machine {} --system {} -c '{}'", self.word(), self.system, self.commands)
    }

    /// Its kind as the command line calls it.
    pub fn word(&self) -> &'static str {
        match self.kind {
            MachineName::Hosted => "hosted",
            MachineName::Qemu => "qemu",
            MachineName::Microvm => "microvm",
        }
    }
}
