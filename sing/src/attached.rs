//! `sing attached`: execs another program that ends with its parent, however that ends. Used for machines in QEMU,
//! which would otherwise outlive the tool.

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use rustix::process::{Signal, set_parent_process_death_signal};

use crate::command_line::AttachedArguments;
use crate::failure::{Failure, Outcome};

/// `sing attached`. Returns only when the program cannot be started.
///
/// # Errors
/// The program cannot be started.
pub fn become_attached(arguments: &AttachedArguments) -> Outcome<u8> {
    let [program, rest @ ..] = arguments.command.as_slice() else {
        return Err(Failure::new("missing program to execute"));
    };
    set_parent_process_death_signal(Some(Signal::KILL))
        .map_err(|error| Failure::new(format!("cannot watch the parent process: {error}")))?;
    let error = Command::new(program).args(rest).exec();
    Err(Failure::file("start", Path::new(program), &error))
}
