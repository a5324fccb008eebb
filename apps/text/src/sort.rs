//! Sorts lines.

mod held;
mod key;

use alloc::string::String;
use alloc::vec::Vec;
use core::cmp::Ordering;

use client::file_writer::{Existing, FileWriter};
use client::namespace::Namespace;
use file_tools::feed::{Feed, NoReader};
use sip::exheap::ExVec;
use stdio::{Output, report};
use tool_kit::lines::{More, Outcome, for_each_line};

use crate::sort::held::{Held, MAX_BYTES};
use crate::sort::key::{Key, Options};

sip::startup!("sort/manifest.toml");

/// Exit status: an operation failed.
const STATUS_FAILED: i32 = 2;
/// Block size in bytes when writing a file.
const BLOCK_BYTES: usize = 64 * 1024;

/// Order of lines.
struct Order {
    keys: Vec<Key>,
    separator: Option<u8>,
    /// Tie-breaker for lines with equal keys.
    last: Option<Options>,
}

/// Prints the lines of all files in order.
pub fn main(startup: Startup) -> i32 {
    let order = match order(&startup) {
        Ok(order) => order,
        Err(message) => {
            report::error(format_args!("{message}"));
            return STATUS_FAILED;
        }
    };
    let target = startup.output_file.map(|asked| (path::absolute(&startup.working_folder, &asked), asked));
    let mut namespace = Namespace::new(startup.namespace);
    let root = match namespace.open_directory("/") {
        Ok(root) => root,
        Err(error) => return report::path_error("/", &error).max(STATUS_FAILED),
    };
    let feed = Feed {
        namespace: root,
        working_folder: startup.working_folder,
        paths: startup.paths,
        input: startup.input,
        usage: "sort PATH...",
    };
    let Ok((mut held, failed)) = hold(feed) else { return STATUS_FAILED };
    if failed {
        return STATUS_FAILED;
    }
    held.sort(|left, right| order.compare(left, right));
    let lines = held.lines().scan(None, |before: &mut Option<&[u8]>, line| {
        let repeats = startup.unique && before.is_some_and(|before| order.by_keys(before, line) == Ordering::Equal);
        if !repeats {
            *before = Some(line);
        }
        Some((!repeats).then_some(line))
    });
    match target {
        None => print(Output::new(startup.output), lines.flatten()),
        Some((full, asked)) => {
            drop(startup.output);
            write(&mut namespace, &full, lines.flatten())
                .map_or_else(|error| report::path_error(&asked, &error).max(STATUS_FAILED), |()| 0)
        }
    }
}

/// Reads all lines; also returns whether some are missing, which was reported.
fn hold(feed: Feed) -> Result<(Held, bool), NoReader> {
    let mut held = Held::default();
    let mut failed = false;
    let status = feed.for_each(|name, reader| {
        let outcome = for_each_line(name, reader, |line, _| {
            if !failed && held.push(line).is_err() {
                report::error(format_args!(
                    "the input exceeds {} MiB; sort parts of it, as from `head -n`, `tail -n` or `grep`",
                    MAX_BYTES >> 20
                ));
                failed = true;
            }
            Ok(if failed { More::Enough } else { More::Wanted })
        })?;
        failed |= outcome == Outcome::Failed;
        Ok(())
    })?;
    Ok((held, failed || status != 0))
}

fn order(startup: &Startup) -> Result<Order, String> {
    let options =
        Options { numeric: startup.numeric, reverse: startup.reverse, fold: startup.fold, blanks: startup.blanks };
    let separator = match startup.separator.as_deref().map(str::as_bytes) {
        None => None,
        Some(&[byte]) => Some(byte),
        Some(b"\\t") => Some(b'\t'),
        Some(_) => {
            let separator = startup.separator.as_deref().unwrap_or_default();
            return Err(alloc::format!("`{separator}` is not one byte; -t takes one: `-t :`"));
        }
    };
    let keys: Result<Vec<Key>, String> = startup.keys.iter().map(|key| Key::parse(key, options)).collect();
    let mut keys = keys?;
    if keys.is_empty() {
        keys.push(Key::line(options));
    }
    let last = Options { reverse: startup.reverse, ..Options::default() };
    Ok(Order { keys, separator, last: (!startup.stable && !startup.unique).then_some(last) })
}

impl Order {
    fn by_keys(&self, left: &[u8], right: &[u8]) -> Ordering {
        let mut by_key = self.keys.iter().map(|key| key.compare(left, right, self.separator));
        by_key.find(|ordering| ordering.is_ne()).unwrap_or(Ordering::Equal)
    }

    fn compare(&self, left: &[u8], right: &[u8]) -> Ordering {
        let last = || self.last.map_or(Ordering::Equal, |options| Key::line(options).compare(left, right, None));
        self.by_keys(left, right).then_with(last)
    }
}

fn print<'l>(mut output: Output, lines: impl Iterator<Item = &'l [u8]>) -> i32 {
    for line in lines {
        if output.write(line).and_then(|()| output.write(b"\n")).is_err() {
            // The reader has ended.
            return STATUS_FAILED;
        }
    }
    output.finish_with(0)
}

fn write<'l>(
    namespace: &mut Namespace,
    full: &str,
    lines: impl Iterator<Item = &'l [u8]>,
) -> Result<(), client::access::AccessError> {
    let mut writer = FileWriter::open(namespace, full, Existing::Replace)?;
    let mut gathered = Vec::new();
    for line in lines {
        gathered.extend_from_slice(line);
        gathered.push(b'\n');
        if gathered.len() >= BLOCK_BYTES {
            writer.write(ExVec::from_slice(&gathered)?, gathered.len())?;
            gathered.clear();
        }
    }
    writer.write(ExVec::from_slice(&gathered)?, gathered.len())?;
    writer.finish().map(drop)
}
