//! Where content goes, and how far it is.

use alloc::format;
use alloc::string::String;
use core::ops::Range;

use client::file_writer::{Existing, FileWriter};
use client::namespace::Namespace;
use client::person::Person;
use network::NetError;
use sip::exheap::ExVec;
use stdio::Output;
use text::{bytes, duration};

use crate::failure::Failure;

/// Time between two looks at how far it is.
const SHOWN_EVERY_NS: u64 = 200_000_000;
/// A row that is shorter than this takes no bar.
const BAR_COLUMNS: usize = 20;
/// Columns of what stands beside the bar.
const TEXT_COLUMNS: usize = 54;

/// A file or standard output.
pub enum Destination<'a> {
    /// Standard output.
    Output(&'a mut Output),
    /// A file.
    File {
        /// As people know it.
        path: &'a str,
        /// Its content.
        writer: FileWriter,
    },
}

impl Destination<'_> {
    /// A file whose content is replaced.
    pub fn file<'a>(namespace: &mut Namespace, folder: &str, path: &'a str) -> Result<Destination<'a>, Failure> {
        let full = path::absolute(folder, path);
        let opened = FileWriter::open(namespace, &full, Existing::Replace);
        let writer = opened.map_err(|error| Failure::File(path.into(), error))?;
        Ok(Destination::File { path, writer })
    }

    /// Writes these bytes of a block next; where they are all of it, nothing is copied.
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

/// How far it is, for a person.
pub struct Progress {
    person: Option<Person>,
    begun_ns: u64,
    next_ns: u64,
    shown: bool,
}

impl Progress {
    /// Shows it to this person, if there is one.
    pub fn new(person: Option<Person>) -> Progress {
        let now = sip::time::monotonic();
        Progress { person, begun_ns: now, next_ns: now.saturating_add(SHOWN_EVERY_NS), shown: false }
    }

    /// So many bytes went, of so many, if that is known.
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

    /// Takes what was shown away, and sums up.
    pub fn end(&mut self, gone: u64) -> String {
        let taken_ns = sip::time::monotonic().saturating_sub(self.begun_ns);
        self.clear();
        format!("{} in {}, {}", bytes(gone), duration(taken_ns), rate(gone, taken_ns))
    }

    /// Takes what was shown away.
    pub fn clear(&mut self) {
        if let Some(person) = self.person.as_mut().filter(|_| core::mem::take(&mut self.shown)) {
            person.show("\r \r");
        }
    }
}

/// `12.3 MiB/s`.
fn rate(count: u64, taken_ns: u64) -> String {
    let each_second = u128::from(count) * 1_000_000_000 / u128::from(taken_ns.max(1));
    format!("{}/s", bytes(u64::try_from(each_second).unwrap_or(u64::MAX)))
}

/// What is shown in a row of so many columns.
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
        // A server may send more than it said, and say that it sends nothing.
        assert!(row(9, Some(1), 80).contains("100 %"));
        assert_eq!(row(0, Some(0), 80), "0 B, 0 B/s");
        assert!(row(0, Some(u64::MAX), 120).len() <= 120);
        assert!(row(1, Some(u64::MAX), 120).contains("0 %"));
    }
}
