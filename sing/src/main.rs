//! The command `sing`.
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    sing::main(std::env::args_os().collect())
}
