//! Following of growing files.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use client::access::AccessError;
use client::file_io::new_block;
use client::namespace::Namespace;
use file_tools::feed::INPUT_NAME;
use sip::Deadline;
use sip::exheap::ExVec;
use stdio::{Output, PipeBroken, report};
use text::printable;

/// Interval at which file sizes are polled, in milliseconds.
const LOOK_MS: u64 = 200;

/// A file, and how much of it was printed.
struct File {
    asked: String,
    full: String,
    /// `None` while the file cannot be read.
    printed: Option<u64>,
}

/// The followed files, in command-line order.
pub struct Followed {
    files: Vec<File>,
    /// Whether there are several files, so that output is preceded by file names.
    has_headings: bool,
    /// The file that was printed last.
    last: Option<String>,
}

enum Stop {
    /// The file can no longer be read.
    File(AccessError),
    /// The reader of the output has ended.
    NoReader(PipeBroken),
}

impl From<AccessError> for Stop {
    fn from(error: AccessError) -> Stop {
        Stop::File(error)
    }
}

impl From<PipeBroken> for Stop {
    fn from(broken: PipeBroken) -> Stop {
        Stop::NoReader(broken)
    }
}

impl Followed {
    /// Follows these files, of which nothing was printed yet.
    pub fn new(working_folder: &str, paths: &[String]) -> Followed {
        let file =
            |asked: &String| File { asked: asked.clone(), full: path::absolute(working_folder, asked), printed: None };
        Followed { files: paths.iter().map(file).collect(), has_headings: paths.len() > 1, last: None }
    }

    /// Prints the heading of a file if there are several files and another one was printed last.
    pub fn print_heading(&mut self, asked: &str, output: &mut Output) -> Result<(), PipeBroken> {
        if !self.has_headings || self.last.as_deref() == Some(asked) {
            return Ok(());
        }
        let before = if self.last.is_some() { "\n" } else { "" };
        let shown = if asked == INPUT_NAME { String::from("standard input") } else { printable(asked.as_bytes()) };
        self.last = Some(String::from(asked));
        output.write(format!("{before}==> {shown} <==\n").as_bytes())
    }

    /// Records how much of the file `asked` was printed.
    pub fn printed_up_to(&mut self, asked: &str, bytes: u64) {
        if let Some(file) = self.files.iter_mut().find(|file| file.asked == asked) {
            file.printed = Some(bytes);
        }
    }

    /// Prints data appended to the files, as long as there are files and a reader.
    pub fn go_on(mut self, namespace: &mut Namespace, output: &mut Output) -> Result<(), PipeBroken> {
        let mut files = core::mem::take(&mut self.files);
        files.retain(|file| file.printed.is_some());
        while !files.is_empty() {
            // An empty block detects whether the reader still exists even while there is nothing to print.
            output.write_block(ExVec::from_slice(&[]).map_err(PipeBroken::System)?)?;
            sip::time::sleep_until(Deadline::after_ms(LOOK_MS));
            let mut left = Vec::with_capacity(files.len());
            for mut file in files {
                match self.print_fresh(&mut file, namespace, output) {
                    Ok(()) => left.push(file),
                    // The file's server is being restarted.
                    Err(Stop::File(error)) if error.may_pass() => left.push(file),
                    Err(Stop::File(error)) => drop(report::path_error(&file.asked, &error)),
                    Err(Stop::NoReader(broken)) => return Err(broken),
                }
            }
            files = left;
        }
        Ok(())
    }

    fn print_fresh(&mut self, file: &mut File, namespace: &mut Namespace, output: &mut Output) -> Result<(), Stop> {
        let mut open = namespace.open_file(&file.full)?;
        let size = open.attributes()?.size_bytes;
        let mut at = file.printed.unwrap_or(0);
        if size < at {
            report::error(format_args!("{}: file truncated", file.asked));
            at = 0;
        }
        let mut block = new_block().map_err(AccessError::System)?;
        while at < size {
            let (filled, count) = open.read_at(block, at)?;
            if count == 0 {
                break;
            }
            self.print_heading(&file.asked, output)?;
            output.write(&filled[..count])?;
            at += count as u64;
            block = filled;
        }
        file.printed = Some(at);
        Ok(())
    }
}
