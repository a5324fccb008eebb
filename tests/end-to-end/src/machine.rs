//! One run of the hosted machine.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::run::{LIMIT, Run, finish};
use crate::tool::{machine_program, repository, sing, system_image};

/// A machine to start.
#[derive(Debug, Clone)]
pub struct Machine {
    system: Option<PathBuf>,
    disks: Vec<PathBuf>,
    folders: Vec<String>,
    limit: Duration,
    processors: Option<u32>,
    parameters: Vec<String>,
}

impl Default for Machine {
    fn default() -> Machine {
        Machine::new()
    }
}

impl Machine {
    /// The hosted system without disks.
    pub fn new() -> Machine {
        Machine {
            system: None,
            disks: Vec::new(),
            folders: Vec::new(),
            limit: LIMIT,
            processors: None,
            parameters: Vec::new(),
        }
    }

    /// Adds a disk.
    pub fn disk(mut self, path: impl AsRef<Path>) -> Machine {
        self.disks.push(path.as_ref().into());
        self
    }

    /// Adds a folder of this host, as `NAME=PATH[:ro][:follow]`.
    pub fn folder(mut self, specification: &str) -> Machine {
        self.folders.push(specification.into());
        self
    }

    /// Uses another system image.
    pub fn system(mut self, path: impl AsRef<Path>) -> Machine {
        self.system = Some(path.as_ref().into());
        self
    }

    /// Sets the timeout.
    pub fn limit(mut self, limit: Duration) -> Machine {
        self.limit = limit;
        self
    }

    /// Sets the number of processors.
    pub fn processors(mut self, count: u32) -> Machine {
        self.processors = Some(count);
        self
    }

    /// Adds a parameter `NAME=VALUE` of the root program.
    pub fn parameter(mut self, parameter: &str) -> Machine {
        self.parameters.push(parameter.into());
        self
    }

    /// Starts the hosted machine directly and runs shell commands in it.
    #[track_caller]
    pub fn run(&self, commands: &str) -> Run {
        finish(self.command(Some(commands)), commands, self.limit)
    }

    /// Runs shell commands through the tool, as a user would type it: `sing run --disk ... -c ...`.
    #[track_caller]
    pub fn run_by_tool(&self, commands: &str) -> Run {
        // Builds in advance, so that the tool's build does not count against the timeout.
        machine_program();
        let mut command = Command::new(sing());
        command.arg("run").current_dir(repository());
        for disk in &self.disks {
            command.arg("--disk").arg(disk);
        }
        for folder in &self.folders {
            command.arg("--folder").arg(folder);
        }
        finish(command_with(command, commands), commands, self.limit)
    }

    /// Returns the command that starts the machine; without shell commands, for interactive use.
    pub fn command(&self, commands: Option<&str>) -> Command {
        let mut command = Command::new(machine_program());
        command.arg("--system").arg(self.system.clone().unwrap_or_else(system_image));
        for disk in &self.disks {
            command.arg("--disk").arg(disk);
        }
        for folder in &self.folders {
            command.arg("--folder").arg(folder);
        }
        if let Some(count) = self.processors {
            command.arg("--processors").arg(count.to_string());
        }
        for parameter in &self.parameters {
            command.arg("--parameter").arg(parameter);
        }
        if let Some(commands) = commands {
            command.arg("--parameter").arg(format!("commands={commands}"));
        }
        command
    }
}

fn command_with(mut command: Command, commands: &str) -> Command {
    command.args(["-c", commands]);
    command
}
