//! Redirection of errors: `2>`, and `2>&1`.
//!
//! Programs write errors as debug text. A program whose errors are redirected is started with a debug sink
//! ([`sip::debug::Sink`]), which its children inherit; a thread of the shell reads the sink until the program has
//! ended, prefixes each line with the name of its writer, as the machine's debug output does, and forwards it.
//! Deliberately not here: errors that are not redirected. They bypass the shell and go to the machine's debug output.

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

/// Prefix of the shell's own errors.
const SHELL: &str = "shell";

type Writer = pipe::Imp<pipe::states::Ready>;

/// Target of a command's errors.
#[derive(Clone)]
pub enum Target {
    /// A sink.
    Sink(Sink),
    /// The pipe after the command, together with its output.
    NextPipe,
}

/// Redirected errors of a program that is created and not yet started.
pub struct Unread {
    sink: DebugSink,
    to: Way,
}

/// Where a reader thread forwards errors.
enum Way {
    Own(Output),
    /// The pipe that also carries the program's output, and the thread that forwards that; it returns whether
    /// everything was forwarded.
    Shared(Arc<Mutex<Option<Output>>>, JoinHandle<bool>),
}

impl Unread {
    /// Redirects errors to a sink. The threads that forward them there are added to `pumps`.
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

    /// Redirects errors to the pipe that `writer` writes to; also returns the program's writing end, whose output
    /// goes to the same pipe.
    pub fn to_pipe(writer: Writer) -> Result<(Unread, Writer), Status> {
        let sink = DebugSink::new()?;
        let (own_writer, reader) = new_pipe()?;
        let output = Arc::new(Mutex::new(Some(Output::new(writer))));
        let shared = Arc::clone(&output);
        let moving = sip::thread::spawn(move || move_all(Input::new(reader), &shared))?;
        Ok((Unread { sink, to: Way::Shared(output, moving) }, own_writer))
    }

    /// The sink to give to the program.
    pub fn sink(&self) -> &DebugSink {
        &self.sink
    }

    /// Forwards errors until the program has ended.
    pub fn pump(self, child: &Child) {
        match self.to {
            Way::Own(mut output) => {
                read_all(&self.sink, child, |text| output.write(text).and_then(|()| output.flush()).is_ok());
                // A closed pipe needs no end.
                let _ = output.finish();
            }
            Way::Shared(output, moving) => {
                read_all(&self.sink, child, |text| {
                    let mut output = output.lock();
                    output.as_mut().is_some_and(|output| output.write(text).and_then(|()| output.flush()).is_ok())
                });
                let is_whole = moving.join().unwrap_or(false);
                // After a program that did not finish its output, the pipe is closed as truncated, which its reader
                // detects.
                if let (true, Some(output)) = (is_whole, output.lock().take()) {
                    let _ = output.finish();
                }
            }
        }
    }
}

/// Forwards a program's output; returns whether it reached the end.
fn move_all(mut input: Input, output: &Mutex<Option<Output>>) -> bool {
    while let Ok(block) = input.block() {
        let Some(block) = block else { return true };
        if output.lock().as_mut().is_none_or(|output| output.write_block(block).is_err()) {
            // The writer gets the error with its next block.
            return false;
        }
    }
    false
}

/// Reads a sink until the program has ended and everything it wrote was forwarded. Keeps draining when nothing accepts
/// the errors any more: otherwise they would appear on the machine's debug output.
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

/// Prefixes lines with names.
#[derive(Default)]
struct Lines {
    /// Process id of the writer of an unfinished line.
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
                let line = format!("{SHELL}: {bytes} bytes of errors dropped: they came too fast\n");
                out.extend_from_slice(line.as_bytes());
            }
        }
    }

    /// Ends an unfinished line.
    fn end(&mut self, out: &mut Vec<u8>) {
        if self.open.take().is_some() {
            out.push(b'\n');
        }
    }
}

impl Shell {
    /// Reports an error of the shell or of a script to the current error target.
    pub fn error(&mut self, message: &str) {
        let Some(sink) = self.errors.last().cloned() else { return self.report(message) };
        let text: String = message.lines().map(|line| format!("{SHELL}: {line}\n")).collect();
        // A file that accepts no more data reports it when it is finished.
        if sink.write(&mut self.namespace, text.as_bytes()).is_err() {
            self.report(message);
        }
    }

    /// Redirects errors to a sink while `run` runs.
    pub fn with_errors<R>(&mut self, sink: Sink, run: impl FnOnce(&mut Shell) -> R) -> R {
        self.errors.push(sink);
        let result = run(self);
        self.errors.pop();
        result
    }

    /// Returns the error target of each command of a pipeline, if redirected.
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

    /// Opens the target of a redirection.
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

/// Whether all errors so far reached their targets.
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
        let missing = "shell: 7 bytes of errors dropped: they came too fast\n";
        assert_eq!(shown(&[(1, "a"), (0, ""), (1, "b\n")]), format!("p1: a\n{missing}p1: b\n"));
    }
}
