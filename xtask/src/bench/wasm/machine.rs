//! Hosted machines with the benchmark's systems.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use sing::builder::UnsafeTests;
use sing::failure::{Failure, Outcome};
use sing::process::run_machine;
use sing::repository::Repository;
use sing::systems::{self, Platform, Ready};

use super::disk;
use crate::bench::LIMIT;
use crate::bench::web::processes::family_of;

/// The system with everything that computes, and that into which programs are installed.
pub const SYSTEMS: [&str; 2] = ["bench-wasm", "bench-wasm-install"];
/// How often the memory of a process is looked at.
const PAUSE: Duration = Duration::from_millis(20);

/// What is needed to run machines.
pub struct Machines {
    compute: Ready,
    install: Ready,
    disk: PathBuf,
    base: PathBuf,
}

impl Machines {
    /// Builds the systems and the disk.
    ///
    /// # Errors
    /// Something does not build.
    pub fn prepare(repository: &Repository) -> Outcome<Machines> {
        let ready = |name: &str| {
            let manifest = repository.system_manifest(name.as_ref())?;
            systems::prepare(repository, &manifest, Platform::Hosted, UnsafeTests::Refused)
        };
        let [compute, install] = SYSTEMS.map(ready);
        let disk = disk::write(repository)?;
        Ok(Machines { compute: compute?, install: install?, disk, base: repository.base().into() })
    }

    /// The folder with the system's sources, and the modules.
    pub fn base(&self) -> &Path {
        &self.base
    }

    /// The image of the system that computes.
    pub fn image(&self) -> &Path {
        &self.compute.image
    }

    /// Runs commands where everything is installed; returns what was printed. Nothing stays on the disk.
    ///
    /// # Errors
    /// The machine cannot be started, or ends in disorder.
    pub fn compute(&self, commands: &str) -> Outcome<String> {
        let mut command = command(&self.compute, commands);
        command.arg("--disk").arg(format!("{}:ro", self.disk.display()));
        run(command, commands)
    }

    /// Runs commands on a fresh disk, where nothing was installed yet; returns what was printed.
    ///
    /// # Errors
    /// As [`compute`](Self::compute); the disk cannot be copied.
    pub fn install(&self, commands: &str) -> Outcome<String> {
        let copy = self.disk.with_extension("copy");
        std::fs::copy(&self.disk, &copy).map_err(|error| Failure::file("write", &copy, &error))?;
        let mut command = command(&self.install, commands);
        command.arg("--disk").arg(&copy);
        let text = run(command, commands);
        // It is written again by the next run.
        let _ = std::fs::remove_file(&copy);
        text
    }

    /// Runs commands; returns what was printed and the most memory that the host's process had, in bytes.
    ///
    /// # Errors
    /// The machine cannot be started, or ends in disorder.
    pub fn watched(&self, commands: &str) -> Outcome<(String, u64)> {
        let mut command = command(&self.compute, commands);
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        let cannot = |error: std::io::Error| Failure::file("start", &self.compute.machine, &error);
        let mut child = command.spawn().map_err(cannot)?;
        let output = child.stdout.take();
        let reader = std::thread::spawn(move || {
            let mut text = String::new();
            // What was printed before a failure still counts.
            let _ = output.map(|mut output| output.read_to_string(&mut text));
            text
        });
        let peak = peak_bytes(&mut child, LIMIT);
        // It may have ended by itself.
        let _ = child.kill();
        let _ = child.wait();
        let text = reader.join().unwrap_or_default();
        peak.map(|peak| (text, peak))
    }
}

fn command(ready: &Ready, commands: &str) -> Command {
    let mut command = Command::new(&ready.machine);
    command.arg("--system").arg(&ready.image);
    command.arg("--parameter").arg(format!("commands={commands}"));
    command
}

fn run(command: Command, commands: &str) -> Outcome<String> {
    let output = run_machine(command, LIMIT)?;
    match output.problem {
        None => Ok(output.text),
        Some(problem) => {
            Err(Failure::new(format!("`{commands}` could not be measured: {problem}")).details(output.text))
        }
    }
}

/// Waits for a process to end in order, at most so long; returns the most memory that it and those it started had.
fn peak_bytes(child: &mut Child, limit: Duration) -> Outcome<u64> {
    let start = Instant::now();
    let mut peak = 0;
    loop {
        let ended = child.try_wait().map_err(|error| Failure::new(format!("cannot wait for a machine: {error}")))?;
        match ended {
            Some(status) if status.success() => return Ok(peak),
            Some(status) => return Err(Failure::new(format!("the machine ended with {status}"))),
            None if start.elapsed() > limit => {
                return Err(Failure::new(format!("the machine timed out after {} seconds", limit.as_secs())));
            }
            None => {}
        }
        // A machine without privileges is a process of the one that was started.
        let family = family_of(child.id())
            .into_iter()
            .filter_map(|number| kibibytes(&std::fs::read_to_string(format!("/proc/{number}/status")).ok()?, "VmHWM:"));
        peak = peak.max(family.sum::<u64>() << 10);
        std::thread::sleep(PAUSE);
    }
}

/// A field of /proc/PID/status, in KiB.
fn kibibytes(status: &str, field: &str) -> Option<u64> {
    let value = status.lines().find_map(|line| line.strip_prefix(field))?;
    value.trim().strip_suffix("kB")?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_read_from_proc() {
        assert_eq!(kibibytes("Name:\tx\nVmHWM:\t    5432 kB\n", "VmHWM:"), Some(5432));
        assert_eq!(kibibytes("Name:\tx\n", "VmHWM:"), None);
    }

    #[test]
    fn the_peak_of_a_process_is_seen() {
        let mut child = Command::new("sleep").arg("0.2").spawn().expect("sleep is there");
        let limit = Duration::from_secs(60);
        assert!(peak_bytes(&mut child, limit).expect("it ends in order") > 0);
        let mut failing = Command::new("false").spawn().expect("false is there");
        assert!(peak_bytes(&mut failing, limit).is_err());
        let mut endless = Command::new("sleep").arg("600").spawn().expect("sleep is there");
        let timed_out = peak_bytes(&mut endless, Duration::from_millis(50)).expect_err("it goes on").to_string();
        assert!(timed_out.contains("timed out"), "{timed_out}");
        endless.kill().and_then(|()| endless.wait()).expect("it is ended");
    }
}
