//! Runs a command with arguments from standard input.
//!
//! Each run is a command line for a shell, with the same limit as a typed command. Deliberately not here: parallel
//! runs.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod words;

use alloc::string::String;
use alloc::vec::Vec;

use client::namespace::Namespace;
use command_language::quote;
use stdio::{Input, Output, report};
use tool_kit::command::{MAX_COMMAND_BYTES, RunError, Runner, command_line};

use crate::words::{Between, Words};

sip::startup!();

/// Maximum bytes of a command line filled with words; the rest is room for the shell's additions.
const LINE_BYTES: usize = MAX_COMMAND_BYTES - 4096;
/// Exit status: a command failed.
const STATUS_FAILED: i32 = 123;
/// Exit status: a command could not be run.
const STATUS_CANNOT_RUN: i32 = 126;

/// Runs the command as often as necessary for all words.
pub fn main(mut startup: Startup) -> i32 {
    let settled = settings(&startup).and_then(|settings| Ok((settings, Runner::new(&startup.working_folder)?)));
    let (settings, runner) = match settled {
        Ok(settled) => settled,
        Err(message) => {
            report::error(format_args!("{message}"));
            return 2;
        }
    };
    let Some(input) = startup.input.take() else {
        report::error(format_args!("standard input is not connected; usage: ... | xargs COMMAND"));
        return 2;
    };
    let mut runs = Runs {
        runner,
        namespace: Namespace::new(startup.namespace),
        output: Output::new(startup.output),
        settings,
        gathered: Vec::new(),
        gathered_bytes: 0,
        runs: 0,
        status: 0,
    };
    match runs.read(Input::new(input)).and_then(|()| runs.finish()) {
        Ok(()) => runs.output.finish_with(runs.status),
        Err(RunError::Failed(message)) => {
            report::error(format_args!("{message}"));
            STATUS_CANNOT_RUN
        }
        // The reader has ended.
        Err(RunError::NoReader(_)) => 1,
    }
}

struct Settings {
    /// The command, each word quoted.
    command: Vec<String>,
    most: usize,
    replace: Option<String>,
    between: Between,
    runs_without_words: bool,
    is_traced: bool,
}

fn settings(startup: &Startup) -> Result<Settings, String> {
    let most = match startup.words {
        None => usize::MAX,
        Some(most) => usize::try_from(most)
            .ok()
            .filter(|most| *most > 0)
            .ok_or_else(|| alloc::format!("`-n {most}` is not a number of words; use 1 or more"))?,
    };
    let between = match (&startup.delimiter, startup.null, &startup.replace) {
        (None, true, _) => Between::Byte(0),
        (None, false, Some(_)) => Between::Lines,
        (None, false, None) => Between::Blanks,
        (Some(delimiter), _, _) => match delimiter.as_bytes() {
            [byte] => Between::Byte(*byte),
            b"\\n" => Between::Byte(b'\n'),
            b"\\0" => Between::Byte(0),
            b"\\t" => Between::Byte(b'\t'),
            _ => return Err(alloc::format!("`{delimiter}` is not one byte; -d takes one, or `\\n`, `\\t`, `\\0`")),
        },
    };
    if startup.replace.as_ref().is_some_and(String::is_empty) {
        return Err(String::from("-I takes the text that words replace: `-I {}`"));
    }
    let mut command = startup.command.clone();
    if command.is_empty() {
        command.push(String::from("echo"));
    }
    Ok(Settings {
        command,
        most,
        replace: startup.replace.clone(),
        between,
        runs_without_words: !startup.no_run_if_empty,
        is_traced: startup.trace,
    })
}

struct Runs {
    runner: Runner,
    namespace: Namespace,
    output: Output,
    settings: Settings,
    gathered: Vec<String>,
    gathered_bytes: usize,
    runs: u64,
    status: i32,
}

impl Runs {
    fn read(&mut self, mut input: Input) -> Result<(), RunError> {
        let mut words = Words::new(self.settings.between);
        let cut_off = |broken| RunError::Failed(alloc::format!("standard input ended early: {broken}"));
        while let Some(block) = input.block().map_err(cut_off)? {
            for &byte in block.iter() {
                if let Some(word) = words.push(byte) {
                    self.add(word)?;
                }
                if words.pending_bytes() > LINE_BYTES {
                    return Err(too_long());
                }
            }
        }
        match words.finish() {
            Ok(None) => Ok(()),
            Ok(Some(word)) => self.add(word),
            Err(_) => {
                Err(RunError::Failed(String::from("unterminated quote in the input; `-d '\\n'` takes lines literally")))
            }
        }
    }

    fn add(&mut self, word: String) -> Result<(), RunError> {
        if let Some(replace) = &self.settings.replace {
            let words: Vec<String> =
                self.settings.command.iter().map(|part| part.replace(replace.as_str(), &word)).collect();
            return self.run(&words);
        }
        let bytes = quote(&word).len() + 1;
        if self.base_bytes() + self.gathered_bytes + bytes > LINE_BYTES && !self.gathered.is_empty() {
            self.run_gathered()?;
        }
        self.gathered.push(word);
        self.gathered_bytes += bytes;
        if self.gathered.len() >= self.settings.most { self.run_gathered() } else { Ok(()) }
    }

    fn base_bytes(&self) -> usize {
        self.settings.command.iter().map(|word| quote(word).len() + 1).sum()
    }

    fn finish(&mut self) -> Result<(), RunError> {
        let is_first = self.runs == 0 && self.settings.replace.is_none() && self.settings.runs_without_words;
        if self.gathered.is_empty() && !is_first { Ok(()) } else { self.run_gathered() }
    }

    fn run_gathered(&mut self) -> Result<(), RunError> {
        let words: Vec<String> = self.settings.command.iter().cloned().chain(self.gathered.drain(..)).collect();
        self.gathered_bytes = 0;
        self.run(&words)
    }

    fn run(&mut self, words: &[String]) -> Result<(), RunError> {
        let line = command_line(words.iter().map(String::as_str));
        if line.len() > LINE_BYTES {
            return Err(too_long());
        }
        if self.settings.is_traced {
            report::error(format_args!("{line}"));
        }
        self.runs += 1;
        let status = self.runner.run(&mut self.namespace, &line, &mut self.output)?;
        self.output.flush().map_err(RunError::NoReader)?;
        if status == STATUS_CANNOT_RUN || status == STATUS_CANNOT_RUN + 1 {
            self.status = status;
            return Err(RunError::Failed(alloc::format!("cannot run `{}`; giving up", words[0])));
        }
        if status != 0 {
            self.status = STATUS_FAILED;
        }
        Ok(())
    }
}

fn too_long() -> RunError {
    RunError::Failed(alloc::format!("a command would exceed {} KiB; give it fewer or shorter words", LINE_BYTES >> 10))
}
