//! Prints checksums of files, reading block by block.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod blake3;
mod checksum;

use alloc::format;

use client::namespace::Namespace;
use file_tools::feed::Feed;
use stdio::{Output, report};
use text::printable;

use crate::checksum::Checksum;

sip::startup!();

/// Prints a line for each file: checksum, two spaces, path as given.
pub fn main(startup: Startup) -> i32 {
    let mut output = Output::new(startup.output);
    let algorithm = startup.algorithm.as_str();
    if Checksum::named(algorithm).is_none() {
        report::error(format_args!("unknown algorithm `{algorithm}`; use sha256, blake3 or crc32"));
        return 1;
    }
    let feed = Feed {
        namespace: Namespace::new(startup.namespace),
        working_folder: startup.working_folder,
        paths: startup.paths,
        input: startup.input,
        usage: "hash PATH...",
    };
    let outcome = feed.for_each(|name, mut reader| {
        let Some(mut sum) = Checksum::named(algorithm) else { return Ok(()) };
        reader.for_each(|bytes| sum.update(bytes))?;
        Ok(output.write(format!("{}  {}\n", sum.finish(), printable(name.as_bytes())).as_bytes())?)
    });
    outcome.map_or(1, |status| output.finish_with(status))
}
