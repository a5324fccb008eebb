//! Writes what the system does while a command runs, as a file for Perfetto.
//!
//! A thread empties the kernel's buffers ([`recorder`]) while the first one runs the command. Deliberately not here: the
//! formats (`lib/trace-file`), and pictures.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod known;
mod recorder;

use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;

use client::file_writer::{Existing, FileWriter};
use client::namespace::Namespace;
use client::processes::Instances;
use sip::diagnostics::Stream;
use sip::sync::Event;
use sip::{Deadline, Status};
use stdio::{Output, report};
use tool_kit::command::{RunError, Runner, command_line};
use trace_file::Format;

use known::Known;
use recorder::{Recorder, Summary};

sip::startup!();

/// Exit status: the command line cannot be carried out.
const STATUS_USAGE: i32 = 2;
/// Exit status: the trace could not be written.
const STATUS_FAILED: i32 = 1;

/// Traces a command, or for some time; the exit status is the command's.
pub fn main(startup: Startup) -> i32 {
    match Settings::of(&startup) {
        Ok(settings) => trace(settings, startup),
        Err(message) => {
            report::error(format_args!("{message}"));
            STATUS_USAGE
        }
    }
}

struct Settings {
    file: String,
    format: Format,
    events: u64,
    pause_ns: u64,
    until: Until,
}

/// When the trace ends.
enum Until {
    /// When this command line does.
    Command(String),
    /// After so many nanoseconds.
    Passed(u64),
}

impl Settings {
    fn of(startup: &Startup) -> Result<Settings, String> {
        let file = startup.file.as_ref().ok_or("no file to write; usage: trace -o FILE COMMAND...")?;
        let format = Format::of(&startup.format)
            .ok_or_else(|| format!("`{}` is no format; there are perfetto, json and text", startup.format))?;
        let events = u64::try_from(startup.events)
            .ok()
            .filter(|events| (1..=sip::diagnostics::STREAM_EVENTS).contains(events))
            .ok_or_else(|| {
                format!("--events {} is not from 1 to {}", startup.events, sip::diagnostics::STREAM_EVENTS)
            })?;
        let until = match (startup.command.is_empty(), startup.time) {
            (false, None) => Until::Command(command_line(startup.command.iter().map(String::as_str))),
            (true, Some(time)) => Until::Passed(time.as_nanos() as u64),
            (false, Some(_)) => {
                return Err(String::from("--time is for a trace without a command; leave one of them out"));
            }
            (true, None) => return Err(String::from("no command to trace; give one, or --time 5s")),
        };
        let file = path::absolute(&startup.working_folder, file);
        Ok(Settings { file, format, events, pause_ns: startup.pause.as_nanos() as u64, until })
    }
}

fn trace(settings: Settings, startup: Startup) -> i32 {
    let mut namespace = Namespace::new(startup.namespace);
    let runner = match Runner::new(&startup.working_folder) {
        Ok(runner) => runner,
        Err(message) => {
            report::error(format_args!("{message}"));
            return STATUS_USAGE;
        }
    };
    let file = match FileWriter::open(&mut namespace, &settings.file, Existing::Replace) {
        Ok(file) => file,
        Err(error) => return report::path_error(&settings.file, &error),
    };
    let known = startup.follow.map(|target| (Instances::read(&mut namespace), target));
    let started = Known::new(known, matches!(settings.until, Until::Passed(_)))
        .and_then(|known| Ok((known, Stream::start(settings.events).map_err(why_no_stream)?)));
    let (known, stream) = match started {
        Ok(started) => started,
        Err(message) => {
            report::error(format_args!("{message}"));
            return STATUS_FAILED;
        }
    };
    let recorder = Recorder::new(stream, known, settings.format, file, settings.pause_ns);
    let recording = Event::manual().and_then(|end| {
        let end = Arc::new(end);
        let seen = Arc::clone(&end);
        Ok((end, sip::thread::spawn(move || recorder.record(&seen))?))
    });
    let (end, thread) = match recording {
        Ok(recording) => recording,
        Err(status) => {
            report::error(format_args!("the recorder cannot be started: {}", status.text()));
            return STATUS_FAILED;
        }
    };
    let mut output = Output::new(startup.output);
    let status = wait(&settings.until, &runner, &mut namespace, &mut output);
    end.set();
    let status = reported(status, thread.join(), &settings.file);
    output.finish_with(status)
}

fn why_no_stream(status: Status) -> String {
    match status {
        Status::Busy => String::from("another process traces the system; only one can at a time"),
        Status::QuotaExceeded => String::from("the kernel memory of this process is exhausted; use fewer --events"),
        other => format!("the system cannot be traced: {}", other.text()),
    }
}

/// Waits for the end of what is traced; returns the exit status.
fn wait(until: &Until, runner: &Runner, namespace: &mut Namespace, output: &mut Output) -> i32 {
    match until {
        Until::Passed(ns) => {
            sip::time::sleep_until(Deadline::after_ns(*ns));
            0
        }
        Until::Command(line) => match runner.run(namespace, line, output) {
            Ok(status) => status,
            Err(RunError::Failed(message)) => {
                report::error(format_args!("{message}"));
                STATUS_USAGE
            }
            // The reader has ended.
            Err(RunError::NoReader(_)) => STATUS_FAILED,
        },
    }
}

/// Reports how the recording ended; returns the exit status of the program.
fn reported(status: i32, end: Result<Result<Summary, String>, Status>, file: &str) -> i32 {
    match end {
        Ok(Ok(Summary { events, lost })) => {
            let remedy = if lost == 0 { "" } else { "; more --events or --follow keep more" };
            report::error(format_args!("{file}: {events} events, {lost} lost{remedy}"));
            status
        }
        Ok(Err(message)) => {
            report::error(format_args!("{file}: {message}"));
            STATUS_FAILED
        }
        Err(error) => {
            report::error(format_args!("{file}: the recorder ended: {}", error.text()));
            STATUS_FAILED
        }
    }
}
