//! Target of content, and progress.

use alloc::format;
use alloc::string::String;
use core::ops::Range;

use client::file_writer::{Existing, FileWriter};
use client::namespace::Namespace;
use client::terminal::Terminal;
use network::NetError;
use sip::exheap::ExVec;
use stdio::Output;
use text::{bytes, duration};

use crate::failure::Failure;

/// Interval between progress updates in nanoseconds.
const SHOWN_EVERY_NS: u64 = 200_000_000;
/// Minimum width of the bar in columns.
const BAR_COLUMNS: usize = 20;
/// Columns of the text beside the bar.
const TEXT_COLUMNS: usize = 54;

/// A file or standard output.
pub enum Destination<'a> {
    /// Standard output.
    Output(&'a mut Output),
    /// A file.
    File {
        /// Path as typed.
        path: &'a str,
        /// Writer of its content.
        writer: FileWriter,
    },
}

impl Destination<'_> {
    /// Opens a file whose content is replaced.
    pub fn file<'a>(namespace: &mut Namespace, folder: &str, path: &'a str) -> Result<Destination<'a>, Failure> {
        let full = path::absolute(folder, path);
        let opened = FileWriter::open(namespace, &full, Existing::Replace);
        let writer = opened.map_err(|error| Failure::File(path.into(), error))?;
        Ok(Destination::File { path, writer })
    }

    /// Writes this range of a block; copies only if the range is not the whole block.
    pub fn write(&mut self, block: ExVec<u8>, which: Range<usize>) -> Result<(), Failure> {
        let is_whole = which.start == 0 && (which.end == block.len() || matches!(self, Destination::File { .. }));
        let count = which.len();
        let block = if is_whole { block } else { ExVec::from_slice(&block[which]).map_err(NetError::from)? };
        match self {
            Destination::Output(output) => output.write_block(block).map_err(|_| Failure::Output),
            Destination::File { path, writer } => {
                let written = writer.write(block, count);
                written.map(drop).map_err(|error| Failure::File((*path).into(), error))
            }
        }
    }
}

/// Progress display.
pub struct Progress {
    person: Option<Terminal>,
    begun_ns: u64,
    next_ns: u64,
    shown: bool,
}

impl Progress {
    /// Shows progress to this user, if any.
    pub fn new(person: Option<Terminal>) -> Progress {
        let now = sip::time::monotonic();
        Progress { person, begun_ns: now, next_ns: now.saturating_add(SHOWN_EVERY_NS), shown: false }
    }

    /// Updates the display: bytes transferred, and the total if known.
    pub fn note(&mut self, gone: u64, of: Option<u64>) {
        let Some(person) = &mut self.person else { return };
        let now = sip::time::monotonic();
        if now < self.next_ns {
            return;
        }
        self.next_ns = now.saturating_add(SHOWN_EVERY_NS);
        let columns = usize::try_from(person.columns).unwrap_or(0);
        person.show(&format!("\r{}", row(gone, of, now.saturating_sub(self.begun_ns), columns)));
        self.shown = true;
    }

    /// Clears the display and returns a summary.
    pub fn end(&mut self, gone: u64) -> String {
        let taken_ns = sip::time::monotonic().saturating_sub(self.begun_ns);
        self.clear();
        format!("{} in {}, {}", bytes(gone), duration(taken_ns), rate(gone, taken_ns))
    }

    /// Clears the display.
    pub fn clear(&mut self) {
        if let Some(person) = self.person.as_mut().filter(|_| core::mem::take(&mut self.shown)) {
            person.show("\r \r");
        }
    }
}

/// Formats a rate: `12.3 MiB/s`.
fn rate(count: u64, taken_ns: u64) -> String {
    let each_second = u128::from(count) * 1_000_000_000 / u128::from(taken_ns.max(1));
    format!("{}/s", bytes(u64::try_from(each_second).unwrap_or(u64::MAX)))
}

/// Formats the progress row for this width.
fn row(gone: u64, of: Option<u64>, taken_ns: u64, columns: usize) -> String {
    let rate = rate(gone, taken_ns);
    let Some(of) = of.filter(|of| *of > 0) else { return format!("{}, {rate}", bytes(gone)) };
    let part =
        |whole: usize| usize::try_from(u128::from(gone.min(of)) * whole as u128 / u128::from(of)).unwrap_or(whole);
    let left_ns = u128::from(taken_ns) * u128::from(of.saturating_sub(gone)) / u128::from(gone.max(1));
    let left = duration(u64::try_from(left_ns / 1_000_000_000).unwrap_or(u64::MAX / 1_000_000_000) * 1_000_000_000);
    let text = format!("{:>3} %  {} of {}  {rate}  {left} left", part(100), bytes(gone), bytes(of));
    match columns.saturating_sub(text.len().max(TEXT_COLUMNS) + 4) {
        width @ BAR_COLUMNS.. => {
            let full = part(width);
            format!("[{}{}] {text}", "#".repeat(full), ".".repeat(width - full))
        }
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_fit() {
        let row = |gone, of, columns| row(gone, of, 2_000_000_000, columns);
        assert_eq!(row(1 << 20, None, 80), "1.0 MiB, 512.0 KiB/s");
        assert_eq!(row(1 << 20, Some(4 << 20), 40), " 25 %  1.0 MiB of 4.0 MiB  512.0 KiB/s  6.0 s left");
        let wide = row(1 << 20, Some(4 << 20), 80);
        assert!(wide.starts_with("[#####.................] ") && wide.len() <= 80, "{wide}");
        // A server may send more than it announced, or announce zero.
        assert!(row(9, Some(1), 80).contains("100 %"));
        assert_eq!(row(0, Some(0), 80), "0 B, 0 B/s");
        assert!(row(0, Some(u64::MAX), 120).len() <= 120);
        assert!(row(1, Some(u64::MAX), 120).contains("0 %"));
    }
}
