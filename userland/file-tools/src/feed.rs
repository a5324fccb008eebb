//! Operands of a program: files, or standard input if none is given.
//!
//! Key types: [`Feed`] (all operands), [`Reader`] (one of them, block by block). [`for_each_path`] is for programs that
//! work on paths rather than content. Deliberately not here: processing of the bytes.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use client::access::AccessError;
use client::file_io::{BLOCK_BYTES, OpenFile};
use client::namespace::Namespace;
use contracts::pipe;
use sip::exheap::ExVec;
use stdio::{Input, Output, PipeBroken, report};
use text::printable;

/// Error that ends the processing of an operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// A file cannot be read.
    File(AccessError),
    /// Standard input ended unexpectedly.
    Input(PipeBroken),
    /// The reader of the output has ended.
    NoReader,
}

impl From<AccessError> for Error {
    fn from(error: AccessError) -> Error {
        Error::File(error)
    }
}

/// A broken pipe is taken to be the program's output.
impl From<PipeBroken> for Error {
    fn from(_: PipeBroken) -> Error {
        Error::NoReader
    }
}

/// The reader of the output has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoReader;

/// The operands of a program.
pub struct Feed {
    /// The namespace at its root.
    pub namespace: Namespace,
    /// The folder that relative paths start from.
    pub working_folder: String,
    /// Paths of files; if empty, or for `-`: standard input.
    pub paths: Vec<String>,
    /// Standard input, if it is connected.
    pub input: Option<pipe::Exp<pipe::states::Ready>>,
    /// Usage of the program, for the error message when there is nothing to read.
    pub usage: &'static str,
}

/// Operand that stands for standard input.
pub const INPUT_NAME: &str = "-";

impl Feed {
    /// Like [`for_each`](Feed::for_each), with a heading before each of several files.
    pub fn for_each_with_heading(
        self,
        output: &mut Output,
        mut each: impl FnMut(&mut Output, Reader) -> Result<(), Error>,
    ) -> Result<i32, NoReader> {
        let several = self.paths.len() > 1;
        let mut before = "";
        self.for_each(|name, reader| {
            if several {
                output.write(before.as_bytes())?;
                output.write(heading(name).as_bytes())?;
                before = "\n";
            }
            each(output, reader)
        })
    }

    /// Calls `each` with the path as given and a reader of each file or standard input. Reports those that cannot be
    /// read, and continues with the others. Returns the exit status.
    pub fn for_each(mut self, mut each: impl FnMut(&str, Reader) -> Result<(), Error>) -> Result<i32, NoReader> {
        if self.paths.is_empty() {
            let Some(input) = self.input.take() else {
                let usage = self.usage;
                report::error(format_args!("no file is named and standard input is not connected; usage: {usage}"));
                return Ok(1);
            };
            return judge(INPUT_NAME, each(INPUT_NAME, Reader::of_input(Input::new(input))));
        }
        let mut status = 0;
        for asked in &self.paths {
            let outcome = match (self.input.take(), asked.as_str()) {
                (Some(input), INPUT_NAME) => each(INPUT_NAME, Reader::of_input(Input::new(input))),
                (input, _) => {
                    self.input = input;
                    match self.namespace.open_file(&path::absolute(&self.working_folder, asked)) {
                        Ok(file) => each(asked, Reader::of_file(file)),
                        Err(error) => Err(error.into()),
                    }
                }
            };
            status = status.max(judge(asked, outcome)?);
        }
        Ok(status)
    }
}

/// Calls `each` with each path and its absolute form. Reports failures and continues with the other paths. Returns the
/// exit status.
pub fn for_each_path<E: fmt::Display>(
    working_folder: &str,
    paths: &[String],
    mut each: impl FnMut(&str, &str) -> Result<(), E>,
) -> i32 {
    let mut status = 0;
    for asked in paths {
        if let Err(error) = each(asked, &path::absolute(working_folder, asked)) {
            status = report::path_error(asked, &error);
        }
    }
    status
}

fn judge(asked: &str, outcome: Result<(), Error>) -> Result<i32, NoReader> {
    match outcome {
        Ok(()) => Ok(0),
        Err(Error::File(error)) => Ok(report::path_error(asked, &error)),
        Err(Error::Input(broken)) => {
            report::error(format_args!("standard input ended early: {broken}"));
            Ok(1)
        }
        Err(Error::NoReader) => Err(NoReader),
    }
}

/// A file or standard input, read in order.
pub struct Reader {
    source: Source,
    spare: Option<ExVec<u8>>,
}

enum Source {
    File { file: OpenFile, offset: u64 },
    Input(Input),
}

impl Reader {
    /// Reads a file from its start.
    pub fn of_file(file: OpenFile) -> Reader {
        Reader { source: Source::File { file, offset: 0 }, spare: None }
    }

    /// Reads standard input.
    pub fn of_input(input: Input) -> Reader {
        Reader { source: Source::Input(input), spare: None }
    }

    /// Returns the file, if it is one.
    pub fn file(&mut self) -> Option<&mut OpenFile> {
        match &mut self.source {
            Source::File { file, .. } => Some(file),
            Source::Input(_) => None,
        }
    }

    /// Continues at byte `offset` of the file. Standard input cannot seek.
    pub fn seek(&mut self, to: u64) {
        if let Source::File { offset, .. } = &mut self.source {
            *offset = to;
        }
    }

    /// Returns the next block and the number of valid bytes at its start; `None` at the end.
    pub fn block(&mut self) -> Result<Option<(ExVec<u8>, usize)>, Error> {
        match &mut self.source {
            Source::Input(input) => {
                let block = input.block().map_err(Error::Input)?;
                Ok(block.map(|block| {
                    let bytes = block.len();
                    (block, bytes)
                }))
            }
            Source::File { file, offset } => {
                let block = match self.spare.take() {
                    Some(block) => block,
                    None => ExVec::new(BLOCK_BYTES).map_err(AccessError::System)?,
                };
                let (block, bytes) = file.read_at(block, *offset)?;
                *offset += bytes as u64;
                if bytes == 0 {
                    self.spare = Some(block);
                    return Ok(None);
                }
                Ok(Some((block, bytes)))
            }
        }
    }

    /// Takes back a block of [`block`](Reader::block) for reuse.
    pub fn recycle(&mut self, block: ExVec<u8>) {
        if block.len() == BLOCK_BYTES {
            self.spare = Some(block);
        }
    }

    /// Calls `each` for all bytes, in pieces.
    pub fn for_each(&mut self, mut each: impl FnMut(&[u8])) -> Result<(), Error> {
        while let Some((block, bytes)) = self.block()? {
            each(&block[..bytes]);
            self.recycle(block);
        }
        Ok(())
    }
}

/// Heading of one of several files.
fn heading(name: &str) -> String {
    let shown = if name == INPUT_NAME { String::from("standard input") } else { printable(name.as_bytes()) };
    format!("==> {shown} <==\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn standard_input_has_a_readable_name() {
        assert_eq!(heading("-"), "==> standard input <==\n");
        assert_eq!(heading("a\n"), "==> a\\n <==\n");
    }
}
