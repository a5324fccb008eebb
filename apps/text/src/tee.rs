//! Copies standard input to files and to standard output.

use alloc::string::String;
use alloc::vec::Vec;

use client::file_writer::{Existing, FileWriter};
use client::namespace::Namespace;
use file_tools::feed::Feed;
use sip::exheap::ExVec;
use stdio::{Output, report};

sip::startup!("tee/manifest.toml");

/// Copies each block as it arrives. A file that cannot be written is reported; the others are still written.
pub fn main(startup: Startup) -> i32 {
    let mut output = Some(Output::new(startup.output));
    let mut namespace = Namespace::new(startup.namespace);
    let existing = if startup.append { Existing::Append } else { Existing::Replace };
    let mut status = 0;
    let mut files: Vec<(String, FileWriter)> = Vec::new();
    for asked in startup.paths {
        let full = path::absolute(&startup.working_folder, &asked);
        match FileWriter::open(&mut namespace, &full, existing) {
            Ok(file) => files.push((asked, file)),
            Err(error) => status = report::path_error(&asked, &error),
        }
    }
    let feed = Feed {
        namespace,
        working_folder: startup.working_folder,
        paths: Vec::new(),
        input: startup.input,
        usage: "... | tee PATH...",
    };
    let copied = feed.for_each(|_, mut reader| {
        while let Some((mut block, bytes)) = reader.block()? {
            for (asked, mut file) in core::mem::take(&mut files) {
                match file.write(block, bytes) {
                    Ok(back) => {
                        block = back;
                        files.push((asked, file));
                    }
                    Err(error) => {
                        status = report::path_error(&asked, &error);
                        return Ok(());
                    }
                }
            }
            output = output.take().and_then(|output| pass_on(output, block, bytes));
            if output.is_none() && files.is_empty() {
                break;
            }
        }
        Ok(())
    });
    status = status.max(copied.unwrap_or(1));
    output.map_or(status, |output| output.finish_with(status))
}

/// Forwards a block; returns `None` once the reader has ended, after which the files are still written.
fn pass_on(mut output: Output, block: ExVec<u8>, bytes: usize) -> Option<Output> {
    let written = if bytes == block.len() {
        output.write_block(block)
    } else {
        output.write(&block[..bytes]).and_then(|()| output.flush())
    };
    written.is_ok().then_some(output)
}
