//! `sing trace`: runs a system and writes what it does while commands run.
//!
//! The program `trace` of the system writes the file to a host folder, which this module makes and empties. Deliberately
//! not here: the formats (`lib/trace-file`).

use std::path::{Path, PathBuf};

use clap::Args;
use command_language::quote;

use crate::command_line::RunArguments;
use crate::failure::{Failure, Outcome};
use crate::repository::Repository;
use crate::run;

/// Name of the folder below `/fs`.
const FOLDER: &str = "sing-trace";

/// `sing trace`.
#[derive(Debug, Clone, Args)]
pub struct TraceArguments {
    /// File to write [default: trace.perfetto, trace.json or trace.txt]
    #[arg(short = 'o', long = "output", value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Format of the file
    #[arg(long, value_enum, default_value = "perfetto")]
    pub format: TraceFormat,
    /// Only this process id, instance or program, its children, and the messages that they exchange with others
    #[arg(long, value_name = "PROCESS")]
    pub follow: Option<String>,
    /// Trace for this time, instead of commands
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), conflicts_with = "commands")]
    pub seconds: Option<u32>,
    /// Events that are buffered while the file is written; more are lost and counted
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=abi::limits::STREAM_EVENTS))]
    pub events: Option<u64>,
    /// The system, the machine, and the commands.
    #[command(flatten)]
    pub run: RunArguments,
}

/// Format of a trace file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum TraceFormat {
    /// Protobuf, for <https://ui.perfetto.dev>
    Perfetto,
    /// Chrome's trace events, which Perfetto opens, too
    Json,
    /// A line for each event
    Text,
}

impl TraceFormat {
    fn name(self) -> &'static str {
        match self {
            TraceFormat::Perfetto => "perfetto",
            TraceFormat::Json => "json",
            TraceFormat::Text => "text",
        }
    }

    fn usual_file(self) -> &'static Path {
        Path::new(match self {
            TraceFormat::Perfetto => "trace.perfetto",
            TraceFormat::Json => "trace.json",
            TraceFormat::Text => "trace.txt",
        })
    }
}

/// `sing trace`. Returns the exit status of the commands.
///
/// # Errors
/// The system cannot be run, or it has written no trace.
pub fn trace(repository: &Repository, arguments: &TraceArguments) -> Outcome<u8> {
    let output = arguments.output.as_deref().unwrap_or(arguments.format.usual_file());
    let folder = tempfile::Builder::new()
        .prefix("sing-trace")
        .tempdir()
        .map_err(|error| Failure::file("make a folder in", &std::env::temp_dir(), &error))?;
    let mut run = arguments.run.clone();
    let mut shared = std::ffi::OsString::from(format!("{FOLDER}="));
    shared.push(folder.path());
    run.folder.push(shared);
    run.commands = Some(traced(arguments)?);
    let status = run::run_to_end(repository, &run)?;
    let written = folder.path().join("trace");
    if !written.is_file() {
        return Err(Failure::new("the system has written no trace").remedy("its messages above say why"));
    }
    std::fs::copy(&written, output).map_err(|error| Failure::file("write the trace to", output, &error))?;
    let remedy = match arguments.format {
        TraceFormat::Perfetto | TraceFormat::Json => {
            ": open it at https://ui.perfetto.dev, which keeps it in the browser"
        }
        TraceFormat::Text => "",
    };
    eprintln!("sing: {}{remedy}", output.display());
    Ok(status)
}

/// The command line that traces the commands.
fn traced(arguments: &TraceArguments) -> Outcome<String> {
    let mut line = format!("trace -o /fs/{FOLDER}/trace --format {}", arguments.format.name());
    if let Some(follow) = &arguments.follow {
        line += &format!(" --follow {}", quote(follow));
    }
    if let Some(events) = arguments.events {
        line += &format!(" --events {events}");
    }
    match (&arguments.run.commands, arguments.seconds) {
        (Some(commands), _) => line += &format!(" shell -c {}", quote(commands)),
        (None, Some(seconds)) => line += &format!(" --time {seconds}s"),
        (None, None) => {
            return Err(Failure::new("nothing to trace").remedy(
                "add -c COMMANDS or --seconds N; in a system that runs, type `trace -o FILE COMMAND` at its prompt",
            ));
        }
    }
    Ok(line)
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        arguments: TraceArguments,
    }

    fn line(words: &[&str]) -> Result<String, String> {
        let words = [&["trace"], words].concat();
        let line = Line::try_parse_from(words).map_err(|error| error.to_string())?;
        traced(&line.arguments).map_err(|failure| failure.told_by("sing"))
    }

    #[test]
    fn commands_are_one_word_for_the_shell_that_runs_them() {
        let quoted = "trace -o /fs/sing-trace/trace --format perfetto --follow cat shell -c 'cat a; ls \"b\"'";
        assert_eq!(line(&["--follow", "cat", "-c", "cat a; ls \"b\""]).as_deref(), Ok(quoted));
        let timed = "trace -o /fs/sing-trace/trace --format json --events 9 --time 2s";
        assert_eq!(line(&["--seconds", "2", "--format", "json", "--events", "9"]).as_deref(), Ok(timed));
    }

    #[test]
    fn a_trace_of_nothing_is_refused() {
        assert!(line(&[]).is_err_and(|text| text.contains("-c COMMANDS")));
        assert!(line(&["--seconds", "1", "-c", "ls"]).is_err_and(|text| text.contains("cannot be used with")));
        assert!(line(&["--events", "0", "-c", "ls"]).is_err_and(|text| text.contains("1..=65536")));
    }
}
