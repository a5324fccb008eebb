//! A pipeline to child processes: created from left to right, joined by pipes, started, waited for.

use alloc::format;
use alloc::rc::Rc;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;

use command_language::{Command, Ends, Flow, quote};
use contracts::pipe;
use contracts::pipe_io::{Output, new_pipe};
use package::{Manifest, Side, Source, arguments};
use sip::process::{self, Child, StopReason};
use sip::thread::JoinHandle;

use crate::builtins::{self, Builtin};
use crate::feed;
use crate::jobs::{Job, Running, STATUS_INTERRUPTED, judge};
use crate::programs::{
    Programs, has_last_position, reads_input, script_arguments, script_of, script_variables, working_folder_index,
    writes_output,
};
use crate::shell::{STATUS_CANNOT_RUN, STATUS_MISTAKE, STATUS_NOT_FOUND, Shell, Trouble};
use crate::terminal;

/// A program with what its command gives it.
pub struct Call {
    manifest: Rc<Manifest>,
    assigned: Vec<arguments::Assignment>,
}

/// What stands at one place of a pipeline.
pub enum Stage<'a> {
    /// Part of the shell.
    Builtin(&'static Builtin, &'a [String]),
    /// A program.
    Program(Call),
}

/// The program that runs scripts.
const SHELL: &str = "shell";

type Reader = pipe::Exp<pipe::states::Ready>;
type Writer = pipe::Imp<pipe::states::Ready>;

/// Children that are created and not yet started, and the threads that move bytes for them.
#[derive(Default)]
struct Prepared {
    children: Vec<(String, Child)>,
    pumps: Vec<JoinHandle<()>>,
}

impl Call {
    /// The call that the words after the program's name make.
    pub fn new(manifest: Rc<Manifest>, words: &[String]) -> Result<Call, Trouble> {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let assigned = arguments::assign(&manifest, &words)
            .map_err(|error| Trouble { status: STATUS_MISTAKE, message: error.to_string() })?;
        Ok(Call { manifest, assigned })
    }

    /// For a program that is a script: how it goes on with that.
    pub fn script(&self) -> Option<Flow> {
        Some(Flow::Run {
            name: self.manifest.name.clone(),
            source: script_of(&self.manifest)?.to_string(),
            arguments: script_arguments(&self.manifest, &self.assigned),
            variables: script_variables(&self.manifest, &self.assigned),
        })
    }

    /// A script cannot be a process of its own, so in a pipe or beside the shell another shell runs it.
    pub fn in_own_process(self, programs: &Programs) -> Result<Call, Trouble> {
        let Some(script) = script_of(&self.manifest) else { return Ok(self) };
        let name = &self.manifest.name;
        let shell = programs.find(SHELL).ok_or_else(|| {
            Trouble::new(format!("{name} is a script, which a `{SHELL}` would have to run, and that is not installed"))
        })?;
        // On the script's first line, so that the numbers of its lines stay what they are.
        let variables = script_variables(&self.manifest, &self.assigned);
        let mut text: String = variables.iter().map(|(name, value)| format!("{name}={}; ", quote(value))).collect();
        text.push_str(script);
        let mut words = Vec::from([String::from("-c"), text, String::from("--"), name.clone()]);
        words.extend(script_arguments(&self.manifest, &self.assigned));
        Call::new(shell, &words)
    }

    fn has_work(&self) -> bool {
        has_last_position(&self.manifest, &self.assigned)
    }
}

impl Shell {
    /// Runs the stages of a pipeline.
    pub fn launch(&mut self, commands: &[Command], stages: Vec<Stage<'_>>, ends: Ends) -> Result<Flow, Trouble> {
        check_joints(&stages)?;
        let last = stages.len() - 1;
        let mut prepared = Prepared::default();
        let mut builtin: Option<(&Builtin, &[String], Writer)> = None;
        let mut input: Option<Reader> = None;
        for (index, stage) in stages.into_iter().enumerate() {
            let (writer, next_input) = if index == last {
                let opened = self.sink().open(&mut self.namespace)?;
                prepared.pumps.extend(opened.pump);
                (opened.writer, None)
            } else {
                let (writer, reader) = new_pipe()?;
                (writer, Some(reader))
            };
            match stage {
                Stage::Builtin(one, words) => builtin = Some((one, words, writer)),
                Stage::Program(call) => {
                    let reader = match input.take() {
                        Some(reader) => Some(reader),
                        None => self.first_input(&call, &commands[index], ends)?,
                    };
                    let child = self.create(&call, writer, reader)?;
                    prepared.children.push((call.manifest.name.clone(), child));
                }
            }
            input = next_input;
        }
        let running = start(prepared.children)?;
        if let Some((builtin, words, writer)) = builtin {
            self.feed_from_builtin(builtin, words, writer);
        }
        match ends {
            Ends::Background => Ok(self.keep_job(commands, running)),
            Ends::Foreground => Ok(self.wait_for(running, prepared.pumps)),
        }
    }

    fn feed_from_builtin(&mut self, builtin: &Builtin, words: &[String], writer: Writer) {
        let mut out = Vec::new();
        let outcome = builtins::run(self, builtin, words, &mut out);
        if let Err(trouble) = outcome {
            self.report(&trouble.message);
        }
        let mut output = Output::new(writer);
        // A reader that has ended needs no more.
        let _ = output.write(&out).and_then(|()| output.finish());
    }

    /// What feeds the first program: a file, or what is typed where the program has nothing else to work on.
    fn first_input(&mut self, call: &Call, command: &Command, ends: Ends) -> Result<Option<Reader>, Trouble> {
        if !reads_input(&call.manifest) {
            return match &command.input {
                None => Ok(None),
                Some(_) => {
                    Err(Trouble::new(format!("{} reads no standard input; leave the `<` out", call.manifest.name)))
                }
            };
        }
        if let Some(path) = &command.input {
            let full = self.absolute(path);
            let file = self.namespace.open_file(&full).map_err(|error| Trouble::new(format!("{path}: {error}")))?;
            let (writer, reader) = new_pipe()?;
            drop(sip::thread::spawn(move || feed::from_file(file, Output::new(writer)))?);
            return Ok(Some(reader));
        }
        if call.has_work() || ends == Ends::Background || !self.has_console() {
            return Ok(None);
        }
        let console = terminal::open(&mut self.namespace)?;
        let interactive = self.is_interactive();
        let (writer, reader) = new_pipe()?;
        drop(sip::thread::spawn(move || {
            let output = Output::new(writer);
            if interactive { feed::from_person(console, output) } else { feed::from_stream(console, output) }
        })?);
        Ok(Some(reader))
    }

    fn create(&mut self, call: &Call, writer: Writer, reader: Option<Reader>) -> Result<Child, Trouble> {
        let manifest = &call.manifest;
        let failed =
            |status: sip::Status| Trouble::new(format!("{}: it cannot be started: {}", manifest.name, status.text()));
        let mut child = process::create(&manifest.name)
            .map_err(|error| Trouble::new(format!("{}: it cannot be started: {error}", manifest.name)))?;
        // Whatever it asks for, it asks for who sits at this shell. Before it is given anything.
        child = child.invoke().map_err(|status| match status {
            sip::Status::TooLarge => Trouble::new(format!(
                "{}: it cannot be started: too many programs have started one another; leave one of the shells with `exit`",
                manifest.name
            )),
            status => failed(status),
        })?;
        for (index, bytes) in &call.assigned {
            child = give_parameter(child, manifest, *index, bytes).map_err(failed)?;
        }
        if let Some(index) = working_folder_index(manifest)
            && !call.assigned.iter().any(|(given, _)| *given == index)
        {
            child = child.parameter(index, self.folder()).map_err(failed)?;
        }
        let (mut writer, mut reader) = (Some(writer), reader);
        for (slot, wanted) in manifest.endpoints.iter().enumerate() {
            let contract = manifest.contracts.get(wanted.contract as usize).map_or("", |contract| &contract.name);
            child = match (&wanted.source, contract, wanted.side) {
                (Source::StandardOutput, "Pipe", Side::Importer) => match writer.take() {
                    Some(writer) => child.endpoint(slot, writer).map_err(failed)?,
                    None => child,
                },
                (Source::StandardInput, "Pipe", Side::Exporter) => match reader.take() {
                    Some(reader) => child.endpoint(slot, reader).map_err(failed)?,
                    None => child,
                },
                (Source::Path(path), "Directory", Side::Importer) => {
                    let folder = self.namespace.open_directory(path)?.into_endpoint();
                    let folder = folder.ok_or_else(|| failed(sip::Status::Closed))?;
                    child.endpoint(slot, folder).map_err(failed)?
                }
                _ if wanted.optional => child,
                (source, ..) => {
                    return Err(Trouble::new(format!(
                        "{}: the shell has nothing to give for its endpoint `{}` ({contract} from {source}); \
                         let it bind that itself, or start it from the system manifest",
                        manifest.name, wanted.name
                    )));
                }
            };
        }
        Ok(child)
    }

    fn keep_job(&mut self, commands: &[Command], running: Vec<Running>) -> Flow {
        let words = |command: &Command| command.words.iter().map(|word| quote(word)).collect::<Vec<_>>().join(" ");
        let text = commands.iter().map(words).collect::<Vec<_>>().join(" | ");
        let job = Job { number: self.next_job_number(), text, running, status: 0 };
        if self.is_interactive() {
            self.report(&format!("[{}] {}", job.number, job.process_ids()));
        }
        self.jobs.push(job);
        Flow::Status(0)
    }

    /// Waits for processes in the foreground; Ctrl-C ends them.
    fn wait_for(&mut self, running: Vec<Running>, pumps: Vec<JoinHandle<()>>) -> Flow {
        let children: Vec<Arc<Child>> = running.iter().map(|one| Arc::clone(&one.child)).collect();
        self.interrupt.set_foreground(&children);
        let mut status = 0;
        for one in &running {
            let (one_status, line) = match one.child.wait() {
                Ok(epitaph) => judge(one, &epitaph),
                Err(error) => (1, Some(format!("{}: {}", one.name, error.text()))),
            };
            status = one_status;
            if let Some(line) = line.filter(|_| !self.interrupt.is_pressed()) {
                self.report(&line);
            }
        }
        self.interrupt.clear_foreground();
        drop(children);
        drop(running);
        for pump in pumps {
            // A pump has no result that could be missed.
            let _ = pump.join();
        }
        if self.interrupt.is_pressed() {
            return Flow::Interrupted;
        }
        Flow::Status(status)
    }

    /// Waits for the jobs with this number, or for all; the status of the last.
    pub fn wait_for_jobs(&mut self, number: Option<usize>) -> i32 {
        let mut status = 0;
        for mut job in core::mem::take(&mut self.jobs) {
            if number.is_some_and(|number| number != job.number) {
                self.jobs.push(job);
                continue;
            }
            let children: Vec<Arc<Child>> = job.running.iter().map(|one| Arc::clone(&one.child)).collect();
            self.interrupt.set_foreground(&children);
            let mut lines = Vec::new();
            job.settle(sip::Deadline::NEVER, &mut lines);
            self.interrupt.clear_foreground();
            lines.iter().for_each(|line| self.report(line));
            status = job.status;
            if self.interrupt.is_pressed() {
                status = STATUS_INTERRUPTED;
            }
        }
        status
    }
}

fn give_parameter(mut child: Child, manifest: &Manifest, index: usize, bytes: &[u8]) -> Result<Child, sip::Status> {
    let text = String::from_utf8_lossy(bytes);
    if !manifest.parameters.get(index).is_some_and(|parameter| parameter.repeated) {
        return child.parameter(index, &text);
    }
    // Each value is ended by a zero byte.
    for value in text.strip_suffix('\0').unwrap_or(&text).split('\0') {
        child = child.repeated_parameter(index, value)?;
    }
    Ok(child)
}

/// All start, or none goes on.
fn start(children: Vec<(String, Child)>) -> Result<Vec<Running>, Trouble> {
    let mut running: Vec<Running> = Vec::new();
    for (name, child) in children {
        match child.start() {
            Ok(child) => running.push(Running { name, child: Arc::new(child) }),
            Err(status) => {
                for one in &running {
                    // One that has ended already is as good as stopped.
                    let _ = one.child.stop(StopReason::Requested);
                }
                return Err(Trouble::new(format!("{name}: it cannot be started: {}", status.text())));
            }
        }
    }
    Ok(running)
}

/// Whether each stage takes what the one before it gives.
fn check_joints(stages: &[Stage<'_>]) -> Result<(), Trouble> {
    for (index, stage) in stages.iter().enumerate() {
        match stage {
            Stage::Builtin(builtin, _) if index > 0 => {
                let message = format!("{} reads no input; a command of the shell can only begin a pipe", builtin.name);
                return Err(Trouble::new(message));
            }
            Stage::Builtin(..) => {}
            Stage::Program(call) => {
                let name = &call.manifest.name;
                if index > 0 && !reads_input(&call.manifest) {
                    return Err(Trouble::new(format!("{name} reads no standard input; it cannot stand behind a `|`")));
                }
                if index + 1 < stages.len() && !writes_output(&call.manifest) {
                    return Err(Trouble::new(format!(
                        "{name} writes no standard output; it cannot stand before a `|`"
                    )));
                }
            }
        }
    }
    Ok(())
}

/// The stage for a command whose name is a builtin's or a program's.
pub fn stage<'a>(shell: &Shell, command: &'a Command) -> Result<Stage<'a>, Trouble> {
    let (name, words) = (command.words[0].as_str(), &command.words[1..]);
    if let Some(builtin) = builtins::find(name) {
        if command.input.is_some() {
            return Err(Trouble::new(format!(
                "{name} is a command of the shell, which reads no input; leave the `<` out"
            )));
        }
        return Ok(Stage::Builtin(builtin, words));
    }
    match shell.programs().find(name) {
        Some(manifest) if matches!(words, [word] if arguments::asks_for_help(&manifest, word)) => {
            // As `help NAME`, so that it can be piped as well.
            Ok(Stage::Builtin(builtins::HELP, &command.words[..1]))
        }
        Some(manifest) if script_of(&manifest).is_some() && shell.programs().is_unsigned(name) => Err(Trouble {
            status: STATUS_CANNOT_RUN,
            message: format!(
                "{name} is a script that nobody has signed, and in quarantine: it does not run; have its publisher sign it"
            ),
        }),
        Some(manifest) => Ok(Stage::Program(Call::new(manifest, words)?)),
        None => Err(Trouble {
            status: STATUS_NOT_FOUND,
            message: format!("{name}: no program has that name; `help` lists those that are installed"),
        }),
    }
}
