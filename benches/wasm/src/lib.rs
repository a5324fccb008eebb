//! Measures programs as their user sees them, native ones and WebAssembly alike: from their start to their first output
//! and to their end, the memory of many that are idle, commands of the shell, and the parts of an installation. Each
//! line is `bench NAME FIGURE`, in nanoseconds or bytes.
//!
//! Deliberately not here: what is compared with what, which is the host tool's.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod alive;
mod compile;
mod install;
mod started;

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use client::namespace::Namespace;
use stdio::{Output, report};
use tool_kit::command::{RunError, Runner};

use crate::started::Program;

sip::startup!();

/// What was measured.
type Figures = Vec<(&'static str, u64)>;

/// Performs the task, and prints its figures.
pub fn main(startup: Startup) -> i32 {
    let mut namespace = Namespace::new(startup.namespace);
    let mut output = Output::new(startup.output);
    let prefix = if startup.name.is_empty() { String::new() } else { format!("{}_", startup.name) };
    let count = u32::try_from(startup.count).unwrap_or(0).max(1);
    let figures = match (startup.task.as_str(), &startup.words[..]) {
        ("start", [program, words @ ..]) => start(&mut namespace, program, words, &startup.folder, count),
        ("alive", [program]) => alive::measure(&mut namespace, program, count),
        ("command", [line]) => command(&mut namespace, line, &startup.folder, &mut output),
        ("install", [package]) => install::measure(&mut namespace, package),
        ("compile", [package]) => {
            let wanted = compile::Wanted {
                allocator: &startup.allocator,
                checker: &startup.checker,
                threads: startup.threads,
                answer_ms: startup.answer_ms,
            };
            compile::measure(&mut namespace, package, &wanted, count)
        }
        (task, words) => Err(format!("`{task}` with {} words is no task; see `help bench-wasm`", words.len())),
    };
    let printed = figures.and_then(|figures| {
        let line = |(name, figure): &(&str, u64)| format!("bench {prefix}{name} {figure}\n");
        let lines: String = figures.iter().map(line).collect();
        output.write(lines.as_bytes()).map_err(|_| String::from("the output is closed"))
    });
    match printed {
        Ok(()) => output.finish_with(0),
        Err(problem) => {
            report::error(format_args!("{problem}"));
            1
        }
    }
}

/// Starts a program many times, one after the other.
fn start(namespace: &mut Namespace, name: &str, words: &[String], folder: &str, turns: u32) -> Result<Figures, String> {
    let program = Program::find(name)?;
    let (mut first, mut end, mut bound, mut bytes) = (Vec::new(), Vec::new(), Vec::new(), 0);
    for _ in 0..turns {
        let start = sip::time::monotonic();
        let running = program.start(namespace, words, folder)?;
        bound.push(running.bound_ns);
        let (first_ns, end_ns, written) = running.until_its_end(start)?;
        first.push(first_ns);
        end.push(end_ns);
        bytes = written;
    }
    Ok(Vec::from([("first_ns", median(first)), ("end_ns", median(end)), ("bound_ns", median(bound)), ("bytes", bytes)]))
}

/// Runs a command line, which has to succeed; its output is this program's.
fn command(namespace: &mut Namespace, line: &str, folder: &str, output: &mut Output) -> Result<Figures, String> {
    let runner = Runner::new(if folder.is_empty() { "/" } else { folder })?;
    let start = sip::time::monotonic();
    let status = runner.run(namespace, line, output).map_err(|error| match error {
        RunError::Failed(problem) => problem,
        RunError::NoReader(_) => String::from("the output is closed"),
    })?;
    let passed = sip::time::monotonic() - start;
    match status {
        0 => Ok(Vec::from([("command_ns", passed)])),
        status => Err(format!("`{line}` ended with status {status}")),
    }
}

fn median(mut all: Vec<u64>) -> u64 {
    all.sort_unstable();
    all.get(all.len() / 2).copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_one_in_the_middle() {
        assert_eq!((median(Vec::new()), median([9, 1, 5].into())), (0, 5));
    }
}
