//! The hosted system: kernel and hosted machine in one program.
//!
//! Parses the command line, builds the machine, reads the system image and passes both to the kernel. Deliberately not
//! here: any decision about the programs inside, which is up to the system image.
#![forbid(unsafe_code)]

mod arguments;
mod replay;
mod system_file;

use std::alloc::System;
use std::convert::Infallible;
use std::error::Error;
use std::process::ExitCode;

use arguments::Arguments;
use clap::Parser;
use hal_hosted::{Configuration, Hosted, Started};

#[global_allocator]
static HEAP: kernel::CountedHeap<System> = kernel::CountedHeap::new(System);

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    if let Some(service) = arguments.service() {
        hal_hosted::run_as_service(service);
    }
    hal_hosted::own_process(arguments.confinement());
    let Err(error) = run(arguments);
    hal_hosted::say_last(&error.to_string());
    ExitCode::FAILURE
}

/// Runs or replays the system to its end, which ends the process too; returns only if it cannot start.
fn run(arguments: Arguments) -> Result<Infallible, Box<dyn Error>> {
    if let Some(file) = &arguments.replay {
        return replay::run(&arguments, file);
    }
    let path = arguments.system.clone().unwrap_or_default();
    // Leaked: the kernel reads it as long as the process lives.
    let system_image = system_file::read(&path)?.leak();
    let configuration = Configuration {
        confinement: arguments.confinement(),
        processors: arguments.processors,
        recording: arguments.record.as_deref().map(replay::create).transpose()?,
        replayed: None,
        disks: arguments.disks,
        folders: arguments.folders,
        tap: arguments.tap,
        domains: kernel::wants_domains(system_image),
        memory_bytes: arguments.memory_mib.map(|mebibytes| mebibytes << 20),
        simulated_device: arguments.simulated_device,
        socket_fault_every: arguments.failing_sockets,
    };
    let boot = kernel::Boot { system_image, parameters: arguments.parameters };
    let why = kernel::start(started(&configuration)?, boot);
    Err(format!("system image {}: {why}", path.display()).into())
}

/// Starts the machine, and tells what is not as it was configured.
fn started(configuration: &Configuration) -> Result<&'static Hosted, Box<dyn Error>> {
    let Started { machine, notices } = Hosted::start(configuration)?;
    for notice in notices {
        hal_hosted::say(&notice);
    }
    Ok(machine)
}
