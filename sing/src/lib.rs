//! The host tool: builds SIP crates into sealed, signed packages, assembles systems, and runs, checks and draws them.
//!
//! [`command_line`] defines its command line; each command is a module. All output is in the folder `sing` inside
//! cargo's output folder. Neighbours: `manifest` and `lang` read and check sources, `package-build` and `package-check`
//! create and check the kernel's input; `xtask` tests and measures the system with it.
//!
//! Deliberately not here: any knowledge of how the kernel runs a program.
#![forbid(unsafe_code)]

pub mod attached;
pub mod attributes;
pub mod autopsy;
pub mod bare;
pub mod bill;
pub mod build;
pub mod build_lock;
pub mod builder;
pub mod cargo;
pub mod check;
pub mod command_line;
pub mod compiled_sources;
pub mod compiler;
pub mod contract_view;
pub mod contracts;
pub mod cores;
pub mod deadlock;
pub mod demo_disk;
pub mod dependencies;
pub mod docs;
pub mod domains;
pub mod failure;
pub mod fingerprint;
pub mod folder;
pub mod graph;
pub mod host_tools;
pub mod image_symbols;
pub mod install;
pub mod keys;
pub mod line_tables;
pub mod measure;
mod native;
pub mod new;
pub mod process;
pub mod process_debug;
pub mod programs;
pub mod progress;
pub mod promises;
pub mod readings;
pub mod replay;
pub mod repository;
pub mod run;
pub mod schema;
pub mod service;
pub mod simulate;
pub mod site;
pub mod source_rules;
pub mod source_words;
mod sources;
pub mod spelling;
pub mod stubs;
pub mod system_list;
pub mod systems;
pub mod tap;
pub mod terminal;
pub mod test;
pub mod test_output;
pub mod tool;
pub mod trace;
pub mod wasm;
pub mod wasm_run;
pub mod workspace;
mod xtask;

use std::ffi::OsString;
use std::panic::PanicHookInfo;
use std::process::ExitCode;

use clap::Parser;
use command_line::{Command, CommandLine};
use failure::Outcome;
use repository::Repository;

/// Exit status of a program killed by SIGPIPE, as reported by shells.
const READER_IS_GONE: i32 = 141;

/// The whole tool: parses and executes a command line, and turns a failure into a message and an exit status.
pub fn main(words: Vec<OsString>) -> ExitCode {
    match compiler::run_as_rustc() {
        Some(outcome) => exit_code(outcome),
        None => carry_out(&words, |command_line| execute(command_line, &words)),
    }
}

/// Parses and executes a command line, of this tool or another with its commands; turns a failure into a message and an
/// exit status.
pub fn carry_out<C: Parser>(words: &[OsString], execute: impl FnOnce(C) -> Outcome<u8>) -> ExitCode {
    end_with_the_reader();
    match C::try_parse_from(words) {
        Ok(command_line) => exit_code(execute(command_line)),
        Err(error) => {
            let words = words.iter().map(|word| word.to_string_lossy().into_owned());
            spelling::with_what_was_meant(error, &C::command(), words).exit()
        }
    }
}

fn exit_code(outcome: Outcome<u8>) -> ExitCode {
    let failed = |failure: failure::Failure| {
        eprintln!("{}", failure.told_by("sing"));
        ExitCode::from(failure.status())
    };
    outcome.map_or_else(failed, ExitCode::from)
}

/// Ends the tool quietly on a broken pipe, for which Rust's `print` panics.
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

/// Executes the command line, which was parsed from `words`, and returns the exit status.
fn execute(command_line: CommandLine, words: &[OsString]) -> Outcome<u8> {
    if command_line.no_install {
        host_tools::forbid_installing()?;
    }
    let repository = Repository::find()?;
    match command_line.command {
        Command::Run(arguments) => run::run(&repository, &arguments),
        Command::Trace(arguments) => trace::trace(&repository, &arguments),
        Command::Build(arguments) => build::build(&repository, &arguments),
        Command::Replay(arguments) => replay::replay(&repository, &arguments),
        Command::Simulate(arguments) => simulate::simulate(&repository, &arguments),
        Command::Debug(arguments) => process_debug::debug(&repository, &arguments),
        Command::Image(arguments) => bare::iso::write(&repository, &arguments),
        Command::Test(arguments) if repository.is_own() => test::test(&repository, &arguments),
        Command::Test(_) | Command::Bench(_) | Command::Base(_) => xtask::become_it(&repository, &words[1..]),
        Command::Check(arguments) => check::check(&repository, &arguments),
        Command::Autopsy(arguments) => autopsy::autopsy(&repository, &arguments),
        Command::Bill(arguments) => bill::print(&repository, &arguments),
        Command::New(arguments) => new::new(&repository, &arguments),
        Command::Schema(arguments) => schema::print(&arguments),
        Command::Graph(arguments) => graph::graph(&repository, &arguments),
        Command::Contract(arguments) => contract_view::show(&repository, &arguments),
        Command::Package(arguments) => install::package(&repository, &arguments),
        Command::Install(arguments) => install::install(&repository, &arguments),
        Command::Upgrade(arguments) => install::upgrade(&repository, &arguments),
        Command::Uninstall(arguments) => install::uninstall(&repository, &arguments),
        Command::Verify(arguments) => install::verify(&repository, &arguments),
        Command::Explain(arguments) => install::explain(&repository, &arguments),
        Command::Systems(arguments) => system_list::list(&repository, &arguments),
        Command::Measure(arguments) => measure::print(&repository, &arguments),
        Command::Key(arguments) => keys::commands::execute(&repository, arguments.command.as_ref()),
        Command::Docs(arguments) => docs::docs(&repository, &arguments),
        Command::Attached(arguments) => attached::become_attached(&arguments),
        Command::Dependencies => builder::print_dependencies(&repository),
    }
}
