//! Commands for developers of the system itself: `bench`, `base`, and `test` in a clone. They are in a separate
//! program, the crate `xtask`, which is built on first use.
//!
//! Deliberately not here: the commands and their help, which are in `xtask`.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::Command;

use sing_start::Program;

use crate::cargo;
use crate::failure::{Failure, Outcome};
use crate::repository::Repository;
use crate::tool;

/// Execs `xtask`, rebuilt if necessary, with these arguments.
///
/// # Errors
/// It does not build or cannot be started.
pub fn become_it(repository: &Repository, words: &[OsString]) -> Outcome<u8> {
    let program = repository.cargo_target().join("release/xtask");
    let program = Program::new(repository.base(), program, "the tests and benchmarks of the system");
    let failed = |why: String| Failure::new(format!("xtask does not start: {}", why.trim_end_matches('.')));
    if !program.bring_up_to_date(cargo::command(repository)).map_err(failed)? {
        return Err(Failure::new("xtask did not build").remedy("fix the errors above"));
    }
    let tool = tool::path().map_err(|error| failed(error.to_string()))?;
    let mut command = Command::new(program.path());
    command.arg("--sing").arg(tool).args(words).env("CARGO_TARGET_DIR", repository.cargo_target());
    Err(Failure::file("start", program.path(), &command.exec()))
}
