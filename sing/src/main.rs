//! The command `sing`: parses the command line, calls the library, turns a failure into a sentence
//! and an exit status.
#![forbid(unsafe_code)]

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    if let Some(outcome) = sing::compiler::run_as_rustc() {
        return match outcome {
            Ok(status) => ExitCode::from(status),
            Err(failure) => {
                eprintln!("sing: {failure}");
                ExitCode::from(failure.status())
            }
        };
    }
    let command_line = match sing::command_line::CommandLine::try_parse() {
        Ok(command_line) => command_line,
        Err(error) => {
            let words = std::env::args_os().map(|word| word.to_string_lossy().into_owned());
            sing::spelling::with_what_was_meant(error, words).exit()
        }
    };
    match sing::execute(command_line) {
        Ok(status) => ExitCode::from(status),
        Err(failure) => {
            eprintln!("{}", failure.told_by("sing"));
            ExitCode::from(failure.status())
        }
    }
}
