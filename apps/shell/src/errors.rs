//! Where errors go: `2>`, and `2>&1`.
//!
//! Programs write errors as debug text. A program whose errors are redirected is started with a debug sink
//! ([`sip::debug::Sink`]), which those that it starts inherit; a thread of the shell reads that until the program has ended,
//! puts the name of its writer before each line, as the machine's debug output does, and passes it on.
//! Deliberately not here: errors that nobody redirects. They go to the machine's debug output without the shell.

use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use client::access::AccessError;
use command_language::{Command, Errors};
use contracts::pipe;
use sip::debug::{Sink as DebugSink, SinkText};
use sip::process::Child;
use sip::select::wait_any;
use sip::sync::Mutex;
use sip::thread::JoinHandle;
use sip::{Deadline, Status};
use stdio::{Input, Output, new_pipe};

use crate::gate::Gate;
use crate::shell::{Error, Shell};
use crate::sink::{Sink, existing};

/// What the shell's own errors begin with.
const SHELL: &str = "shell";

type Writer = pipe::Imp<pipe::states::Ready>;

/// Where the errors of one command go.
#[derive(Clone)]
pub enum Target {
    /// A place for output.
    Sink(Sink),
    /// The pipe behind the command, among its output.
    NextPipe,
}

/// The errors of a program that is created and not yet started.
pub struct Unread {
    sink: DebugSink,
    to: Way,
}

/// A way from a thread to where errors go.
enum Way {
    Own(Output),
    /// The pipe that the program's output goes to as well, and what moves that: whether it moved all.
    Shared(Arc<Mutex<Option<Output>>>, JoinHandle<bool>),
}

impl Unread {
    /// Errors to a place for output. What moves them on there is added to `pumps`.
    pub fn to_sink(
        shell: &mut Shell,
        target: &Sink,
        gate: Option<&Arc<Gate>>,
        pumps: &mut Vec<JoinHandle<()>>,
    ) -> Result<Unread, AccessError> {
        let sink = DebugSink::new()?;
        let opened = target.open(&mut shell.namespace, gate)?;
        pumps.extend(opened.pump);
        Ok(Unread { sink, to: Way::Own(Output::new(opened.writer)) })
    }

    /// Errors to the pipe that `writer` writes to; and the writing end of the program, whose output goes there, too.
    pub fn to_pipe(writer: Writer) -> Result<(Unread, Writer), Status> {
        let sink = DebugSink::new()?;
        let (own_writer, reader) = new_pipe()?;
        let output = Arc::new(Mutex::new(Some(Output::new(writer))));
        let shared = Arc::clone(&output);
        let moving = sip::thread::spawn(move || move_all(Input::new(reader), &shared))?;
        Ok((Unread { sink, to: Way::Shared(output, moving) }, own_writer))
    }

    /// The sink that the program is given.
    pub fn sink(&self) -> &DebugSink {
        &self.sink
    }

    /// Moves errors on until the program has ended.
    pub fn pump(self, child: &Child) {
        match self.to {
            Way::Own(mut output) => {
                read_all(&self.sink, child, |text| output.write(text).and_then(|()| output.flush()).is_ok());
                // What is gone needs no end.
                let _ = output.finish();
            }
            Way::Shared(output, moving) => {
                read_all(&self.sink, child, |text| {
                    let mut output = output.lock();
                    output.as_mut().is_some_and(|output| output.write(text).and_then(|()| output.flush()).is_ok())
                });
                let is_whole = moving.join().unwrap_or(false);
                // A program that did not finish its output leaves the pipe cut off, which its reader sees.
                if let (true, Some(output)) = (is_whole, output.lock().take()) {
                    let _ = output.finish();
                }
            }
        }
    }
}

/// Moves a program's output on; whether it came to its end.
fn move_all(mut input: Input, output: &Mutex<Option<Output>>) -> bool {
    while let Ok(block) = input.block() {
        let Some(block) = block else { return true };
        if output.lock().as_mut().is_none_or(|output| output.write_block(block).is_err()) {
            // The writer finds out at its next block.
            return false;
        }
    }
    false
}

/// Reads a sink until the program has ended and all that it wrote was passed on. Where nobody takes it any more it is read
/// all the same: it is not to come on the machine's debug output instead.
fn read_all(sink: &DebugSink, child: &Child, mut pass_on: impl FnMut(&[u8]) -> bool) {
    let mut lines = Lines::default();
    let mut is_taken = true;
    loop {
        let has_ended = wait_any(&[sink, child], Deadline::NEVER) == Some(1);
        let mut text = Vec::new();
        while let Some(found) = sink.read() {
            lines.add(&found, &mut text);
        }
        if has_ended {
            lines.end(&mut text);
        }
        is_taken = is_taken && (text.is_empty() || pass_on(&text));
        if has_ended {
            return;
        }
    }
}

/// Puts names before lines.
#[derive(Default)]
struct Lines {
    /// Process id of the writer whose line has not ended.
    open: Option<u64>,
}

impl Lines {
    fn add(&mut self, found: &SinkText, out: &mut Vec<u8>) {
        match found {
            SinkText::Text { process_id, program, bytes } => {
                if self.open != Some(*process_id) {
                    self.end(out);
                }
                for line in bytes.split_inclusive(|&byte| byte == b'\n') {
                    if self.open.is_none() {
                        out.extend_from_slice(format!("{program}: ").as_bytes());
                    }
                    out.extend_from_slice(line);
                    self.open = (!line.ends_with(b"\n")).then_some(*process_id);
                }
            }
            SinkText::Lost { bytes } => {
                self.end(out);
                let line = format!("{SHELL}: {bytes} bytes of errors are missing here: they came too fast\n");
                out.extend_from_slice(line.as_bytes());
            }
        }
    }

    /// Ends a line that has not ended.
    fn end(&mut self, out: &mut Vec<u8>) {
        if self.open.take().is_some() {
            out.push(b'\n');
        }
    }
}

impl Shell {
    /// Tells of an error of the shell's own or of a script: where errors go now.
    pub fn error(&mut self, message: &str) {
        let Some(sink) = self.errors.last().cloned() else { return self.report(message) };
        let text: String = message.lines().map(|line| format!("{SHELL}: {line}\n")).collect();
        // Where that is a file that takes no more, its end tells.
        if sink.write(&mut self.namespace, text.as_bytes()).is_err() {
            self.report(message);
        }
    }

    /// Has errors go to a sink while something runs.
    pub fn with_errors<R>(&mut self, sink: Sink, run: impl FnOnce(&mut Shell) -> R) -> R {
        self.errors.push(sink);
        let result = run(self);
        self.errors.pop();
        result
    }

    /// Where the errors of each command of a pipeline go, if they are redirected.
    pub fn error_targets(&mut self, commands: &[Command]) -> Result<Vec<Option<Target>>, Error> {
        let mut targets = Vec::new();
        for (index, command) in commands.iter().enumerate() {
            targets.push(match &command.errors {
                None => self.errors.last().cloned().map(Target::Sink),
                Some(Errors::Output) if index + 1 < commands.len() => Some(Target::NextPipe),
                Some(errors) => Some(Target::Sink(self.error_sink(errors).map_err(|error| match errors {
                    Errors::File(_, path) => Error::new(format!("{path}: {error}")),
                    Errors::Output | Errors::OutputBefore => error.into(),
                })?)),
            });
        }
        Ok(targets)
    }

    /// The place that a redirection names.
    pub fn error_sink(&mut self, errors: &Errors) -> Result<Sink, AccessError> {
        match errors {
            Errors::File(mode, path) => {
                let full = self.absolute(path);
                Sink::file(&mut self.namespace, path, &full, existing(*mode))
            }
            Errors::Output => Ok(self.sink()),
            Errors::OutputBefore => Ok(self.sink_before()),
        }
    }
}

/// Whether all errors so far are where they were to go.
pub fn are_whole(targets: &[Option<Target>]) -> bool {
    targets.iter().flatten().all(|target| match target {
        Target::Sink(sink) => sink.is_whole(),
        Target::NextPipe => true,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(texts: &[(u64, &str)]) -> String {
        let (mut lines, mut out) = (Lines::default(), Vec::new());
        for &(process_id, text) in texts {
            let found = match process_id {
                0 => SinkText::Lost { bytes: 7 },
                _ => SinkText::Text { process_id, program: format!("p{process_id}"), bytes: text.into() },
            };
            lines.add(&found, &mut out);
        }
        lines.end(&mut out);
        String::from_utf8_lossy(&out).into_owned()
    }

    #[test]
    fn each_line_begins_with_the_name_of_its_writer() {
        assert_eq!(shown(&[(1, "a\nb\n"), (2, "c\n")]), "p1: a\np1: b\np2: c\n");
        assert_eq!(shown(&[(1, "a "), (1, "b\nc"), (1, "d\n")]), "p1: a b\np1: cd\n");
        assert_eq!(shown(&[(1, "no end"), (2, "other"), (1, "again")]), "p1: no end\np2: other\np1: again\n");
        assert_eq!(shown(&[(1, "\n\n"), (1, "x\n")]), "p1: \np1: \np1: x\n");
        assert_eq!(shown(&[]), "");
    }

    #[test]
    fn nobody_writes_a_line_in_the_name_of_another() {
        assert_eq!(shown(&[(1, "x\np2: forged\n"), (2, "y")]), "p1: x\np1: p2: forged\np2: y\n");
    }

    #[test]
    fn what_is_missing_is_told_where_it_is_missing() {
        let missing = "shell: 7 bytes of errors are missing here: they came too fast\n";
        assert_eq!(shown(&[(1, "a"), (0, ""), (1, "b\n")]), format!("p1: a\n{missing}p1: b\n"));
    }
}
