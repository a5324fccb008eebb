//! The shell: a person's or a script's commands to running programs.
//!
//! Key types: [`shell::Shell`] (the state of one, and host of the command language), `launch` (a pipeline to
//! child processes), `programs` (what is installed), `terminal` (the person). Neighbours: `command-language`
//! says what a script means, `arguments` how words become parameters, the console edits lines.
//! Deliberately not here: escape sequences, and any knowledge of what a program does.
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

/// The first word of the note that a shell leaves when it is ready to take commands: a person sees the prompt.
const READY: u64 = 1;
/// That of the note when the system's start is over and the first command runs.
const FIRST_COMMAND: u64 = 2;

sip::startup!();

/// Runs the commands it was given, or those that a person or a stream gives it; the status of the last one.
pub fn main(startup: Startup) -> i32 {
    let sink = match (&startup.console, startup.output) {
        (None, Some(output)) => Sink::Pipe(Arc::new(Mutex::new(Some(Output::new(output))))),
        _ => Sink::Console,
    };
    // A shell without a console was started by another one, so the system's start is over.
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
