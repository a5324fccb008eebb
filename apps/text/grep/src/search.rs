//! Search of a file's lines, and output of the matches.

use alloc::format;
use alloc::string::String;

use file_tools::feed::{Error, Reader};
use stdio::{Output, report};
use text::printable;
use tool_kit::lines::{LineError, Lines, report_too_long};

use crate::matcher::Matcher;
use crate::{CONTEXT_LINES, Held};

/// Output options.
pub struct Shown {
    /// Selects the lines that do not match.
    pub inverted: bool,
    /// Prints line numbers.
    pub numbers: bool,
    /// Prints only the number of lines.
    pub counts: bool,
    /// Prints only the names of files with matches.
    pub list: bool,
    /// Prints only the matching parts.
    pub parts: bool,
    /// Prints nothing.
    pub quiet: bool,
    /// Maximum number of lines per file.
    pub most: Option<usize>,
    /// Lines of context before each match.
    pub before: usize,
    /// Lines of context after each match.
    pub after: usize,
    /// Whether context was requested.
    pub with_context: bool,
}

impl Shown {
    fn is_plain(&self) -> bool {
        !(self.counts || self.list || self.quiet)
    }
}

/// Whether file names are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Names {
    /// Before each line.
    Shown,
    /// Not printed.
    Hidden,
}

/// A search through files in sequence.
pub struct Search {
    matcher: Matcher,
    shown: Shown,
    names: Names,
    output: Output,
    found: bool,
    failed: bool,
    /// Whether anything was printed, so that the next group of lines needs a separator.
    has_printed: bool,
}

/// Position of a search in one file.
#[derive(Default)]
struct Place {
    name: String,
    line: u64,
    found: usize,
    held: Held,
    /// Number of the last printed line.
    printed: u64,
    /// Number of further context lines to print.
    after: usize,
    is_binary: bool,
}

impl Search {
    /// Creates a search that prints what the matcher finds.
    pub fn new(matcher: Matcher, shown: Shown, names: Names, output: Output) -> Search {
        Search { matcher, shown, names, output, found: false, failed: false, has_printed: false }
    }

    /// Whether any line matched.
    pub fn found(&self) -> bool {
        self.found
    }

    /// Whether further input cannot change the result.
    pub fn is_settled(&self) -> bool {
        self.found && self.shown.quiet
    }

    /// Whether a file could not be searched completely since the last call.
    pub fn take_failure(&mut self) -> bool {
        core::mem::take(&mut self.failed)
    }

    /// Finishes the output; returns the exit status.
    pub fn finish(self, status: i32) -> i32 {
        self.output.finish_with(status)
    }

    /// Searches one file.
    ///
    /// # Errors
    ///
    /// If it cannot be read, or if the reader of the output has ended.
    pub fn search(&mut self, name: &str, reader: Reader) -> Result<(), Error> {
        let mut place = Place { name: printable(name.as_bytes()), ..Place::default() };
        let mut lines = Lines::new(reader);
        while !self.is_over(&place) {
            if lines.will_read() {
                self.output.flush()?;
            }
            let line = match lines.next() {
                Ok(Some(line)) => line,
                Ok(None) => break,
                Err(LineError::Read(error)) => return Err(error),
                Err(LineError::TooLong) => {
                    report_too_long(name);
                    self.failed = true;
                    break;
                }
            };
            place.line += 1;
            place.is_binary |= line.contains(&0);
            self.look_at(&mut place, line)?;
        }
        self.sum_up(&place)
    }

    fn is_over(&self, place: &Place) -> bool {
        let is_known = (self.shown.list || self.shown.quiet) && place.found > 0;
        let is_binary = place.is_binary && place.found > 0 && self.shown.is_plain();
        let is_enough = self.shown.most.is_some_and(|most| place.found >= most) && place.after == 0;
        is_known || is_binary || is_enough
    }

    fn look_at(&mut self, place: &mut Place, line: &[u8]) -> Result<(), Error> {
        let may_be_found = self.shown.most.is_none_or(|most| place.found < most);
        if may_be_found && self.matcher.is_match(line) != self.shown.inverted {
            place.found += 1;
            self.found = true;
            if self.shown.is_plain() && !place.is_binary {
                self.print_found(place, line)?;
            }
            return Ok(());
        }
        if !self.shown.is_plain() {
            return Ok(());
        }
        if place.after > 0 {
            place.after -= 1;
            return self.print(place, place.line, '-', line);
        }
        if self.shown.before > 0 {
            place.held.push_back((place.line, line.to_vec()));
            if place.held.len() > self.shown.before.min(CONTEXT_LINES) {
                place.held.pop_front();
            }
        }
        Ok(())
    }

    fn print_found(&mut self, place: &mut Place, line: &[u8]) -> Result<(), Error> {
        let first = place.held.front().map_or(place.line, |(number, _)| *number);
        let is_apart = self.has_printed && (place.printed == 0 || first > place.printed + 1);
        if self.shown.with_context && is_apart {
            self.output.write(b"--\n")?;
        }
        for (number, held) in core::mem::take(&mut place.held) {
            self.print(place, number, '-', &held)?;
        }
        place.after = self.shown.after;
        if !self.shown.parts {
            return self.print(place, place.line, ':', line);
        }
        if !self.shown.inverted {
            for part in self.matcher.parts(line) {
                self.print(place, place.line, ':', &line[part])?;
            }
        }
        Ok(())
    }

    fn print(&mut self, place: &mut Place, number: u64, sign: char, line: &[u8]) -> Result<(), Error> {
        place.printed = number;
        self.has_printed = true;
        if self.shown.parts && sign == '-' {
            return Ok(());
        }
        if self.names == Names::Shown {
            self.output.write(format!("{}{sign}", place.name).as_bytes())?;
        }
        if self.shown.numbers {
            self.output.write(format!("{number}{sign}").as_bytes())?;
        }
        self.output.write(line)?;
        Ok(self.output.write(b"\n")?)
    }

    fn sum_up(&mut self, place: &Place) -> Result<(), Error> {
        let text = match (&self.shown, place.found) {
            (Shown { quiet: true, .. }, _) => return Ok(()),
            (Shown { list: true, .. }, 0) => return Ok(()),
            (Shown { list: true, .. }, _) => format!("{}\n", place.name),
            (Shown { counts: true, .. }, found) if self.names == Names::Shown => format!("{}:{found}\n", place.name),
            (Shown { counts: true, .. }, found) => format!("{found}\n"),
            (_, 1..) if place.is_binary => {
                report::error(format_args!("{}: binary file matches", place.name));
                return Ok(());
            }
            _ => return Ok(()),
        };
        Ok(self.output.write(text.as_bytes())?)
    }
}
