//! Shell state and host of the command language.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;

use client::access::AccessError;
use client::namespace::Namespace;
use client::services;
use command_language::{Command, Ends, Errors, Flow, Host, Interpreter, OutputMode, Pattern, Scope, parse};
use contracts::console::LineKind;
use stdio::Input;

use crate::builtins;
use crate::completion::{self, Known};
use crate::errors::Target;
use crate::files;
use crate::history::History;
use crate::jobs::Job;
use crate::launch::{Stage, stage};
use crate::names;
use crate::programs::Programs;
use crate::signals::Signals;
use crate::sink::{Sink, existing};
use crate::stopwatch::Stopwatch;
use crate::terminal::{Answer, Terminal};

/// Exit status: usage error.
pub const STATUS_MISTAKE: i32 = 2;
/// Exit status: the script exists but cannot be run.
pub const STATUS_CANNOT_RUN: i32 = 126;
/// Exit status: command not found.
pub const STATUS_NOT_FOUND: i32 = 127;
/// Maximum attempts to reopen the console.
const CONSOLE_ATTEMPTS: usize = 5;

/// Why a command did not run: a message for users, and the status.
pub struct Error {
    /// Exit status of the command.
    pub status: i32,
    /// The problem and a remedy.
    pub message: String,
}

impl Error {
    /// Creates an error with status 1.
    pub fn new(message: String) -> Error {
        Error { status: 1, message }
    }
}

impl From<AccessError> for Error {
    fn from(error: AccessError) -> Error {
        Error::new(error.to_string())
    }
}

impl From<sip::Status> for Error {
    fn from(status: sip::Status) -> Error {
        Error::new(format!("the shell has not enough of what this needs: {}", status.text()))
    }
}

/// A shell.
pub struct Shell {
    /// The namespace at its root.
    pub namespace: Namespace,
    /// Background and stopped jobs.
    pub jobs: Vec<Job>,
    /// Ctrl-C and Ctrl-Z.
    pub signals: Arc<Signals>,
    /// Stack of inputs of `read`; the top is used. If empty, `read` reads the console.
    pub inputs: Vec<Input>,
    /// Stack of error targets; the top is used. If empty, errors are shown to a person.
    pub errors: Vec<Sink>,
    /// Stack of running `time` measurements.
    pub stopwatches: Vec<Stopwatch>,
    /// Entered lines.
    pub history: History,
    terminal: Terminal,
    programs: Programs,
    /// Stack of output targets; the top is used.
    sinks: Vec<Sink>,
    folder: String,
    previous_folder: Option<String>,
    interactive: bool,
    /// Whether the boot may still be in progress.
    starting: bool,
    status: i32,
    jobs_made: usize,
}

impl Shell {
    /// Creates a shell whose output goes to `sink`.
    pub fn new(namespace: Namespace, terminal: Terminal, sink: Sink, folder: String) -> Shell {
        Shell {
            namespace,
            jobs: Vec::new(),
            signals: Arc::default(),
            inputs: Vec::new(),
            errors: Vec::new(),
            stopwatches: Vec::new(),
            history: History::default(),
            terminal,
            programs: Programs::read(),
            sinks: Vec::from([sink]),
            folder,
            previous_folder: None,
            interactive: false,
            starting: false,
            status: 0,
            jobs_made: 0,
        }
    }

    /// Makes the first command wait for the end of the boot, which is in progress.
    pub fn expect_start(&mut self) {
        self.starting = true;
    }

    /// Waits for the end of the boot, so that a command finds the complete system; Ctrl-C ends the wait.
    pub fn await_start(&mut self) {
        if !self.starting {
            return;
        }
        let signals = Arc::clone(&self.signals);
        // Without a service manager there is nothing to wait for.
        let is_given_up = matches!(services::await_start(&mut self.namespace, || signals.is_interrupted()), Ok(false));
        if !is_given_up {
            self.starting = false;
            sip::debug::note(crate::FIRST_COMMAND, 0);
        }
    }

    /// Runs the text of a script; returns its status.
    pub fn run_text(&mut self, name: &str, text: &str, positionals: Vec<String>) -> i32 {
        let mut interpreter = Interpreter::new(positionals);
        status_of(interpreter.run(self, name, text))
    }

    /// Runs a script file; returns its status.
    pub fn run_file(&mut self, file: &str, positionals: Vec<String>) -> i32 {
        let full = self.absolute(file);
        match files::read_script(&mut self.namespace, &full) {
            Ok(text) => self.run_text(file, &text, positionals),
            Err(reason) => {
                self.report(&format!("{file}: {reason}"));
                STATUS_CANNOT_RUN
            }
        }
    }

    /// Runs commands from the console until the input ends; returns the status of the last one.
    pub fn converse(&mut self, positionals: Vec<String>) -> i32 {
        let mut interpreter = Interpreter::new(positionals);
        self.interactive = self.terminal.is_interactive(&mut self.namespace).unwrap_or(false);
        if self.interactive {
            self.say("Singularity. `help` lists the commands, Ctrl-D ends.\n");
        }
        let mut text = String::new();
        let mut failures = 0;
        // Whether the user has just been warned of stopped jobs.
        let mut is_warned = false;
        loop {
            self.look_at_jobs();
            // If this fails, Ctrl-C has no effect between lines; commands run all the same.
            let _ = self.terminal.listen(&mut self.namespace, &self.signals);
            let prompt = self.prompt(text.is_empty());
            let answer = self.ask(&interpreter, &prompt);
            self.signals.clear();
            match answer {
                Answer::Line(line) => {
                    failures = 0;
                    let Some(line) = self.recalled(&text, line) else { continue };
                    text.push_str(&line);
                    text.push('\n');
                    if matches!(parse(&text), Err(error) if error.incomplete) {
                        continue;
                    }
                }
                Answer::Interrupted => {
                    text.clear();
                    continue;
                }
                Answer::EndOfInput if text.is_empty() && self.keeps_stopped_jobs(&mut is_warned) => continue,
                Answer::EndOfInput if text.is_empty() => {
                    // Services stop in order only once they have started.
                    self.await_start();
                    return self.status;
                }
                // The interpreter reports an unfinished statement.
                Answer::EndOfInput => {}
                Answer::Unreachable(error) => {
                    failures += 1;
                    if failures > CONSOLE_ATTEMPTS {
                        self.report(&format!("the console: {error}"));
                        return 1;
                    }
                    continue;
                }
            }
            let script = core::mem::take(&mut text);
            self.history.add(&script);
            // If Ctrl-C ends the wait, it also ends the script before its first command.
            self.await_start();
            match interpreter.run(self, "line", script.trim_end_matches('\n')) {
                Flow::Exit(_) if self.keeps_stopped_jobs(&mut is_warned) => self.status = 1,
                Flow::Exit(status) => return status,
                other => {
                    is_warned = false;
                    self.status = status_of(other);
                }
            }
        }
    }

    /// Expands history references and shows the result if it differs; `None` if there is no such line.
    fn recalled(&mut self, before: &str, line: String) -> Option<String> {
        if !self.interactive || !before.is_empty() {
            return Some(line);
        }
        match self.history.recall(&line) {
            None => Some(line),
            Some(Ok(recalled)) => {
                self.say(&format!("{recalled}\n"));
                Some(recalled)
            }
            Some(Err(message)) => {
                self.report(&message);
                self.status = 1;
                None
            }
        }
    }

    /// Finishes the shell's own output and returns the status.
    pub fn finish(mut self, status: i32) -> i32 {
        let Some(Sink::Pipe(output)) = self.sinks.pop() else { return status };
        let output = output.lock().take();
        output.map_or(status, |output| output.finish_with(status))
    }

    /// Current output target.
    pub fn sink(&self) -> Sink {
        self.sinks.last().cloned().unwrap_or(Sink::Console)
    }

    /// Output target outside the innermost redirection.
    pub fn sink_before(&self) -> Sink {
        self.sinks.iter().rev().nth(1).cloned().unwrap_or(Sink::Console)
    }

    /// Whether the shell's output is the console, so that its programs may also read from it.
    pub fn has_console(&self) -> bool {
        matches!(self.sinks.first(), Some(Sink::Console))
    }

    /// Whether the shell is interactive.
    pub fn is_interactive(&self) -> bool {
        self.interactive
    }

    /// The installed programs.
    pub fn programs(&self) -> &Programs {
        &self.programs
    }

    /// The working folder.
    pub fn folder(&self) -> &str {
        &self.folder
    }

    /// The previous working folder.
    pub fn previous_folder(&self) -> Option<&str> {
        self.previous_folder.as_deref()
    }

    /// Sets the working folder.
    pub fn set_folder(&mut self, full: String) {
        self.previous_folder = Some(core::mem::replace(&mut self.folder, full));
    }

    /// Makes a path absolute.
    pub fn absolute(&self, asked: &str) -> String {
        path::absolute(&self.folder, asked)
    }

    /// Status of the last command line.
    pub fn last_status(&self) -> i32 {
        self.status
    }

    /// Returns the smallest free job number.
    pub fn next_job_number(&mut self) -> usize {
        if self.jobs.is_empty() {
            self.jobs_made = 0;
        }
        self.jobs_made += 1;
        self.jobs_made
    }

    /// Prints a message that is not output of a command.
    pub fn report(&mut self, line: &str) {
        if self.interactive && Sink::Console.write(&mut self.namespace, format!("{line}\n").as_bytes()).is_ok() {
            return;
        }
        stdio::report::error(format_args!("{line}"));
    }

    fn say(&mut self, text: &str) {
        // The next read from the console reports an error.
        let _ = Sink::Console.write(&mut self.namespace, text.as_bytes());
    }

    /// Reads a line other than a command from the console.
    pub fn read_line(&mut self, kind: LineKind, prompt: &str) -> Answer {
        self.terminal.read_line(&mut self.namespace, kind, prompt, |_, _, cursor| (cursor, Vec::new()))
    }

    fn ask(&mut self, interpreter: &Interpreter, prompt: &str) -> Answer {
        let known = Known {
            programs: &self.programs,
            functions: interpreter.function_names().map(String::from).collect(),
            variables: interpreter.variables().keys().cloned().collect(),
            folder: &self.folder,
        };
        self.terminal.read_line(&mut self.namespace, LineKind::Command, prompt, |namespace, line, cursor| {
            completion::candidates(&known, namespace, line, cursor)
        })
    }

    fn prompt(&self, first: bool) -> String {
        match (first, self.status) {
            (false, _) => String::from("... "),
            (true, 0) => format!("{}> ", self.folder),
            (true, status) => format!("[{status}] {}> ", self.folder),
        }
    }

    /// Returns how to continue with a script file.
    pub fn script_flow(&mut self, file: &str, arguments: &[String]) -> Result<Flow, Error> {
        let full = self.absolute(file);
        match files::read_script(&mut self.namespace, &full) {
            Ok(source) => {
                Ok(Flow::Run { name: file.to_string(), source, arguments: arguments.to_vec(), variables: Vec::new() })
            }
            Err(reason) => Err(Error { status: STATUS_CANNOT_RUN, message: format!("{file}: {reason}") }),
        }
    }

    /// Runs a single command that needs special treatment; `None` if it is a plain program.
    fn run_alone(&mut self, scope: &mut Scope<'_>, command: &Command) -> Result<Option<Flow>, Error> {
        let (name, words) = (command.words[0].as_str(), &command.words[1..]);
        if name.contains('/') && command.subshell.is_none() {
            return self.script_flow(name, words).map(Some);
        }
        match stage(self, command)? {
            Stage::Builtin(builtin, words) => {
                let mut out = Vec::new();
                let call = builtins::Call { words, out: &mut out, scope: Some(scope) };
                let flow = builtins::call(self, builtin, call)?;
                self.sink().write(&mut self.namespace, &out)?;
                Ok(Some(flow))
            }
            Stage::Program(call) => Ok(call.script()),
        }
    }

    fn try_run(&mut self, scope: &mut Scope<'_>, commands: &[Command], ends: Ends) -> Result<Flow, Error> {
        if let ([command], Ends::Foreground) = (commands, ends)
            && let Some(flow) = self.run_alone(scope, command)?
        {
            return Ok(flow);
        }
        let targets = self.error_targets(commands)?;
        let mut stages = Vec::new();
        for (command, target) in commands.iter().zip(&targets) {
            let found = stage(self, command).and_then(|found| match found {
                Stage::Program(call) => call.in_own_process(&self.programs).map(Stage::Program),
                builtin => Ok(builtin),
            });
            match (found, target) {
                (Ok(stage), _) => stages.push(stage),
                (Err(error), Some(Target::Sink(sink))) => {
                    self.with_errors(sink.clone(), |shell| shell.error(&error.message));
                    return Ok(Flow::Status(error.status));
                }
                (Err(error), _) => return Err(error),
            }
        }
        self.launch(commands, stages, &targets, ends)
    }
}

fn status_of(flow: Flow) -> i32 {
    match flow {
        Flow::Status(status) | Flow::Exit(status) => status,
        Flow::GivenUp(status) => status,
        Flow::Run { .. } => STATUS_MISTAKE,
    }
}

impl Host for Shell {
    fn run(&mut self, scope: &mut Scope<'_>, commands: &[Command], ends: Ends) -> Flow {
        // The previous command may have installed it.
        self.programs.refresh();
        let flow = self.try_run(scope, commands, ends).unwrap_or_else(|error| {
            self.error(&error.message);
            Flow::Status(error.status)
        });
        if let Flow::Status(status) = flow {
            self.status = status;
        }
        flow
    }

    fn expand(&mut self, pattern: &Pattern) -> Result<Vec<String>, String> {
        let folder = self.folder.clone();
        names::matching(&mut self.namespace, &folder, pattern).map_err(|error| error.to_string())
    }

    fn begin_capture(&mut self) -> Result<(), String> {
        self.sinks.push(Sink::collecting());
        Ok(())
    }

    fn end_capture(&mut self) -> Result<String, String> {
        self.sinks.pop().ok_or_else(|| "nothing is collected".to_string())?.into_text()
    }

    fn begin_output(&mut self, mode: OutputMode, path: &str) -> Result<(), String> {
        let full = self.absolute(path);
        let sink = Sink::file(&mut self.namespace, path, &full, existing(mode)).map_err(|error| error.to_string())?;
        self.sinks.push(sink);
        Ok(())
    }

    fn end_output(&mut self) -> bool {
        let is_whole = self.sinks.pop().is_none_or(|sink| sink.is_whole());
        if !is_whole {
            self.status = self.status.max(1);
        }
        is_whole
    }

    fn begin_errors(&mut self, errors: &Errors) -> Result<(), String> {
        let sink = self.error_sink(errors).map_err(|error| error.to_string())?;
        self.errors.push(sink);
        Ok(())
    }

    fn end_errors(&mut self) -> bool {
        let is_whole = self.errors.pop().is_none_or(|sink| sink.is_whole());
        if !is_whole {
            self.status = self.status.max(1);
        }
        is_whole
    }

    fn begin_input(&mut self, path: &str) -> Result<(), String> {
        let reader = self.reader_of(path).map_err(|error| error.message)?;
        self.inputs.push(Input::new(reader));
        Ok(())
    }

    fn end_input(&mut self) {
        self.inputs.pop();
    }

    fn begin_time(&mut self) {
        self.stopwatches.push(Stopwatch::begin());
    }

    fn end_time(&mut self) {
        self.end_stopwatch();
    }

    fn defined(&mut self, name: &str) {
        self.tell_of_hidden(name);
    }

    fn interrupted(&mut self) -> bool {
        self.signals.is_interrupted()
    }

    fn report(&mut self, text: &str) {
        self.error(text.trim_end_matches('\n'));
    }
}
