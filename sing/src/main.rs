//! The command `sing`: parses the command line, calls the library, turns a failure into a sentence
//! and an exit status.
#![forbid(unsafe_code)]

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    if let Some(failure) = sing::compiler::run_as_rustc() {
        eprintln!("sing: {failure}");
        return ExitCode::from(failure.status());
    }
    let command_line = sing::command_line::CommandLine::parse();
    match sing::execute(command_line) {
        Ok(status) => ExitCode::from(status),
        Err(failure) => {
            eprintln!("sing: {failure}");
            ExitCode::from(failure.status())
        }
    }
}
