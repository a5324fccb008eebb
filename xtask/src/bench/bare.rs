//! A bare machine for a measurement, started like `sing run`.

use std::path::Path;
use std::process::Command;

use crate::bench::LIMIT;
use sing::builder::UnsafeTests;
use sing::command_line::MachineName;
use sing::domains::Configuration;
use sing::failure::{Failure, Outcome};
use sing::process::{MachineOutput, run_machine};
use sing::repository::Repository;
use sing::systems::{self, Platform};

/// A machine and its commands.
#[derive(Debug, Clone, Copy)]
pub struct Machine<'a> {
    /// Not `hosted`.
    pub kind: MachineName,
    /// Its processors.
    pub processors: u32,
    /// Its memory.
    pub mebibytes: u32,
    /// Name of its system.
    pub system: &'a str,
    /// Parameters of its system, as `NAME=VALUE`.
    pub parameters: &'a [&'a str],
    /// Configuration of hardware domains; `None` for those of its manifest.
    pub domains: Option<Configuration>,
    /// Folder of the host that it has at `/fs/bench`, read only.
    pub folder: Option<&'a Path>,
    /// Further arguments for QEMU.
    pub qemu: &'a [&'a str],
    /// Commands for its shell.
    pub commands: &'a str,
}

impl Machine<'_> {
    /// Builds the system, then runs the machine to its end; the timeout covers the run only.
    ///
    /// # Errors
    /// The system does not build, or the machine cannot be started.
    pub fn run(&self, repository: &Repository) -> Outcome<MachineOutput> {
        let manifest = repository.system_manifest(self.system.as_ref())?;
        systems::prepare(repository, &manifest, Platform::Bare, UnsafeTests::Refused)?;
        let tool = sing::tool::path().map_err(|error| Failure::new(format!("cannot find this executable: {error}")))?;
        let mut command = Command::new(tool);
        command.current_dir(repository.base()).args(["run", "--machine", self.word(), "--system", self.system]);
        command.args(["--accel", "tcg", "--processors", &self.processors.to_string()]);
        command.args(["--mem", &format!("{}M", self.mebibytes)]);
        if let Some(domains) = self.domains {
            command.args(["--domains", domains.word()]);
        }
        for parameter in self.parameters {
            command.args(["--parameter", parameter]);
        }
        if let Some(folder) = self.folder {
            command.arg("--folder").arg(format!("bench={}:ro", folder.display()));
        }
        for argument in self.qemu {
            command.args(["--qemu", argument]);
        }
        command.args(["-c", self.commands]);
        run_machine(command, LIMIT)
    }

    /// Arguments of `sing` that start it.
    pub fn way(&self) -> String {
        let domains = self.domains.map_or(String::new(), |domains| format!(" --domains {}", domains.word()));
        format!("run --machine {} --system {}{domains} -c '{}'", self.word(), self.system, self.commands)
    }

    /// The value of `--machine`.
    pub fn word(&self) -> &'static str {
        match self.kind {
            MachineName::Hosted => "hosted",
            MachineName::Qemu => "qemu",
            MachineName::Microvm => "microvm",
        }
    }
}
