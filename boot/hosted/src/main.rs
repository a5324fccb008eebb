//! The hosted system: kernel and hosted machine in one program.
//!
//! Parses the command line, builds the machine, reads the system image and hands both to the kernel.
//! Deliberately not here: any decision about what runs inside; that is the system image's.
#![forbid(unsafe_code)]

mod arguments;
mod system_file;

use std::error::Error;
use std::process::ExitCode;

use arguments::Arguments;
use clap::Parser;
use hal_api::Machine;
use hal_hosted::{Configuration, Hosted, Started};

fn main() -> ExitCode {
    hal_hosted::own_process();
    let arguments = Arguments::parse();
    match run(arguments) {
        Ok((machine, exit_status)) => machine.power_off(exit_status),
        Err(error) => {
            eprintln!("singularity: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Runs the system to its end; answers the machine, still to be powered off, and the exit status.
fn run(arguments: Arguments) -> Result<(&'static Hosted, u8), Box<dyn Error>> {
    let system_image = system_file::read(&arguments.system)?;
    let configuration = Configuration { processors: arguments.processors, disks: arguments.disks };
    let Started { machine, notices } = Hosted::start(&configuration)?;
    for notice in notices {
        eprintln!("singularity: {notice}");
    }
    let boot = kernel::Boot { system_image, parameters: arguments.parameters };
    Ok((machine, kernel::start(machine, boot)))
}
