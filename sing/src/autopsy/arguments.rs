//! The command line of `sing autopsy`.

use std::path::PathBuf;

use clap::Args;

/// `sing autopsy`.
#[derive(Debug, Args)]
pub struct AutopsyArguments {
    /// Files of cores, or captured output with cores in it [default: standard input]
    #[arg(value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// System that the programs are of: a file, or the name of one in systems/ [default: any that was built]
    #[arg(long, value_name = "FILE")]
    pub system: Option<PathBuf>,
    /// Show source lines and inlined functions, too: builds the programs again, with line tables
    #[arg(long)]
    pub lines: bool,
    /// Show every code address, those that earlier calls may have left on the stack included, marked with `?`
    #[arg(long)]
    pub all: bool,
}
