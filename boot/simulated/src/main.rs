//! The simulated system: kernel and simulated machine in one program, for one run of one seed.
//!
//! Parses the command line, builds the machine, reads the system image and the disks, and passes all to the kernel.
//! Neighbours: `sing simulate` runs it, many times. Deliberately not here: the judgement of a run.
#![forbid(unsafe_code)]

mod arguments;

use std::alloc::System;
use std::convert::Infallible;
use std::error::Error;
use std::fs::{self, File};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::ExitCode;

use arguments::Arguments;
use clap::Parser;
use hal_simulated::{Configuration, DiskSpecification, Simulated};

#[global_allocator]
static HEAP: kernel::CountedHeap<System> = kernel::CountedHeap::new(System);

fn main() -> ExitCode {
    let Err(error) = run(Arguments::parse());
    eprintln!("singularity: {error}");
    ExitCode::FAILURE
}

/// Runs the system to its end, which ends the process too; returns only if it cannot start.
fn run(arguments: Arguments) -> Result<Infallible, Box<dyn Error>> {
    // Leaked: the kernel reads it as long as the process lives.
    let system_image = read("system image", &arguments.system)?.leak();
    if kernel::wants_domains(system_image) {
        return Err("the simulated machine has no hardware domains; choose a system without them".into());
    }
    let left_at = arguments.disks_left.iter().cloned().map(Some).chain(std::iter::repeat(None));
    let disks = arguments.disks.iter().zip(left_at).map(|(word, left_at)| {
        let (path, read_only) = word.strip_suffix(":ro").map_or((word.as_str(), false), |path| (path, true));
        let content = read("disk", Path::new(path))?;
        Ok(DiskSpecification { content, read_only, left_at })
    });
    let link = arguments.link.map(|number| match std::io::stdin().as_fd().try_clone_to_owned() {
        Ok(socket) => Ok((UnixStream::from(socket), number)),
        Err(error) => Err(format!("link: standard input is no socket ({error}); `sing simulate` makes it one")),
    });
    let machine = Simulated::start(Configuration {
        seed: arguments.seed,
        plan: arguments.plan(),
        processors: arguments.processors,
        memory_bytes: (arguments.memory_mib as usize) << 20,
        disks: disks.collect::<Result<_, String>>()?,
        link: link.transpose()?,
        input: arguments.input.as_deref().map_or(Ok(Vec::new()), |path| read("input", path))?,
        spared: arguments.spared.into_iter().collect(),
        calm_after_ns: arguments.calm_after.map_or(u64::MAX, |seconds| seconds.saturating_mul(1_000_000_000)),
        limit_ns: arguments.limit.saturating_mul(1_000_000_000),
        report: arguments.report,
        trace: arguments.trace.as_deref().map(create).transpose()?,
    })?;
    let boot = kernel::Boot { system_image, parameters: arguments.parameters };
    // Programs can read the number, so a run must not depend on the lengths of paths.
    HEAP.count_from_here();
    let why = kernel::start(machine, boot);
    Err(format!("system image {}: {why}", arguments.system.display()).into())
}

fn read(what: &str, path: &Path) -> Result<Vec<u8>, String> {
    fs::read(path).map_err(|error| format!("{what} {}: it cannot be read ({error}); check the path", path.display()))
}

fn create(path: &Path) -> Result<File, String> {
    File::create(path)
        .map_err(|error| format!("trace {}: it cannot be written ({error}); check the path", path.display()))
}
