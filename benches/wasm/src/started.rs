//! A program that is started as the shell does, with its output in hand.

use alloc::format;
use alloc::string::String;

use client::namespace::Namespace;
use manifest_model::{Manifest, Side, Source};
use sip::Status;
use sip::process::{self, Child};
use stdio::{Input, OpenPipe, Output, new_pipe};

/// Name of the parameter that the shell fills in.
const WORKING_FOLDER: &str = "working-folder";

/// An installed program.
pub struct Program {
    manifest: Manifest,
    /// The parameter that takes words.
    words: Option<usize>,
    folder: Option<usize>,
}

/// A program that has been started.
pub struct Running {
    child: Child,
    output: Input,
    /// Its standard input, if it has one: open until this is dropped.
    input: Option<Output>,
    /// Nanoseconds that binding the paths of its endpoints took, which whoever starts a program does.
    pub bound_ns: u64,
}

impl Program {
    /// Finds an installed program.
    ///
    /// # Errors
    /// There is none of this name.
    pub fn find(name: &str) -> Result<Program, String> {
        let manifest = client::programs::manifest(name)
            .map_err(|status| format!("`{name}` cannot be found: {}", status.text()))?
            .ok_or_else(|| format!("`{name}` is not installed"))?;
        let words = manifest.parameters.iter().position(|parameter| parameter.position == Some(0));
        let folder = manifest.parameters.iter().position(|parameter| parameter.name == WORKING_FOLDER);
        Ok(Program { manifest, words, folder })
    }

    /// Starts it with words, in a folder unless that is empty.
    ///
    /// # Errors
    /// It cannot be started, or takes no words.
    pub fn start(&self, namespace: &mut Namespace, words: &[String], folder: &str) -> Result<Running, String> {
        let name = &self.manifest.name;
        let failed = |status: Status| format!("`{name}` cannot be started: {}", status.text());
        let child = process::create(name).map_err(|error| format!("`{name}` cannot be started: {error}"))?;
        let mut child = child.invoke().map_err(failed)?;
        for word in words {
            let index = self.words.ok_or_else(|| format!("`{name}` takes no words"))?;
            child = child.repeated_parameter(index, word).map_err(failed)?;
        }
        if let (Some(index), false) = (self.folder, folder.is_empty()) {
            child = child.parameter(index, folder).map_err(failed)?;
        }
        let (writer, reader): OpenPipe = new_pipe().map_err(failed)?;
        let (mut writer, mut input, mut bound_ns) = (Some(writer), None, 0);
        for (slot, wanted) in self.manifest.endpoints.iter().enumerate() {
            child = match (&wanted.source, wanted.side) {
                (Source::StandardOutput, Side::Importer) => match writer.take() {
                    Some(writer) => child.endpoint(slot, writer).map_err(failed)?,
                    None => child,
                },
                (Source::StandardInput, Side::Exporter) => {
                    let (writer, reader) = new_pipe().map_err(failed)?;
                    input = Some(Output::new(writer));
                    child.endpoint(slot, reader).map_err(failed)?
                }
                (Source::Path(path), Side::Importer) => {
                    let begun = sip::time::monotonic();
                    let opened = namespace.open_directory(path).map_err(|error| format!("{path}: {error}"))?;
                    bound_ns += sip::time::monotonic() - begun;
                    child
                        .endpoint(slot, opened.into_endpoint().ok_or_else(|| failed(Status::Closed))?)
                        .map_err(failed)?
                }
                _ => child,
            };
        }
        let child = child.start().map_err(failed)?;
        Ok(Running { child, output: Input::new(reader), input, bound_ns })
    }
}

impl Running {
    /// Waits for its first output; returns its bytes.
    ///
    /// # Errors
    /// It ended without any.
    pub fn first(&mut self) -> Result<u64, String> {
        match self.output.block() {
            Ok(Some(block)) => Ok(block.len() as u64),
            _ => Err(self.child.wait().map_or_else(|status| status.text().into(), |end| format!("no output: {end}"))),
        }
    }

    /// Reads its output to its end, which has to be in order. Returns the nanoseconds from a moment to the first output
    /// and to the end, and the bytes.
    ///
    /// # Errors
    /// It wrote nothing, or failed.
    pub fn until_its_end(mut self, start: u64) -> Result<(u64, u64, u64), String> {
        let mut bytes = self.first()?;
        let first = sip::time::monotonic() - start;
        while let Ok(Some(block)) = self.output.block() {
            bytes += block.len() as u64;
        }
        self.ended()?;
        Ok((first, sip::time::monotonic() - start, bytes))
    }

    /// Closes its standard input and waits until it has ended in order.
    ///
    /// # Errors
    /// It failed.
    pub fn ended(self) -> Result<(), String> {
        let Running { child, mut output, input, .. } = self;
        if let Some(input) = input {
            // A program that has ended already does not read.
            let _ = input.finish();
        }
        // It waits until somebody knows that its output has ended.
        while let Ok(Some(_)) = output.block() {}
        let end = child.wait().map_err(|status| String::from(status.text()))?;
        if end.is_success() { Ok(()) } else { Err(format!("{end}")) }
    }
}
