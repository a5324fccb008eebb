//! Runs command lines on behalf of a tool's user, one after the other, each in a shell of its own.
//!
//! Key type: [`Runner`]. The output of the commands goes through the tool's own output. Deliberately not here:
//! parallel runs.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use client::namespace::Namespace;
use command_language::quote;
use manifest_model::Manifest;
use sip::Status;
use sip::process::{self, Child, EpitaphKind};
use stdio::{Input, Output, PipeBroken, new_pipe};

const SHELL: &str = "shell";
/// Maximum length of a command line in bytes: the kernel's limit for one parameter of a process.
pub const MAX_COMMAND_BYTES: usize = 64 * 1024;
/// Added to the code of the kind of end, for a command that did not exit normally.
const STATUS_DIED: i32 = 128;

/// Why a command did not run to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunError {
    /// A sentence for the user.
    Failed(String),
    /// The reader of the tool's output has ended.
    NoReader(PipeBroken),
}

/// Starts shells.
pub struct Runner {
    manifest: Manifest,
    working_folder: String,
}

impl Runner {
    /// Creates a runner of commands whose working folder this is.
    ///
    /// # Errors
    ///
    /// A sentence, if there is no shell.
    pub fn new(working_folder: &str) -> Result<Runner, String> {
        let manifest = client::programs::manifest(SHELL)
            .map_err(|status| format!("`{SHELL}` cannot be started: {}", status.text()))?
            .ok_or_else(|| format!("commands are run by `{SHELL}`, which is not installed"))?;
        Ok(Runner { manifest, working_folder: String::from(working_folder) })
    }

    /// Runs a command line to its end; returns its exit status.
    ///
    /// # Errors
    ///
    /// If it could not be run, or if the reader of the output has ended.
    pub fn run(&self, namespace: &mut Namespace, command: &str, output: &mut Output) -> Result<i32, RunError> {
        let failed = |status: Status| RunError::Failed(format!("`{SHELL}` cannot be started: {}", status.text()));
        let (writer, reader) = new_pipe().map_err(failed)?;
        let child = self.create(namespace, command)?;
        let child = child.endpoint(self.slot("output")?, writer).and_then(Child::start).map_err(failed)?;
        let mut input = Input::new(reader);
        // A killed shell breaks its pipe; its epitaph has the reason.
        while let Ok(Some(block)) = input.block() {
            output.write(&block).map_err(RunError::NoReader)?;
        }
        drop(input);
        let epitaph = child.wait().map_err(failed)?;
        Ok(match epitaph.kind {
            EpitaphKind::Exited => epitaph.status & 0xff,
            kind => STATUS_DIED + kind as i32,
        })
    }

    fn create(&self, namespace: &mut Namespace, command: &str) -> Result<Child, RunError> {
        let failed = |status: Status| RunError::Failed(format!("`{SHELL}` cannot be started: {}", status.text()));
        let unreachable = |error| RunError::Failed(format!("/: {error}"));
        let root = namespace.open_directory("/").map_err(unreachable)?.into_endpoint();
        let root = root.ok_or_else(|| failed(Status::Closed))?;
        let child = process::create(SHELL)
            .map_err(|error| RunError::Failed(format!("`{SHELL}` cannot be started: {error}")))?
            .invoke()
            .map_err(failed)?;
        let child = child.endpoint(self.slot("namespace")?, root).map_err(failed)?;
        let child = child.parameter(self.parameter("commands")?, command).map_err(failed)?;
        child.parameter(self.parameter("working-folder")?, &self.working_folder).map_err(failed)
    }

    fn slot(&self, name: &str) -> Result<usize, RunError> {
        self.manifest.endpoint(name).map(|(slot, _)| slot).ok_or_else(|| lacks(name))
    }

    fn parameter(&self, name: &str) -> Result<usize, RunError> {
        self.manifest.parameter(name).map(|(index, _)| index).ok_or_else(|| lacks(name))
    }
}

fn lacks(name: &str) -> RunError {
    RunError::Failed(format!("`{SHELL}` has no `{name}`, so it is no shell"))
}

/// Builds a command line of these words, each quoted as necessary.
pub fn command_line<'w>(words: impl IntoIterator<Item = &'w str>) -> String {
    words.into_iter().map(quote).collect::<Vec<_>>().join(" ")
}

/// Returns the command with each `{}` replaced by `word`, quoted; without a `{}`, the word is appended.
pub fn with_word(command: &str, word: &str) -> String {
    if command.contains("{}") { command.replace("{}", &quote(word)) } else { format!("{command} {}", quote(word)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted() {
        assert_eq!(command_line(["rm", "-f", "a b"]), "rm -f 'a b'");
        assert_eq!(with_word("rm", "a b"), "rm 'a b'");
        assert_eq!(with_word("cp {} {}.old", "a"), "cp a a.old");
        assert_eq!(with_word("echo", "$x; rm"), "echo '$x; rm'");
    }
}
