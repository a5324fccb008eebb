//! Starts pipelines: child processes are created from left to right, connected by pipes, and started.

use alloc::format;
use alloc::rc::Rc;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;

use command_language::{Command, Ends, Flow, Subshell, quote};
use contracts::pipe;
use manifest_model::{Manifest, Side, Source};
use sip::abi::limits;
use sip::process::{self, Child, StopReason};
use sip::thread::JoinHandle;
use stdio::{Output, new_pipe};

use crate::builtins::{self, Builtin};
use crate::errors::{self, Target, Unread};
use crate::familiar;
use crate::feed;
use crate::gate::{Access, Gate};
use crate::jobs::{Job, Running};
use crate::programs::{
    Programs, has_last_position, reads_input, script_arguments, script_of, script_variables, working_folder_index,
    writes_output,
};
use crate::shell::{Error, STATUS_CANNOT_RUN, STATUS_MISTAKE, STATUS_NOT_FOUND, Shell};
use crate::sink::Sink;
use crate::terminal;

/// A program with its arguments.
pub struct Call {
    manifest: Rc<Manifest>,
    assigned: Vec<arguments::Assignment>,
}

/// A stage of a pipeline.
pub enum Stage<'a> {
    /// A builtin.
    Builtin(&'static Builtin, &'a [String]),
    /// A program.
    Program(Call),
}

/// The program that runs scripts.
const SHELL: &str = "shell";

type Reader = pipe::Exp<pipe::states::Ready>;
type Writer = pipe::Imp<pipe::states::Ready>;

/// Created children that are not started yet, and the threads that move bytes for them.
#[derive(Default)]
struct Prepared {
    children: Vec<(String, Child, Option<Unread>)>,
    pumps: Vec<JoinHandle<()>>,
}

impl Call {
    /// Parses the words after the program's name.
    pub fn new(manifest: Rc<Manifest>, words: &[String]) -> Result<Call, Error> {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let assigned = arguments::assign(&manifest, &words)
            .map_err(|error| Error { status: STATUS_MISTAKE, message: error.to_string() })?;
        Ok(Call { manifest, assigned })
    }

    /// If the program is a script, returns how to continue with it.
    pub fn script(&self) -> Option<Flow> {
        Some(Flow::Run {
            name: self.manifest.name.clone(),
            source: script_of(&self.manifest)?.to_string(),
            arguments: script_arguments(&self.manifest, &self.assigned),
            variables: script_variables(&self.manifest, &self.assigned),
        })
    }

    /// A script cannot be a process, so in a pipe or in the background another shell runs it.
    pub fn in_own_process(self, programs: &Programs) -> Result<Call, Error> {
        let Some(script) = script_of(&self.manifest) else { return Ok(self) };
        let name = &self.manifest.name;
        let shell = programs.find(SHELL).ok_or_else(|| {
            Error::new(format!("{name} is a script, which a `{SHELL}` would have to run, and that is not installed"))
        })?;
        // Inserted into the script's first line, so that its line numbers stay the same.
        let variables = script_variables(&self.manifest, &self.assigned);
        let mut text: String = variables.iter().map(|(name, value)| format!("{name}={}; ", quote(value))).collect();
        text.push_str(script);
        let mut words = Vec::from([String::from("-c"), text, String::from("--"), name.clone()]);
        words.extend(script_arguments(&self.manifest, &self.assigned));
        Call::new(shell, &words)
    }

    /// Whether standard input is fed from a file, or from the console if the program has no other input. A program
    /// with optional input that opens the console itself, such as a shell, is not fed.
    fn takes_input(&self, command: &Command, ends: Ends) -> bool {
        if command.input.is_some() {
            return true;
        }
        let is_optional =
            self.manifest.endpoints.iter().any(|slot| slot.source == Source::StandardInput && slot.optional);
        let asks_itself = is_optional && self.manifest.contracts.iter().any(|contract| contract.name == "Console");
        let has_work = has_last_position(&self.manifest, &self.assigned) && !arguments::reads_its_words(&self.manifest);
        reads_input(&self.manifest) && !asks_itself && !has_work && ends == Ends::Foreground
    }

    /// Creates the call of a shell that runs a block or a function of this one.
    fn subshell(subshell: &Subshell, programs: &Programs) -> Result<Call, Error> {
        let shell = programs.find(SHELL).ok_or_else(|| {
            Error::new(format!("a `{SHELL}` would have to run this beside the others, and that is not installed"))
        })?;
        let mut words = Vec::from([String::from("-c"), subshell.script.clone(), String::from("--")]);
        words.extend(subshell.positionals.iter().cloned());
        Call::new(shell, &words)
    }
}

impl Shell {
    /// Runs the stages of a pipeline.
    pub fn launch(
        &mut self,
        commands: &[Command],
        stages: Vec<Stage<'_>>,
        targets: &[Option<Target>],
        ends: Ends,
    ) -> Result<Flow, Error> {
        check_joints(&stages)?;
        let last = stages.len() - 1;
        let gate = self.new_gate(ends)?;
        let mut prepared = Prepared::default();
        let mut builtin: Option<(&Builtin, &[String], Writer, Option<Target>)> = None;
        let mut input: Option<Reader> = None;
        for ((index, stage), target) in stages.into_iter().enumerate().zip(targets) {
            let (writer, next_input) = if index == last {
                let opened = self.sink().open(&mut self.namespace, gate.as_ref())?;
                prepared.pumps.extend(opened.pump);
                (opened.writer, None)
            } else {
                let (writer, reader) = new_pipe()?;
                (writer, Some(reader))
            };
            match stage {
                Stage::Builtin(one, words) => builtin = Some((one, words, writer, target.clone())),
                Stage::Program(call) => {
                    let reader = match input.take() {
                        Some(reader) => Some(reader),
                        None if call.takes_input(&commands[index], ends) => {
                            self.first_input(&call, &commands[index], gate.as_ref())?
                        }
                        None => None,
                    };
                    let (unread, writer) = match target {
                        None => (None, writer),
                        Some(Target::NextPipe) => {
                            let (unread, writer) = Unread::to_pipe(writer)?;
                            (Some(unread), writer)
                        }
                        Some(Target::Sink(sink)) => {
                            (Some(Unread::to_sink(self, sink, gate.as_ref(), &mut prepared.pumps)?), writer)
                        }
                    };
                    let child = self.create(&call, writer, reader, unread.as_ref())?;
                    prepared.children.push((call.manifest.name.clone(), child, unread));
                }
            }
            input = next_input;
        }
        let running = start(prepared.children, &mut prepared.pumps)?;
        if let Some((builtin, words, writer, target)) = builtin {
            self.feed_from_builtin(builtin, words, writer, target);
        }
        let words =
            |command: &Command| command.words.iter().map(|word| shown(command, word)).collect::<Vec<_>>().join(" ");
        let text = commands.iter().map(words).collect::<Vec<_>>().join(" | ");
        let job = Job { number: 0, text, running, status: 0, gate, pumps: prepared.pumps };
        Ok(match ends {
            Ends::Background => self.keep_job(job),
            Ends::Foreground => match self.wait_for(job) {
                Flow::Status(status) if !errors::are_whole(targets) => Flow::Status(status.max(1)),
                flow => flow,
            },
        })
    }

    /// Creates a gate if the shell is interactive, where a job can lose the console.
    fn new_gate(&self, ends: Ends) -> Result<Option<Arc<Gate>>, Error> {
        if !self.is_interactive() {
            return Ok(None);
        }
        let access = match ends {
            Ends::Background => Access::Output,
            Ends::Foreground => Access::Full,
        };
        Ok(Some(Gate::new(access)?))
    }

    fn feed_from_builtin(&mut self, builtin: &Builtin, words: &[String], writer: Writer, target: Option<Target>) {
        let mut out = Vec::new();
        let mut run = |shell: &mut Shell| {
            if let Err(error) = builtins::run(shell, builtin, words, &mut out) {
                shell.error(&error.message);
            }
        };
        match target {
            None => run(self),
            Some(Target::Sink(sink)) => self.with_errors(sink, run),
            Some(Target::NextPipe) => {
                let collected = Sink::collecting();
                self.with_errors(collected.clone(), run);
                // The shell's own messages never exceed the limit of collected output.
                out.extend(collected.into_text().unwrap_or_default().into_bytes());
            }
        }
        let mut output = Output::new(writer);
        // Fails only if the reader has ended.
        let _ = output.write(&out).and_then(|()| output.finish());
    }

    /// Returns the input of the first program: a file, or console input.
    fn first_input(
        &mut self,
        call: &Call,
        command: &Command,
        gate: Option<&Arc<Gate>>,
    ) -> Result<Option<Reader>, Error> {
        if let Some(path) = &command.input {
            if !reads_input(&call.manifest) {
                let message = format!("{} reads no standard input; leave the `<` out", call.manifest.name);
                return Err(Error::new(message));
            }
            return self.reader_of(path).map(Some);
        }
        if !self.has_console() {
            return Ok(None);
        }
        let console = terminal::open(&mut self.namespace)?;
        let gate = gate.map(Arc::clone);
        let (writer, reader) = new_pipe()?;
        drop(sip::thread::spawn(move || {
            let output = Output::new(writer);
            match gate {
                Some(gate) => feed::from_person(console, output, &gate),
                None => feed::from_stream(console, output),
            }
        })?);
        Ok(Some(reader))
    }

    /// Returns a pipe that reads a file.
    pub fn reader_of(&mut self, path: &str) -> Result<Reader, Error> {
        let full = self.absolute(path);
        let file = self.namespace.open_file(&full).map_err(|error| Error::new(format!("{path}: {error}")))?;
        let (writer, reader) = new_pipe()?;
        drop(sip::thread::spawn(move || feed::from_file(file, Output::new(writer)))?);
        Ok(reader)
    }

    fn create(
        &mut self,
        call: &Call,
        writer: Writer,
        reader: Option<Reader>,
        errors: Option<&Unread>,
    ) -> Result<Child, Error> {
        let manifest = &call.manifest;
        let failed = |status: sip::Status| Error::new(format!("{}: cannot start: {}", manifest.name, status.text()));
        let mut child = process::create(&manifest.name)
            .map_err(|error| Error::new(format!("{}: cannot start: {error}", manifest.name)))?;
        // The child's requests act on behalf of this shell's user; set before the child gets any endpoint.
        child = child.invoke().map_err(|status| match status {
            sip::Status::TooLarge => Error::new(format!(
                "{}: cannot start: too many programs have started one another; leave one of the shells with `exit`",
                manifest.name
            )),
            status => failed(status),
        })?;
        if let Some(unread) = errors {
            child = child.debug_sink(unread.sink()).map_err(failed)?;
        }
        check_sizes(manifest, &call.assigned)?;
        for (index, bytes) in &call.assigned {
            child = give_parameter(child, manifest, *index, bytes).map_err(|status| match status {
                sip::Status::TooLarge => too_many_words(manifest, *index, bytes),
                status => failed(status),
            })?;
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
                    return Err(Error::new(format!(
                        "{}: the shell has nothing to give for its endpoint `{}` ({contract} from {source}); \
                         let it bind that itself, or start it from the system manifest",
                        manifest.name, wanted.name
                    )));
                }
            };
        }
        Ok(child)
    }

    fn keep_job(&mut self, mut job: Job) -> Flow {
        job.number = self.next_job_number();
        if self.is_interactive() {
            self.report(&format!("[{}] {}", job.number, job.process_ids()));
        }
        self.jobs.push(job);
        Flow::Status(0)
    }
}

/// Formats a word of a command; a block is shown as its source text.
fn shown(command: &Command, word: &str) -> String {
    if command.subshell.is_some() { word.to_string() } else { quote(word) }
}

/// Refuses arguments larger than the kernel accepts.
fn check_sizes(manifest: &Manifest, assigned: &[(usize, Vec<u8>)]) -> Result<(), Error> {
    let all: usize = assigned.iter().map(|(_, bytes)| bytes.len()).sum();
    let largest = assigned.iter().max_by_key(|(_, bytes)| bytes.len());
    let name = largest.and_then(|(index, _)| manifest.parameters.get(*index)).map_or("", |parameter| &parameter.name);
    let bytes = largest.map_or(0, |(_, bytes)| bytes.len());
    let (what, size, limit) = if bytes > limits::PARAMETER_BYTES {
        (format!("its argument {}", name.to_uppercase()), bytes, limits::PARAMETER_BYTES)
    } else if all > limits::PARAMETERS_BYTES {
        (String::from("all its arguments"), all, limits::PARAMETERS_BYTES)
    } else {
        return Ok(());
    };
    Err(Error::new(format!(
        "{}: cannot start: {what} would be {size} bytes, and may be {limit}; give it less at a time: \
         `for f in ...; do {} $f; end`, or its input by a pipe",
        manifest.name, manifest.name
    )))
}

/// Maximum size of one parameter, and of all parameters of a process.
const PARAMETER_KIB: usize = 64;
const PARAMETERS_KIB: usize = 256;

fn too_many_words(manifest: &Manifest, index: usize, bytes: &[u8]) -> Error {
    let Manifest { name, parameters, .. } = manifest;
    let parameter = parameters.get(index).map_or("parameter", |parameter| &parameter.name);
    Error::new(format!(
        "{name}: `{parameter}` has {} KiB, but a program is given at most {PARAMETER_KIB} KiB for one parameter and \
         {PARAMETERS_KIB} KiB for all; give it fewer words at a time, as `find PATH | xargs {name}` does",
        bytes.len().div_ceil(1024)
    ))
}

fn give_parameter(mut child: Child, manifest: &Manifest, index: usize, bytes: &[u8]) -> Result<Child, sip::Status> {
    let text = String::from_utf8_lossy(bytes);
    if !manifest.parameters.get(index).is_some_and(|parameter| parameter.repeated) {
        return child.parameter(index, &text);
    }
    // Each value is terminated by a zero byte.
    for value in text.strip_suffix('\0').unwrap_or(&text).split('\0') {
        child = child.repeated_parameter(index, value)?;
    }
    Ok(child)
}

/// Starts all children, or stops all. The threads that read their errors are added to `pumps`.
fn start(
    children: Vec<(String, Child, Option<Unread>)>,
    pumps: &mut Vec<JoinHandle<()>>,
) -> Result<Vec<Running>, Error> {
    let mut running: Vec<Running> = Vec::new();
    let last = children.len().saturating_sub(1);
    for (index, (name, child, unread)) in children.into_iter().enumerate() {
        let started = child.start().and_then(|child| {
            let child = Arc::new(child);
            running.push(Running { name: name.clone(), child: Arc::clone(&child), is_last: index == last });
            pumps.extend(unread.map(|unread| sip::thread::spawn(move || unread.pump(&child))).transpose()?);
            Ok(())
        });
        if let Err(status) = started {
            for one in &running {
                // Fails only if the child has already ended.
                let _ = one.child.stop(StopReason::Requested);
            }
            return Err(Error::new(format!("{name}: cannot start: {}", status.text())));
        }
    }
    Ok(running)
}

/// Checks that each stage accepts the output of the one before it.
fn check_joints(stages: &[Stage<'_>]) -> Result<(), Error> {
    for (index, stage) in stages.iter().enumerate() {
        match stage {
            Stage::Builtin(builtin, _) if index > 0 => {
                let message = format!("{} reads no input; a command of the shell can only begin a pipe", builtin.name);
                return Err(Error::new(message));
            }
            Stage::Builtin(..) => {}
            Stage::Program(call) => {
                let name = &call.manifest.name;
                if index > 0 && !reads_input(&call.manifest) {
                    return Err(Error::new(format!("{name} reads no standard input; it cannot stand behind a `|`")));
                }
                if index + 1 < stages.len() && !writes_output(&call.manifest) {
                    return Err(Error::new(format!("{name} writes no standard output; it cannot stand before a `|`")));
                }
            }
        }
    }
    Ok(())
}

/// Returns the stage for a command that names a builtin or a program.
pub fn stage<'a>(shell: &Shell, command: &'a Command) -> Result<Stage<'a>, Error> {
    if let Some(subshell) = &command.subshell {
        return Ok(Stage::Program(Call::subshell(subshell, shell.programs())?));
    }
    let (name, words) = (command.words[0].as_str(), &command.words[1..]);
    if let Some(builtin) = builtins::find(name) {
        if command.input.is_some() {
            return Err(Error::new(format!(
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
        Some(manifest) if script_of(&manifest).is_some() && shell.programs().is_unsigned(name) => Err(Error {
            status: STATUS_CANNOT_RUN,
            message: format!(
                "{name} is a script that nobody has signed, and in quarantine: it does not run; have its publisher sign it"
            ),
        }),
        Some(manifest) => Ok(Stage::Program(Call::new(manifest, words)?)),
        None => Err(Error {
            status: STATUS_NOT_FOUND,
            message: match familiar::here(name) {
                Some(here) => format!("{name}: no such program; here it is {here}"),
                None => format!("{name}: no such program; `help` lists those that are installed"),
            },
        }),
    }
}
