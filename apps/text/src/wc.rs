//! Counts lines, words and bytes.

mod counts;

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use client::namespace::Namespace;
use file_tools::feed::{Feed, INPUT_NAME};
use stdio::Output;
use text::{Align, Table, printable};

use crate::wc::counts::{Counter, Counts};

sip::startup!("wc/manifest.toml");

/// Counts to show.
struct Shown {
    lines: bool,
    words: bool,
    bytes: bool,
}

impl Shown {
    fn cells(&self, counts: Counts, name: &str) -> Vec<String> {
        let all = [(self.lines, counts.lines), (self.words, counts.words), (self.bytes, counts.bytes)];
        let mut cells: Vec<String> = all.iter().filter(|(is_shown, _)| *is_shown).map(|(_, n)| n.to_string()).collect();
        cells.push(if name == INPUT_NAME { String::new() } else { printable(name.as_bytes()) });
        cells
    }
}

/// Prints the counts of each file, and the total of several.
pub fn main(startup: Startup) -> i32 {
    let mut output = Output::new(startup.output);
    let all = !(startup.lines || startup.words || startup.bytes);
    let shown = Shown { lines: all || startup.lines, words: all || startup.words, bytes: all || startup.bytes };
    let several = startup.paths.len() > 1;
    let feed = Feed {
        namespace: Namespace::new(startup.namespace),
        working_folder: startup.working_folder,
        paths: startup.paths,
        input: startup.input,
        usage: "wc PATH...",
    };
    let mut rows: Vec<Vec<String>> = Vec::new();
    let mut total = Counts::default();
    let outcome = feed.for_each(|name, mut reader| {
        let mut counter = Counter::default();
        reader.for_each(|bytes| counter.count(bytes))?;
        total.add(counter.counts());
        rows.push(shown.cells(counter.counts(), name));
        Ok(())
    });
    let Ok(status) = outcome else { return 1 };
    if several {
        rows.push(shown.cells(total, "total"));
    }
    output.write(in_columns(rows).as_bytes()).map_or(1, |()| output.finish_with(status))
}

/// Aligns numbers to the right and names to the left, without headings.
fn in_columns(rows: Vec<Vec<String>>) -> String {
    let numbers = rows.first().map_or(0, |row| row.len() - 1);
    let mut columns: Vec<(&str, Align)> = (0..numbers).map(|_| ("", Align::Right)).collect();
    columns.push(("", Align::Left));
    let mut table = Table::new(&columns);
    rows.into_iter().for_each(|row| table.row(row));
    table.body()
}
