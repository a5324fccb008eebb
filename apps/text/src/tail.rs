//! Prints the last part of files.
//!
//! A file is read backwards from its end to the start of the part; of standard input, only the possible last part is
//! kept.

mod ending;
mod follow;

use alloc::string::ToString;

use client::access::AccessError;
use client::file_io::{OpenFile, new_block};
use client::namespace::Namespace;
use file_tools::feed::{Error, Feed, Reader};
use sip::exheap::ExVec;
use stdio::{Output, report};
use text::amount::{Part, take_lines};

use crate::tail::ending::{Kept, LineStarts};
use crate::tail::follow::Followed;

sip::startup!("tail/manifest.toml");

/// Prints the last lines, or bytes, of each file.
pub fn main(mut startup: Startup) -> i32 {
    let lines = take_lines(&mut startup.paths).map_or(startup.lines, |lines| lines.to_string());
    let wanted = match wanted(&lines, startup.bytes.as_deref()) {
        Ok(wanted) => wanted,
        Err(status) => return status,
    };
    let mut output = Output::new(startup.output);
    let mut namespace = Namespace::new(startup.namespace);
    let root = match namespace.open_directory("/") {
        Ok(root) => root,
        Err(error) => return report::path_error("/", &error),
    };
    let mut followed = Followed::new(&startup.working_folder, &startup.paths);
    let feed = Feed {
        namespace: root,
        working_folder: startup.working_folder,
        paths: startup.paths,
        input: startup.input,
        usage: "tail PATH...",
    };
    let mut status = 0;
    let outcome = feed.for_each(|name, mut reader| {
        followed.print_heading(name, &mut output)?;
        let part = match wanted {
            Wanted::Last(part) => part,
            Wanted::From(line) => {
                let printed = print_from(&mut reader, line, &mut output)?;
                followed.printed_up_to(name, printed);
                return Ok(());
            }
        };
        let Some(file) = reader.file() else {
            let printed = print_end_of_input(&mut reader, part, &mut output)?;
            status = status.max(printed);
            return Ok(());
        };
        let start = start_of(file, part)?;
        reader.seek(start);
        let printed = print_rest(&mut reader, &mut output)?;
        followed.printed_up_to(name, start + printed);
        Ok(())
    });
    let Ok(failed) = outcome else { return 1 };
    if startup.follow && followed.go_on(&mut namespace, &mut output).is_err() {
        // The reader has ended.
        return 1;
    }
    output.finish_with(failed.max(status))
}

/// Part to print.
#[derive(Clone, Copy, Debug)]
enum Wanted {
    /// The last part.
    Last(Part),
    /// Everything from this line on, counted from 1.
    From(u64),
}

/// Parses the option; the error is the exit status.
fn wanted(lines: &str, bytes: Option<&str>) -> Result<Wanted, i32> {
    if let (Some(first), None) = (lines.strip_prefix('+').and_then(|first| first.parse().ok()), bytes) {
        return Ok(Wanted::From(first));
    }
    let Ok(lines) = lines.parse::<i64>() else {
        report::error(format_args!("`{lines}` is not a number of lines; use 0 or more, or `+5` for all from line 5"));
        return Err(2);
    };
    Part::new(lines, bytes).map(Wanted::Last).map_err(|error| {
        report::error(format_args!("{error}"));
        2
    })
}

/// Prints everything from a line on; returns the total number of bytes.
fn print_from(reader: &mut Reader, line: u64, output: &mut Output) -> Result<u64, Error> {
    let mut skipped = 1;
    let mut bytes = 0;
    while let Some((block, count)) = reader.block()? {
        let ends = block[..count].iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(index, _)| index + 1);
        let missing = usize::try_from(line.saturating_sub(skipped)).unwrap_or(usize::MAX);
        let start = if missing == 0 { 0 } else { ends.clone().nth(missing - 1).unwrap_or(count) };
        skipped += ends.take_while(|end| *end <= start).count() as u64;
        output.write(&block[start..count])?;
        bytes += count as u64;
        reader.recycle(block);
    }
    Ok(bytes)
}

/// Returns where the last part of a file begins.
fn start_of(file: &mut OpenFile, part: Part) -> Result<u64, AccessError> {
    let size = file.attributes()?.size_bytes;
    let mut starts = match part {
        Part::Bytes(bytes) => return Ok(size.saturating_sub(bytes)),
        Part::Lines(lines) => LineStarts::new(lines),
    };
    let mut block = new_block()?;
    let mut end = size;
    while end > 0 {
        // Reads aligned blocks, so that only the piece at the end of the file is short.
        let start = (end - 1) / block.len() as u64 * block.len() as u64;
        let (filled, count) = file.read_at(block, start)?;
        let bytes = count.min((end - start) as usize);
        if let Some(index) = starts.look_back(&filled[..bytes]) {
            return Ok(start + index as u64);
        }
        block = filled;
        end = start;
    }
    Ok(0)
}

/// Prints the rest; returns its number of bytes.
fn print_rest(reader: &mut Reader, output: &mut Output) -> Result<u64, Error> {
    let mut printed = 0;
    while let Some((block, count)) = reader.block()? {
        output.write_block(ExVec::from_slice(&block[..count]).map_err(AccessError::System)?)?;
        reader.recycle(block);
        printed += count as u64;
    }
    Ok(printed)
}

fn print_end_of_input(reader: &mut Reader, part: Part, output: &mut Output) -> Result<i32, Error> {
    let mut kept = Kept::new(part);
    while let Some((block, count)) = reader.block()? {
        if kept.push(&block[..count]).is_err() {
            report::error(format_args!("the end of the input is too long to keep; write it to a file first"));
            return Ok(1);
        }
        reader.recycle(block);
    }
    for piece in kept.into_pieces() {
        output.write(&piece)?;
    }
    Ok(0)
}
