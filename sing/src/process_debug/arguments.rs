//! The command line of `sing debug`.

use std::path::PathBuf;

use clap::Args;

use crate::command_line::RunArguments;

/// `sing debug`.
#[derive(Debug, Args)]
pub struct DebugArguments {
    /// The machine and what runs on it.
    #[command(flatten)]
    pub run: RunArguments,
    /// Rebuild this program with line tables, for source lines; may be repeated
    #[arg(long, value_name = "PROGRAM")]
    pub lines: Vec<String>,
    /// Commands for the debugger, one per line; it runs non-interactively and exits after them
    #[arg(long, value_name = "COMMANDS")]
    pub batch: Vec<String>,
    /// The debugger
    #[arg(long, value_enum, default_value = "gdb")]
    pub debugger: DebuggerName,
    /// What a breakpoint stops [default: machine]
    #[arg(long, value_enum, default_value = "machine")]
    pub stop: Stop,
    /// Debug the run of this seed on the simulated machine, as `cargo sing simulate` has it
    #[arg(long, value_name = "N", conflicts_with = "machine")]
    pub seed: Option<u64>,
    /// Faults of the simulated machine; not `step`, which needs the processor's trap flag as debuggers do
    #[arg(long, value_name = "KIND,...", requires = "seed", default_value = "preempt,switch,delay")]
    pub faults: String,
    /// These faults and no others, as a failure names them
    #[arg(long, value_name = "FAULT,...", requires = "seed")]
    pub exactly: Option<String>,
    /// Debug the replay of a recording that `cargo sing run --record FILE` made, forwards and backwards
    #[arg(long, value_name = "FILE", conflicts_with_all = ["machine", "seed", "system", "commands"])]
    pub replay: Option<PathBuf>,
    /// Replay this process alone; `cargo sing replay FILE --processes` lists them
    #[arg(long, value_name = "ID", requires = "replay")]
    pub process: Option<u64>,
    /// Only build, and write a module for lldb that starts the machine; print its path. For editors
    #[arg(long, conflicts_with_all = ["batch", "replay"])]
    pub prepare: bool,
}

/// A debugger.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum DebuggerName {
    /// GNU's
    Gdb,
    /// LLVM's; hosted and simulated machines only
    Lldb,
}

/// What a breakpoint stops.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Stop {
    /// The machine
    Machine,
    /// The program, with the processor that it is on; the others go on
    Program,
}
