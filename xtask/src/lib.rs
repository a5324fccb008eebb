//! Developer commands of the host tool: test tiers, benchmarks, fuzzing, and the count of the trusted computing base.
//! `sing` builds this program on first use and executes it.
//!
//! [`command_line`] defines the commands; each is a module. `sing`, used as a library, builds systems. Deliberately not
//! here: anything that a separate workspace needs.
#![forbid(unsafe_code)]

mod base;
mod bench;
pub mod command_line;
mod fuzz;
mod hostile;
mod kills;
mod needs;
mod test;
mod wasm_spec;

use std::ffi::OsString;
use std::process::ExitCode;

use command_line::{Command, CommandLine};
use sing::failure::Outcome;
use sing::repository::Repository;
use sing::{host_tools, tool};

/// Parses the command line, executes the command, and reports a failure as a message and an exit status.
pub fn main(words: &[OsString]) -> ExitCode {
    sing::carry_out(words, execute)
}

fn execute(command_line: CommandLine) -> Outcome<u8> {
    // Started without `sing`, it finds it beside itself, where cargo puts both.
    let beside = || std::env::current_exe().ok().map(|program| program.with_file_name("sing"));
    command_line.sing.or_else(beside).into_iter().for_each(tool::set);
    if command_line.no_install {
        host_tools::forbid_installing()?;
    }
    let repository = Repository::find()?;
    match command_line.command {
        Command::Test(arguments) => test::test(&repository, &arguments),
        Command::Bench(arguments) => bench::bench(&repository, &arguments),
        Command::Base(arguments) => base::print(&repository, &arguments),
    }
}
