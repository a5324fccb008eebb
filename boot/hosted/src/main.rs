//! The hosted system: kernel and hosted machine in one program.
//!
//! Parses the command line, builds the machine, reads the system image and passes both to the kernel. Deliberately not
//! here: any decision about the programs inside, which is up to the system image.
#![forbid(unsafe_code)]

mod arguments;
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

/// Runs the system to its end, which ends the process too; returns only if it cannot start.
fn run(arguments: Arguments) -> Result<Infallible, Box<dyn Error>> {
    // Leaked: the kernel reads it as long as the process lives.
    let system_image = system_file::read(&arguments.system)?.leak();
    let configuration = Configuration {
        confinement: arguments.confinement(),
        processors: arguments.processors,
        disks: arguments.disks,
        folders: arguments.folders,
        tap: arguments.tap,
        domains: kernel::wants_domains(system_image),
        memory_bytes: arguments.memory_mib.map(|mebibytes| mebibytes << 20),
        simulated_device: arguments.simulated_device,
        socket_fault_every: arguments.failing_sockets,
    };
    let Started { machine, notices } = Hosted::start(&configuration)?;
    for notice in notices {
        hal_hosted::say(&notice);
    }
    let boot = kernel::Boot { system_image, parameters: arguments.parameters };
    let why = kernel::start(machine, boot);
    Err(format!("system image {}: {why}", arguments.system.display()).into())
}
