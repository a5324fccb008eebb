//! Prints files unchanged.
//!
//! Whole blocks go from the file system to the reader without a copy; only the last, shorter one is copied.

use client::access::AccessError;
use client::namespace::Namespace;
use file_tools::feed::Feed;
use sip::exheap::ExVec;
use stdio::Output;

sip::startup!("cat/manifest.toml");

/// Prints each file. A file that cannot be read is reported; the others are still printed.
pub fn main(startup: Startup) -> i32 {
    let mut output = Output::new(startup.output);
    let feed = Feed {
        namespace: Namespace::new(startup.namespace),
        working_folder: startup.working_folder,
        paths: startup.paths,
        input: startup.input,
        usage: "cat PATH...",
    };
    let outcome = feed.for_each(|_, mut reader| {
        while let Some((block, count)) = reader.block()? {
            if count < block.len() {
                output.write_block(ExVec::from_slice(&block[..count]).map_err(AccessError::System)?)?;
                reader.recycle(block);
            } else {
                output.write_block(block)?;
            }
        }
        Ok(())
    });
    outcome.map_or(1, |status| output.finish_with(status))
}
