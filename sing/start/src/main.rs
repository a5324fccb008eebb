//! The program behind the alias `cargo sing`: builds the host tool if it is missing or outdated, reports this, and
//! execs it.
//!
//! The long build of the tool begins with a sentence and cargo's own progress. Deliberately not here: the tool itself.
#![forbid(unsafe_code)]

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitCode};

use sing_start::Program;

/// The package of the tool, and its program.
const TOOL: &str = "sing";

fn main() -> ExitCode {
    let started = match std::env::current_exe() {
        Ok(program) => start(&program),
        Err(error) => Err(format!("this program cannot be found: {error}; see whether /proc is mounted.")),
    };
    match started {
        Ok(code) => code,
        Err(sentence) => {
            eprintln!("sing: {sentence}");
            ExitCode::FAILURE
        }
    }
}

/// Execs the tool beside `program`, rebuilt if necessary.
fn start(program: &Path) -> Result<ExitCode, String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap_or(Path::new("/"));
    let tool = Program::new(root, program.with_file_name(TOOL), "the tool behind `cargo sing`");
    let cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    if !tool.bring_up_to_date(cargo)? {
        return Ok(ExitCode::FAILURE);
    }
    let path = tool.path();
    let error = Command::new(path).args(std::env::args_os().skip(1)).exec();
    Err(format!("{} cannot be started: {error}; delete it and try again.", path.display()))
}
