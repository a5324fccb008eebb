//! The command `sing`: parses the command line, calls the library, turns a failure into a sentence
//! and an exit status.
#![forbid(unsafe_code)]

use std::panic::PanicHookInfo;
use std::process::ExitCode;

use clap::Parser;

/// The exit status of a program that SIGPIPE ended, as shells show it.
const READER_IS_GONE: i32 = 141;

fn main() -> ExitCode {
    end_with_the_reader();
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

/// Ends the tool where whoever reads its output has gone, as `head` has: Rust's `print` panics then.
fn end_with_the_reader() {
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic: &PanicHookInfo<'_>| {
        let message = panic.payload_as_str().unwrap_or_default();
        if message.starts_with("failed printing to std") && message.contains("Broken pipe") {
            std::process::exit(READER_IS_GONE);
        }
        usual(panic);
    }));
}
