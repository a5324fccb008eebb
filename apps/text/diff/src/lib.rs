//! Shows the lines in which two files differ.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod changes;
mod render;
mod text;

use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use ::text::{Moment, printable};
use client::access::AccessError;
use client::namespace::Namespace;
use contracts::directory::NodeKind;
use contracts::pipe;
use file_tools::feed::{Error, INPUT_NAME, Reader};
use file_tools::walk::is_folder;
use stdio::{Input, Output, PipeBroken, report};

use crate::text::{Ignored, Text, number_lines};

sip::startup!();

/// Exit status: the files differ.
const STATUS_DIFFERENT: i32 = 1;
/// Exit status: an operation failed.
const STATUS_FAILED: i32 = 2;
/// Maximum size in bytes of a file compared line by line: both files are in memory, with data for each line.
const MAX_BYTES: u64 = 32 << 20;
const USUAL_CONTEXT: usize = 3;

struct Style {
    /// Lines of context, in the unified format.
    context: Option<usize>,
    brief: bool,
    recursive: bool,
    ignored: Ignored,
}

struct Differ {
    namespace: Namespace,
    working_folder: String,
    input: Option<pipe::Exp<pipe::states::Ready>>,
    output: Output,
    style: Style,
    status: i32,
    /// Folders still to compare.
    left: Vec<(String, String)>,
}

/// Compares two files, or the files of two folders. The exit status is 0 if they are equal.
pub fn main(startup: Startup) -> i32 {
    let context = match startup.context.map(usize::try_from) {
        Some(Ok(context)) => Some(context),
        Some(Err(_)) => {
            report::error(format_args!("`-U` takes a number of lines, 0 or more"));
            return STATUS_FAILED;
        }
        None => startup.unified.then_some(USUAL_CONTEXT),
    };
    let ignored = Ignored { case: startup.ignore_case, blanks: startup.ignore_blanks };
    let mut differ = Differ {
        namespace: Namespace::new(startup.namespace),
        working_folder: startup.working_folder,
        input: startup.input,
        output: Output::new(startup.output),
        style: Style { context, brief: startup.brief, recursive: startup.recursive, ignored },
        status: 0,
        left: Vec::new(),
    };
    match differ.compare_named(&startup.old, &startup.new).and_then(|()| differ.compare_folders()) {
        Ok(()) => differ.output.finish_with(differ.status),
        // The reader has ended.
        Err(_) => differ.status.max(STATUS_DIFFERENT),
    }
}

impl Differ {
    /// Compares two paths; for a file and a folder, the file of that name in the folder.
    fn compare_named(&mut self, old: &str, new: &str) -> Result<(), PipeBroken> {
        let (mut old, mut new) = (String::from(old), String::from(new));
        match (self.is_folder(&old), self.is_folder(&new)) {
            (true, true) => {
                self.left.push((old, new));
                return Ok(());
            }
            (true, false) => old = path::join(&old, last_part(&new)),
            (false, true) => new = path::join(&new, last_part(&old)),
            (false, false) => {}
        }
        self.compare_files(&old, &new, None)
    }

    fn is_folder(&mut self, asked: &str) -> bool {
        let full = path::absolute(&self.working_folder, asked);
        asked != INPUT_NAME && self.namespace.open_directory(&full).is_ok()
    }

    fn fail(&mut self, asked: &str, error: &dyn core::fmt::Display) {
        report::path_error(asked, error);
        self.status = STATUS_FAILED;
    }

    fn compare_files(&mut self, old: &str, new: &str, heading: Option<&str>) -> Result<(), PipeBroken> {
        let (Some(left), Some(right)) = (self.read(old), self.read(new)) else { return Ok(()) };
        if left.bytes() == right.bytes() {
            return Ok(());
        }
        let is_binary = left.is_binary() || right.is_binary();
        let (mut shown, mut out) = (Vec::new(), Vec::new());
        if !is_binary {
            let [from, to] = number_lines(&left, &right, self.style.ignored);
            let changes = changes::of(&from, &to);
            if changes.is_empty() {
                return Ok(());
            }
            if let (false, Some(context)) = (self.style.brief, self.style.context) {
                out.extend_from_slice(format!("--- {}\n+++ {}\n", self.title(old), self.title(new)).as_bytes());
                render::unified(&left, &right, &changes, context, &mut out);
            } else if !self.style.brief {
                render::usual(&left, &right, &changes, &mut out);
            }
        }
        if self.style.brief || is_binary {
            let kind = if is_binary && !self.style.brief { "Binary files" } else { "Files" };
            shown = format!("{kind} {} and {} differ\n", name(old), name(new)).into_bytes();
        } else if let Some(heading) = heading {
            shown = format!("{heading}\n").into_bytes();
        }
        self.status = self.status.max(STATUS_DIFFERENT);
        self.output.write(&shown)?;
        self.output.write(&out)
    }

    /// Returns a file's name and modification time.
    fn title(&mut self, asked: &str) -> String {
        let full = path::absolute(&self.working_folder, asked);
        let seconds = match self.namespace.attributes(&full) {
            Ok((_, attributes)) if asked != INPUT_NAME => attributes.modified_s,
            _ => (sip::time::wall() / 1_000_000_000).cast_signed(),
        };
        let Moment { year, month, day, hour, minute, second, .. } = Moment::from_unix(seconds);
        format!("{}\t{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}.000000000 +0000", name(asked))
    }

    /// Returns a file's content; reports a file that cannot be read.
    fn read(&mut self, asked: &str) -> Option<Text> {
        let reader = match self.input.take_if(|_| asked == INPUT_NAME) {
            Some(input) => Ok(Reader::of_input(Input::new(input))),
            None => self.namespace.open_file(&path::absolute(&self.working_folder, asked)).map(Reader::of_file),
        };
        match reader.map_err(Error::from).and_then(read_all) {
            Ok(Some(text)) => Some(text),
            Ok(None) => {
                let limit = MAX_BYTES >> 20;
                self.fail(asked, &format_args!("larger than {limit} MiB; compare large files with `hash`"));
                None
            }
            Err(Error::File(error)) => {
                self.fail(asked, &error);
                None
            }
            Err(Error::Input(broken)) => {
                self.fail("standard input", &broken);
                None
            }
            Err(Error::NoReader) => None,
        }
    }

    /// Compares the remaining folders in sequence.
    fn compare_folders(&mut self) -> Result<(), PipeBroken> {
        while let Some((old, new)) = self.left.pop() {
            let (Some(in_old), Some(in_new)) = (self.names(&old), self.names(&new)) else { continue };
            let all: BTreeSet<&String> = in_old.iter().chain(&in_new).map(|(name, _)| name).collect();
            let mut below = Vec::new();
            for each in all {
                let kind =
                    |names: &[(String, NodeKind)]| names.iter().find(|(name, _)| name == each).map(|(_, kind)| *kind);
                let paths = (path::join(&old, each), path::join(&new, each));
                match (kind(&in_old), kind(&in_new)) {
                    (Some(_), None) => self.only_in(&old, each)?,
                    (None, _) => self.only_in(&new, each)?,
                    (Some(left), Some(right)) if is_folder(left) && is_folder(right) => {
                        if self.style.recursive {
                            below.push(paths);
                        } else {
                            let text = format!("Common subdirectories: {} and {}\n", name(&paths.0), name(&paths.1));
                            self.output.write(text.as_bytes())?;
                        }
                    }
                    (Some(NodeKind::File), Some(NodeKind::File)) => {
                        let options = if self.style.context.is_some() { " -u" } else { "" };
                        let heading = format!("diff -r{options} {} {}", name(&paths.0), name(&paths.1));
                        self.compare_files(&paths.0, &paths.1, Some(&heading))?;
                    }
                    (Some(left), Some(right)) => self.of_two_kinds(&paths, left, right)?,
                }
            }
            self.left.extend(below.into_iter().rev());
        }
        Ok(())
    }

    fn only_in(&mut self, folder: &str, each: &str) -> Result<(), PipeBroken> {
        self.status = self.status.max(STATUS_DIFFERENT);
        self.output.write(format!("Only in {}: {}\n", name(folder), name(each)).as_bytes())
    }

    fn of_two_kinds(&mut self, paths: &(String, String), left: NodeKind, right: NodeKind) -> Result<(), PipeBroken> {
        let is_same_link = left == NodeKind::Link && right == NodeKind::Link && {
            let [old, new] = [&paths.0, &paths.1]
                .map(|asked| self.namespace.read_link(&path::absolute(&self.working_folder, asked)).ok());
            old == new
        };
        if is_same_link {
            return Ok(());
        }
        self.status = self.status.max(STATUS_DIFFERENT);
        let text = format!("{} and {} are of different kinds\n", name(&paths.0), name(&paths.1));
        self.output.write(text.as_bytes())
    }

    /// Returns the names in a folder; reports a folder that cannot be read.
    fn names(&mut self, asked: &str) -> Option<Vec<(String, NodeKind)>> {
        let full = path::absolute(&self.working_folder, asked);
        let read = self.namespace.open_directory(&full).and_then(|mut folder| {
            let mut names = Vec::new();
            folder.for_each_name(|name| names.push((name.text(), name.kind)))?;
            Ok::<_, AccessError>(names)
        });
        read.map_err(|error| self.fail(asked, &error)).ok()
    }
}

fn name(path: &str) -> String {
    printable(path.as_bytes())
}

fn last_part(path: &str) -> &str {
    path.trim_end_matches('/').rsplit('/').next().unwrap_or(path)
}

/// Reads the whole file; `None` if it is too large.
fn read_all(mut reader: Reader) -> Result<Option<Text>, Error> {
    let mut bytes = Vec::new();
    while let Some((block, count)) = reader.block()? {
        if (bytes.len() + count) as u64 > MAX_BYTES {
            return Ok(None);
        }
        bytes.extend_from_slice(&block[..count]);
        reader.recycle(block);
    }
    Ok(Some(Text::new(bytes)))
}
