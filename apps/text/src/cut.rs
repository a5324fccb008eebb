//! Prints selected parts of lines.

mod parts;
mod ranges;

use alloc::string::String;
use alloc::vec::Vec;

use client::namespace::Namespace;
use file_tools::feed::Feed;
use stdio::{Output, report};
use tool_kit::lines::{More, Outcome, Waits, for_each_line};

use crate::cut::parts::{Parts, Unit};
use crate::cut::ranges::Ranges;

sip::startup!("cut/manifest.toml");

/// Prints the selected parts of each line.
pub fn main(startup: Startup) -> i32 {
    let parts = match parts(&startup) {
        Ok(parts) => parts,
        Err(message) => {
            report::error(format_args!("{message}"));
            return 2;
        }
    };
    let mut output = Output::new(startup.output);
    let feed = Feed {
        namespace: Namespace::new(startup.namespace),
        working_folder: startup.working_folder,
        paths: startup.paths,
        input: startup.input,
        usage: "cut -f LIST PATH...",
    };
    let mut failed = false;
    let mut cut = Vec::new();
    let outcome = feed.for_each(|name, reader| {
        let outcome = for_each_line(name, reader, |line, waits| {
            cut.clear();
            if parts.cut(line, &mut cut) {
                cut.push(b'\n');
                output.write(&cut)?;
            }
            if waits == Waits::Perhaps {
                output.flush()?;
            }
            Ok(More::Wanted)
        })?;
        failed |= outcome == Outcome::Failed;
        Ok(())
    });
    outcome.map_or(1, |status| output.finish_with(status.max(i32::from(failed))))
}

fn parts(startup: &Startup) -> Result<Parts, String> {
    let (unit, list) = match (&startup.fields, &startup.characters, &startup.bytes) {
        (Some(list), None, None) => (Unit::Fields, list),
        (None, Some(list), None) => (Unit::Characters, list),
        (None, None, Some(list)) => (Unit::Bytes, list),
        _ => return Err(String::from("give one of -f, -c and -b: `cut -d , -f 2`")),
    };
    if unit != Unit::Fields && (startup.delimiter.is_some() || startup.only_delimited) {
        return Err(String::from("-d and -s need -f"));
    }
    let delimiter = startup.delimiter.clone().unwrap_or_else(|| String::from("\t"));
    if delimiter.chars().count() != 1 {
        return Err(alloc::format!("`{delimiter}` is not one character; -d takes one: `-d ,`"));
    }
    let between = match (&startup.output_delimiter, unit) {
        (Some(between), _) => between.clone(),
        (None, Unit::Fields) => delimiter.clone(),
        (None, _) => String::new(),
    };
    Ok(Parts { unit, ranges: Ranges::parse(list)?, delimiter, between, only_delimited: startup.only_delimited })
}
