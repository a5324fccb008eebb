//! The shell: runs commands interactively or from a script.
//!
//! Key types: [`shell::Shell`] (shell state, and host of the command language), `launch` (pipelines of child
//! processes), `programs` (installed programs), `terminal` (the console). Neighbours: `command-language` interprets
//! scripts, `arguments` turns words into parameters, the console edits lines. Deliberately not here: escape sequences,
//! and program-specific code.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod builtins;
mod completion;
mod errors;
mod familiar;
mod feed;
mod files;
mod gate;
mod help;
mod history;
mod job_commands;
mod jobs;
mod launch;
mod names;
mod programs;
mod shell;
mod signals;
mod sink;
mod stopwatch;
mod terminal;
mod waiting;

use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec;

use client::namespace::Namespace;
use sip::sync::Mutex;
use stdio::{Input, Output};

use crate::shell::Shell;
use crate::sink::Sink;
use crate::terminal::Terminal;

/// First word of the shell's note that it is ready for commands: the prompt is visible.
const READY: u64 = 1;
/// First word of the note when the boot is complete and the first command runs.
const FIRST_COMMAND: u64 = 2;

sip::startup!();

/// Runs the given commands, or those of the console; returns the status of the last one.
pub fn main(startup: Startup) -> i32 {
    let sink = match (&startup.console, startup.output) {
        (None, Some(output)) => Sink::Pipe(Arc::new(Mutex::new(Some(Output::new(output))))),
        _ => Sink::Console,
    };
    // A shell without a console was started by another shell, so the boot is complete.
    let is_first = startup.console.is_some();
    let terminal = Terminal::new(startup.console);
    let namespace = Namespace::new(startup.namespace);
    let mut positionals = vec![startup.script.clone().unwrap_or_else(|| String::from("shell"))];
    positionals.extend(startup.arguments);
    let mut shell = Shell::new(namespace, terminal, sink, startup.working_folder);
    shell.inputs.extend(startup.input.map(Input::new));
    sip::debug::note(READY, 0);
    if is_first {
        shell.expect_start();
    }
    let status = match (startup.commands, startup.script) {
        (Some(commands), _) => {
            shell.await_start();
            shell.run_text("commands", &commands, positionals)
        }
        (None, Some(script)) => {
            shell.await_start();
            shell.run_file(&script, positionals)
        }
        (None, None) => shell.converse(positionals),
    };
    shell.finish(status)
}
