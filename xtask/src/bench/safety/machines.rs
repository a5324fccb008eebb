//! Machines for the bench alone: kernels that accept images without checks, with and without the monitor of contracts.
//!
//! They are built in a folder of their own, and start only with a boot parameter that no other kernel takes.
//! Deliberately not here: the systems (`system`).

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::bench::table::Figures;
use crate::bench::{COUNTING, LIMIT, MEBIBYTES, printed_figures};
use sing::bare::kernel::{self, Variant};
use sing::bare::{boot, qemu};
use sing::command_line::MachineName;
use sing::failure::{Failure, Outcome};
use sing::process::run_machine;
use sing::repository::{Repository, write_whole};
use sing::systems::{self, Platform};

const UNCHECKED_IMAGES: &str = "bench-unchecked-images";
const WITHOUT_MONITOR: &str = "bench-without-monitor";
/// Boot parameter that such a kernel wants.
const WANTED: (&str, &str) = ("measure-without-checks", "yes");

/// Whether the kernel holds messages to their contracts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Monitor {
    /// As in every other kernel.
    On,
    /// Not at all.
    Off,
}

/// A machine of the bench.
pub struct Machine {
    kind: MachineName,
    /// Sources, with the bench's own output folder.
    repository: Repository,
    program: PathBuf,
}

impl Machine {
    /// Builds it; `folder` is the bench's.
    ///
    /// # Errors
    /// It does not build.
    pub fn build(repository: &Repository, folder: &Path, kind: MachineName, monitor: Monitor) -> Outcome<Machine> {
        let (word, features) = match monitor {
            Monitor::On => ("monitored", vec![UNCHECKED_IMAGES]),
            Monitor::Off => ("unmonitored", vec![UNCHECKED_IMAGES, WITHOUT_MONITOR]),
        };
        let repository = repository.with_target(folder.join("target"));
        let platform = match kind {
            MachineName::Hosted => {
                systems::build_hosted_with(&repository, &features)?;
                Platform::Hosted
            }
            MachineName::Qemu | MachineName::Microvm => {
                kernel::build_with(&repository, &features, &[])?;
                Platform::Bare
            }
        };
        // The other monitor's kernel is built to the same path.
        let built = platform.program(&repository);
        let program = folder.join(format!("{word}-{platform:?}").to_lowercase());
        std::fs::copy(&built, &program).map_err(|error| Failure::file("copy", &built, &error))?;
        Ok(Machine { kind, repository, program })
    }

    /// Runs commands on it and returns the figures that they print.
    ///
    /// # Errors
    /// It cannot be started, or prints no figures.
    pub fn run(&self, system: &Path, commands: &str) -> Outcome<Figures> {
        let way = format!("bench safety` at `{commands}");
        match self.kind {
            MachineName::Hosted => printed_figures(run_machine(self.hosted(system, commands), LIMIT)?, &way),
            MachineName::Qemu | MachineName::Microvm => {
                let mut output = run_machine(self.bare(system, commands)?, LIMIT)?;
                // QEMU's exit status is never 0 when the guest ends it; what was not measured is missed in the table.
                output.problem = output.problem.filter(|_| output.text.is_empty());
                printed_figures(output, &way)
            }
        }
    }

    fn hosted(&self, system: &Path, commands: &str) -> Command {
        let mut command = Command::new(&self.program);
        command.arg("--system").arg(system).args(["--processors", "1"]);
        command.arg("--parameter").arg(format!("commands={commands}"));
        command.arg("--parameter").arg(format!("{}={}", WANTED.0, WANTED.1));
        command
    }

    fn bare(&self, system: &Path, commands: &str) -> Outcome<Command> {
        let given = [(WANTED.0.into(), WANTED.1.into())];
        let offered = [("terminal", "none".into()), ("commands", commands.into())];
        let boot_image = system.with_extension("boot");
        write_whole(&boot_image, &boot::image(&self.repository, (system, Variant::Standard), &given, &offered)?)?;
        let mut command = Command::new(qemu::find()?);
        command.args(["-nodefaults", "-no-user-config", "-no-reboot", "-display", "none", "-serial", "stdio"]);
        command.args(["-debugcon", "file:/dev/stderr", "-device", "isa-debug-exit,iobase=0x501,iosize=0x04"]);
        command.args(["-M", "q35", "-accel", "tcg", "-smp", "1", "-m", &format!("{MEBIBYTES}M")]).args(COUNTING);
        command.arg("-kernel").arg(&self.program).arg("-initrd").arg(&boot_image);
        Ok(command)
    }
}
