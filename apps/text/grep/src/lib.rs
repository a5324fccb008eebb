//! Prints lines that match a pattern.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod matcher;
mod search;
mod syntax;

use alloc::string::String;
use alloc::vec::Vec;

use client::namespace::Namespace;
use contracts::directory::NodeKind;
use contracts::pipe;
use file_tools::feed::{Error, INPUT_NAME, Reader};
use file_tools::walk::{Step, Walk, is_folder};
use stdio::{Input, Output, report};

use crate::matcher::{Case, Extent, Matcher};
use crate::search::{Names, Search, Shown};
use crate::syntax::Syntax;

sip::startup!();

/// Exit status: no line matched.
const STATUS_NONE: i32 = 1;
/// Exit status: an operation failed.
const STATUS_FAILED: i32 = 2;

/// Prints the matching lines of the files. The exit status is 0 if there are some, 1 if none, 2 after a failure.
pub fn main(mut startup: Startup) -> i32 {
    let mut patterns = core::mem::take(&mut startup.patterns);
    let mut paths = core::mem::take(&mut startup.paths);
    match startup.pattern.take() {
        Some(pattern) if patterns.is_empty() => patterns.push(pattern),
        Some(path) => paths.insert(0, path),
        None if patterns.is_empty() => {
            report::error(format_args!("no pattern; usage: grep PATTERN [PATH...]"));
            return STATUS_FAILED;
        }
        None => {}
    }
    let settings = matcher_of(&startup, &patterns).and_then(|matcher| Ok((matcher, shown_of(&startup)?)));
    let (matcher, shown) = match settings {
        Ok(settings) => settings,
        Err(message) => {
            report::error(format_args!("{message}"));
            return STATUS_FAILED;
        }
    };
    if paths.is_empty() && (startup.recursive || startup.input.is_none()) {
        if !startup.recursive {
            let usage = "grep PATTERN PATH...";
            report::error(format_args!("no file is named and standard input is not connected; usage: {usage}"));
            return STATUS_FAILED;
        }
        paths.push(String::from("."));
    }
    let several = paths.len() > 1 || startup.recursive;
    let names = if startup.with_name || (several && !startup.without_name) { Names::Shown } else { Names::Hidden };
    let mut grep = Grep {
        namespace: Namespace::new(startup.namespace),
        working_folder: startup.working_folder,
        input: startup.input,
        search: Search::new(matcher, shown, names, Output::new(startup.output)),
        is_recursive: startup.recursive,
        is_silent: startup.no_messages,
        failed: false,
    };
    if grep.search_all(&paths).is_err() {
        // The reader has ended.
        return if grep.search.found() { 0 } else { STATUS_FAILED };
    }
    let status = match (grep.search.found(), grep.failed) {
        (true, _) if startup.quiet => 0,
        (_, true) => STATUS_FAILED,
        (true, false) => 0,
        (false, false) => STATUS_NONE,
    };
    grep.search.finish(status)
}

fn matcher_of(startup: &Startup, patterns: &[String]) -> Result<Matcher, String> {
    let syntax = match (startup.fixed, startup.extended) {
        (true, _) => Syntax::Fixed,
        (false, true) => Syntax::Extended,
        (false, false) => Syntax::Basic,
    };
    let extent = match (startup.whole_line, startup.word) {
        (true, _) => Extent::Line,
        (false, true) => Extent::Words,
        (false, false) => Extent::Part,
    };
    let case = if startup.ignore_case { Case::Folded } else { Case::Distinct };
    Matcher::new(patterns, syntax, extent, case)
}

fn shown_of(startup: &Startup) -> Result<Shown, String> {
    let lines = |name: &str, asked: Option<i64>| {
        let number = |asked| usize::try_from(asked).map_err(|_| number_problem(name, asked));
        asked.map(number).transpose()
    };
    let context = lines("-C", startup.context)?;
    Ok(Shown {
        inverted: startup.invert,
        numbers: startup.number,
        counts: startup.count,
        list: startup.list,
        parts: startup.only_matching,
        quiet: startup.quiet,
        most: lines("-m", startup.most)?,
        before: lines("-B", startup.before)?.or(context).unwrap_or(0),
        after: lines("-A", startup.after)?.or(context).unwrap_or(0),
        with_context: startup.before.or(startup.after).or(startup.context).is_some(),
    })
}

fn number_problem(name: &str, asked: i64) -> String {
    alloc::format!("`{name} {asked}`: not a number of lines; use 0 or more")
}

struct Grep {
    namespace: Namespace,
    working_folder: String,
    input: Option<pipe::Exp<pipe::states::Ready>>,
    search: Search,
    is_recursive: bool,
    is_silent: bool,
    failed: bool,
}

impl Grep {
    fn search_all(&mut self, paths: &[String]) -> Result<(), Error> {
        if paths.is_empty() {
            return self.search_input();
        }
        for asked in paths {
            if asked == INPUT_NAME && self.input.is_some() {
                self.search_input()?;
                continue;
            }
            let full = path::absolute(&self.working_folder, asked);
            let is_tree = self.is_recursive
                && self.namespace.attributes(&full).is_ok_and(|(kind, _)| is_folder(kind) || kind == NodeKind::Link);
            if is_tree && let Ok(folder) = self.namespace.open_directory(&full) {
                let walk = Walk::new(folder, asked.clone(), "/");
                self.search_tree(asked, walk)?;
                continue;
            }
            let searched = match self.namespace.open_file(&full) {
                Ok(file) => self.search.search(asked, Reader::of_file(file)),
                Err(error) => Err(error.into()),
            };
            self.settle(asked, searched)?;
        }
        Ok(())
    }

    fn search_input(&mut self) -> Result<(), Error> {
        let Some(input) = self.input.take() else { return Ok(()) };
        let searched = self.search.search("(standard input)", Reader::of_input(Input::new(input)));
        self.settle("standard input", searched)
    }

    fn search_tree(&mut self, asked: &str, walk: Result<Walk, client::access::AccessError>) -> Result<(), Error> {
        let mut walk = match walk {
            Ok(walk) => walk,
            Err(error) => return self.settle(asked, Err(error.into())),
        };
        while let Some(step) = walk.step() {
            let Step::Name(name) = step else { continue };
            let text = name.text();
            let shown = walk.here().path_of(&text);
            let shown = shown.strip_prefix("./").map_or_else(|| shown.clone(), String::from);
            match name.kind {
                NodeKind::File => {
                    let opened =
                        name.part().and_then(|part| walk.here().folder().and_then(|folder| folder.open_file(part)));
                    let searched = match opened {
                        Ok(file) => self.search.search(&shown, Reader::of_file(file)),
                        Err(error) => Err(error.into()),
                    };
                    self.settle(&shown, searched)?;
                }
                kind if is_folder(kind) => {
                    let entered = name.part().and_then(|part| walk.enter(part, kind));
                    self.settle(&shown, entered.map_err(Error::from))?;
                }
                // As in other implementations of `grep -r`: links below the named paths are not followed, and devices
                // not read.
                _ => {}
            }
            if self.search.is_settled() {
                break;
            }
        }
        Ok(())
    }

    /// Reports a failure on one file; only the end of the reader ends the search.
    fn settle(&mut self, shown: &str, outcome: Result<(), Error>) -> Result<(), Error> {
        match outcome {
            Ok(()) => {}
            Err(Error::NoReader) => return Err(Error::NoReader),
            Err(error) => {
                self.failed = true;
                if !self.is_silent {
                    say(shown, error);
                }
            }
        }
        self.failed |= self.search.take_failure();
        Ok(())
    }
}

fn say(shown: &str, error: Error) {
    match error {
        Error::File(error) => {
            report::path_error(shown, &error);
        }
        Error::Input(broken) => report::error(format_args!("standard input ended early: {broken}")),
        Error::NoReader => {}
    }
}

/// Maximum number of context lines held.
const CONTEXT_LINES: usize = 10_000;

/// The lines before the current one.
pub(crate) type Held = alloc::collections::VecDeque<(u64, Vec<u8>)>;
