//! `sing debug --replay`: the replay of a recording under gdb, forwards and backwards.
//!
//! gdb's Python goes back by replaying again, up to an earlier place (decision 34). Neighbours: `replay` answers the
//! questions that are asked at the prompt. Deliberately not here: lldb, and editors.

use std::fmt::Write;
use std::path::Path;

use recording::{EventKind, Reader};

use super::arguments::{DebugArguments, DebuggerName, Stop};
use super::{OF_HOSTED, Target, cannot_start, run_gdb, sources, texts};
use crate::bare::debug::{self, plain};
use crate::failure::{Failure, Outcome};
use crate::replay;
use crate::repository::Repository;
use crate::systems::{self, Platform};

/// Places of a replay, and how to get there.
const PLACES: &str = include_str!("places.py");
/// Commands that go back.
const BACK: &str = include_str!("back.py");

/// Debugs the replay of a recording. Returns the debugger's exit status.
///
/// # Errors
/// The file is no recording of this build, the machine does not build, or the debugger cannot be started.
pub fn debug(repository: &Repository, arguments: &DebugArguments, file: &Path) -> Outcome<u8> {
    if arguments.debugger == DebuggerName::Lldb {
        return Err(Failure::new("lldb cannot go back in a replay").remedy("use --debugger gdb"));
    }
    if arguments.stop == Stop::Program {
        return Err(Failure::new("a replay runs one program at a time, so a breakpoint stops all")
            .remedy("use --stop machine, or --process ID to replay one alone"));
    }
    let reader = replay::read(file)?;
    let machine = systems::machine(repository, Platform::Hosted)?;
    let folder = tempfile::Builder::new().prefix("sing-symbols-").tempdir().map_err(cannot_start)?;
    write_images(repository, arguments, &reader, file, folder.path())?;
    drop(reader);
    let command = replay::command(&machine, file, arguments.process, replay::Confined::No);
    let target = Target {
        arguments: texts(&command)?,
        program: machine,
        images: folder.path().to_path_buf(),
        sources: sources(repository),
        signals: OF_HOSTED,
        more: commands(file)?,
        greeting: "The replay is at its beginning; `continue` starts it, `reverse-continue` goes back.",
    };
    run_gdb(&target, arguments)
}

/// Writes the symbols of all programs of a recording, also of those that were installed as it ran.
fn write_images(
    repository: &Repository,
    arguments: &DebugArguments,
    reader: &Reader,
    file: &Path,
    folder: &Path,
) -> Outcome<()> {
    let with_lines = debug::images_with_lines(repository, &arguments.lines)?;
    let system = reader.system();
    let image = debug::verified(&system, file)?;
    let installed = reader.events().iter().filter(|event| event.kind == EventKind::Installed);
    let installed: Vec<Vec<u8>> = installed.map(|event| event.bytes()).collect();
    let packages: Vec<&[u8]> = image.packages.iter().copied().chain(installed.iter().map(Vec::as_slice)).collect();
    debug::write_packages(folder, &packages, file, &with_lines)
}

/// Returns gdb's commands that go back.
fn commands(file: &Path) -> Outcome<String> {
    let file = std::path::absolute(file).map_err(cannot_start)?;
    let tool = std::env::current_exe().map_err(cannot_start)?;
    // A replay under a debugger has no limit of time, so it needs no ticks.
    let mut out = String::from("handle SIGVTALRM nostop noprint nopass\n");
    // Writing to a String cannot fail.
    let _ = writeln!(out, "python FILE, TOOL = '{}', ['{}']", plain(&file)?, plain(&tool)?);
    let _ = writeln!(out, "python\n{PLACES}\n{BACK}\nend");
    Ok(out)
}
