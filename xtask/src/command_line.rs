//! The commands that `sing` passes on to this program, as clap parses them; these definitions are the help texts.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

use sing::command_line::{MachineName, TestArguments};

/// Tests, measures and counts Singularity in Rust.
#[derive(Debug, Parser)]
#[command(name = "sing", bin_name = "cargo sing", version, disable_help_subcommand = true)]
pub struct CommandLine {
    /// Path of the `sing` that started this program.
    #[arg(long, hide = true)]
    pub sing: Option<PathBuf>,
    /// Do not install host packages: report what is missing, or skip tests
    #[arg(long, global = true)]
    pub no_install: bool,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run every tier of tests
    Test(TestArguments),
    /// Measure the operations of the system beside Linux's
    Bench(BenchArguments),
    /// Count the trusted computing base: lines and uses of `unsafe`, crate by crate
    Base(BaseArguments),
}

/// Default number of rounds for disk and web.
pub const ROUNDS: u16 = 3;

/// `sing bench`.
#[derive(Debug, Args)]
pub struct BenchArguments {
    /// What to measure
    #[arg(value_enum, default_value = "table", value_name = "WHAT")]
    pub what: BenchSubject,
    /// Kind of machine; bare machines count instructions
    #[arg(long, value_enum, default_value = "hosted")]
    pub machine: MachineName,
    /// Linux kernel to compare a bare machine with; default: Debian's cloud kernel, which is fetched
    #[arg(long, value_name = "FILE")]
    pub linux_kernel: Option<PathBuf>,
    /// Output file for the figures, as JSON
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Rounds of disk, web, links, safety and wasm; medians are shown
    #[arg(long, value_name = "N", default_value_t = ROUNDS, value_parser = clap::value_parser!(u16).range(1..=100))]
    pub rounds: u16,
    /// The system to measure the web server of, or to install into: a file, or the name of one in systems/
    #[arg(long, value_name = "FILE")]
    pub system: Option<PathBuf>,
    /// Measure the web server over a TAP interface of this name, with a network stack of the system's own, in a
    /// network namespace that ends with the measurement
    #[arg(long, value_name = "NAME")]
    pub tap: Option<String>,
    /// Profile the web server by function with the host's `perf`, too
    #[arg(long)]
    pub functions: bool,
    /// Measure the web server with a recording of its machine, too; the file takes up to a gigabyte
    #[arg(long)]
    pub recorded: bool,
    /// Measure only figures of disk, web or links whose names contain this
    #[arg(long, value_name = "NAME")]
    pub only: Option<String>,
    /// Output folder for SVG charts of the figures of disk or domains
    #[arg(long, value_name = "FOLDER")]
    pub charts: Option<PathBuf>,
}

/// What `sing bench` measures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum BenchSubject {
    /// The operations of the papers' tables, beside Linux
    Table,
    /// Concurrent pairs of SIPs on one to four processors
    Pairs,
    /// Boot time by step, kernel size and memory use
    Boot,
    /// Files of an ext2 disk, beside Linux with the same disk
    Disk,
    /// Requests to the web server, beside nginx with the same files
    Web,
    /// A file of 3 MiB over links that lose, delay and reorder packets, beside nginx over Linux's TCP
    Links,
    /// Verifying and installing a package with an image of 500 KB
    Install,
    /// The operations in each configuration of hardware domains, beside Linux
    Domains,
    /// The operations without the run-time checks of programs, and without the monitor of contracts
    Safety,
    /// Sizes of images, with and without the code that their programs do not use
    Images,
    /// WebAssembly programs beside native ones and wasmtime, which it downloads and builds
    Wasm,
    /// The compiler of WebAssembly with its register allocator as a child, and a checker as another
    Compiler,
}

/// `sing base`.
#[derive(Debug, Args)]
pub struct BaseArguments {
    /// System manifest: a file, or the name of one in systems/
    #[arg(long, value_name = "FILE", default_value = "hosted")]
    pub system: PathBuf,
    /// Count the lines in machines and images, too; rebuilds them with line tables
    #[arg(long)]
    pub compiled: bool,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;
    use clap::error::ErrorKind;
    use sing::spelling::with_what_was_meant;

    #[test]
    fn the_definitions_are_consistent() {
        CommandLine::command().debug_assert();
    }

    #[test]
    fn each_command_is_one_of_sing() {
        let sing = sing::command_line::CommandLine::command();
        for command in CommandLine::command().get_subcommands() {
            let same = sing.find_subcommand(command.get_name()).expect("sing has it");
            assert_eq!(same.get_about().map(ToString::to_string), command.get_about().map(ToString::to_string));
        }
    }

    #[test]
    fn what_is_mistyped_is_told_and_help_is_ours() {
        for (line, tip) in [("bench dsik", "did you mean `disk`?"), ("base --compield", "did you mean `--compiled`?")] {
            let words: Vec<String> = ["sing"].into_iter().chain(line.split(' ')).map(String::from).collect();
            let error = CommandLine::try_parse_from(&words).expect_err("it is mistyped");
            let text = with_what_was_meant(error, &CommandLine::command(), words).to_string();
            assert!(text.contains(tip), "{line}: {text}");
        }
        let help = CommandLine::try_parse_from(["sing", "--sing", "/a/sing", "bench", "--help"]).expect_err("help");
        assert_eq!(help.kind(), ErrorKind::DisplayHelp);
        assert!(help.to_string().contains("Usage: cargo sing bench"), "{help}");
    }
}
