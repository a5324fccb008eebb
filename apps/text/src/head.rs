//! Prints the beginning of files.

mod beginning;

use client::access::AccessError;
use client::namespace::Namespace;
use file_tools::feed::Feed;
use sip::exheap::ExVec;
use stdio::{Output, report};
use text::amount::{Part, take_lines};

use crate::head::beginning::Beginning;

sip::startup!("head/manifest.toml");

/// Prints the first lines, or bytes, of each file and reads no further.
pub fn main(mut startup: Startup) -> i32 {
    let lines = take_lines(&mut startup.paths).unwrap_or(startup.lines);
    let part = match Part::new(lines, startup.bytes.as_deref()) {
        Ok(part) => part,
        Err(error) => {
            report::error(format_args!("{error}"));
            return 2;
        }
    };
    let mut output = Output::new(startup.output);
    let feed = Feed {
        namespace: Namespace::new(startup.namespace),
        working_folder: startup.working_folder,
        paths: startup.paths,
        input: startup.input,
        usage: "head PATH...",
    };
    let outcome = feed.for_each_with_heading(&mut output, |output, mut reader| {
        let mut beginning = Beginning::new(part);
        while !beginning.is_whole()
            && let Some((block, count)) = reader.block()?
        {
            let wanted = beginning.take(&block[..count]);
            output.write_block(ExVec::from_slice(&block[..wanted]).map_err(AccessError::System)?)?;
            reader.recycle(block);
        }
        Ok(())
    });
    outcome.map_or(1, |status| output.finish_with(status))
}
