//! Finds names in folder trees.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod conditions;

use alloc::format;
use alloc::string::String;

use client::access::AccessError;
use client::namespace::Namespace;
use contracts::directory::{NodeAttributes, NodeKind};
use file_tools::walk::{Step, Walk, is_folder};
use stdio::{Output, PipeBroken, report};
use text::printable;
use tool_kit::command::{MAX_COMMAND_BYTES, RunError, Runner, with_word};

use crate::conditions::Conditions;

sip::startup!();

/// A command to run for each path.
struct Command {
    runner: Runner,
    namespace: Namespace,
    text: String,
}

struct Finder {
    conditions: Conditions,
    command: Option<Command>,
    depth: usize,
    output: Output,
    status: i32,
}

/// Prints the matches among the paths and everything below them.
pub fn main(mut startup: Startup) -> i32 {
    let mut namespace = Namespace::new(startup.namespace);
    let newer_than = match startup.newer.as_deref().map(|asked| (asked, path::absolute(&startup.working_folder, asked)))
    {
        None => None,
        Some((asked, full)) => match namespace.attributes(&full) {
            Ok((_, attributes)) => Some(attributes.modified_s),
            Err(error) => return report::path_error(asked, &error),
        },
    };
    let conditions =
        match Conditions::new(startup.name.as_deref(), startup.kind.as_deref(), startup.size.as_deref(), newer_than) {
            Ok(conditions) => conditions,
            Err(message) => {
                report::error(format_args!("{message}"));
                return 2;
            }
        };
    let depth = startup.depth.map_or(usize::MAX, |depth| usize::try_from(depth).unwrap_or(0));
    let command = match startup.exec.map(|text| Command::new(&mut namespace, &startup.working_folder, text)) {
        None => None,
        Some(Ok(command)) => Some(command),
        Some(Err(message)) => {
            report::error(format_args!("{message}"));
            return 1;
        }
    };
    let mut finder = Finder { conditions, command, depth, output: Output::new(startup.output), status: 0 };
    if startup.paths.is_empty() {
        startup.paths.push(String::from("."));
    }
    for asked in &startup.paths {
        let full = path::absolute(&startup.working_folder, asked);
        if finder.find(&mut namespace, asked, &full).is_err() {
            // The reader has ended.
            return 1;
        }
    }
    finder.output.finish_with(finder.status)
}

impl Command {
    fn new(namespace: &mut Namespace, working_folder: &str, text: String) -> Result<Command, String> {
        let root = namespace.open_directory("/").map_err(|error| format!("/: {error}"))?;
        Ok(Command { runner: Runner::new(working_folder)?, namespace: root, text })
    }

    /// Runs the command for a path; returns its exit status.
    fn run(&mut self, path: &str, output: &mut Output) -> Result<i32, RunError> {
        let line = with_word(&self.text, path);
        if line.len() > MAX_COMMAND_BYTES {
            let limit = MAX_COMMAND_BYTES >> 10;
            return Err(RunError::Failed(format!("the command for {path} is longer than {limit} KiB")));
        }
        let status = self.runner.run(&mut self.namespace, &line, output)?;
        output.flush().map_err(RunError::NoReader)?;
        Ok(status)
    }
}

impl Finder {
    fn find(&mut self, namespace: &mut Namespace, asked: &str, full: &str) -> Result<(), PipeBroken> {
        let (kind, attributes) = match namespace.attributes(full) {
            Ok(found) => found,
            Err(error) => {
                self.status = report::path_error(asked, &error);
                return Ok(());
            }
        };
        let name = path::split_last(full).map_or("", |(_, name)| name);
        self.look_at(asked, name, kind, || Ok(attributes))?;
        if !is_folder(kind) || self.depth == 0 {
            return Ok(());
        }
        let walk = namespace.open_directory(full).and_then(|folder| Walk::new(folder, String::from(asked), "/"));
        match walk {
            Ok(walk) => self.go_through(walk),
            Err(error) => {
                self.status = report::path_error(asked, &error);
                Ok(())
            }
        }
    }

    fn go_through(&mut self, mut walk: Walk) -> Result<(), PipeBroken> {
        while let Some(step) = walk.step() {
            let Step::Name(name) = step else { continue };
            let text = name.text();
            let shown = walk.here().path_of(&text);
            self.look_at(&shown, &text, name.kind, || Ok(walk.here().folder()?.own_attributes(name.part()?)?.1))?;
            if is_folder(name.kind) && walk.here().depth() + 1 < self.depth {
                let entered = name.part().and_then(|part| walk.enter(part, name.kind));
                if let Err(error) = entered {
                    self.status = report::path_error(&shown, &error);
                }
            }
        }
        Ok(())
    }

    /// Prints a path that matches; queries attributes only if a condition needs them.
    fn look_at(
        &mut self,
        shown: &str,
        name: &str,
        kind: NodeKind,
        attributes: impl FnOnce() -> Result<NodeAttributes, AccessError>,
    ) -> Result<(), PipeBroken> {
        if !self.conditions.fits_name(name, kind) {
            return Ok(());
        }
        if self.conditions.needs_attributes() {
            match attributes() {
                Ok(attributes) if self.conditions.fits_attributes(kind, &attributes) => {}
                Ok(_) => return Ok(()),
                Err(error) => {
                    self.status = report::path_error(shown, &error);
                    return Ok(());
                }
            }
        }
        let Some(command) = &mut self.command else {
            return self.output.write(format!("{}\n", printable(shown.as_bytes())).as_bytes());
        };
        match command.run(shown, &mut self.output) {
            Ok(0) => Ok(()),
            Ok(_) => {
                self.status = 1;
                Ok(())
            }
            Err(RunError::Failed(message)) => {
                report::error(format_args!("{message}"));
                self.status = 1;
                Ok(())
            }
            Err(RunError::NoReader(broken)) => Err(broken),
        }
    }
}
