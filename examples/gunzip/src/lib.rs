//! Prints compressed files decompressed, by zlib in a process of its own for each.
//!
//! A file that breaks zlib costs that file: the process is in a hardware domain of its own, and the next file gets
//! another.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

use alloc::format;
use alloc::string::{String, ToString};

use client::namespace::Namespace;
use file_tools::feed::{Error, Feed, Reader};
use inflater_contract::inflater::{self, Imp, ImpReadyAfterInput, states};
use sip::exheap::ExVec;
use sip::process::Child;
use stdio::{Output, report};

sip::startup!();

const INFLATER: &str = "inflater";

/// Index of the inflater's only endpoint slot.
const CLIENT_SLOT: usize = 0;

/// Why a stream is not decompressed to its end.
enum Stop {
    /// It cannot be read, or nobody reads the output.
    Feed(Error),
    /// With the reason.
    Broken(String),
}

impl From<Error> for Stop {
    fn from(error: Error) -> Stop {
        Stop::Feed(error)
    }
}

/// Prints each file.
pub fn main(startup: Startup) -> i32 {
    let mut output = Output::new(startup.output);
    let feed = Feed {
        namespace: Namespace::new(startup.namespace),
        working_folder: startup.working_folder,
        paths: startup.paths,
        input: startup.input,
        usage: "gunzip PATH...",
    };
    let mut broken = 0;
    let outcome = feed.for_each(|name, mut reader| match decompress(&mut reader, &mut output) {
        Ok(()) => Ok(()),
        Err(Stop::Feed(error)) => Err(error),
        Err(Stop::Broken(reason)) => {
            broken = report::path_error(name, &reason);
            Ok(())
        }
    });
    match outcome {
        Ok(status) => output.finish_with(status.max(broken)),
        Err(_) => 1,
    }
}

/// A stream that is being decompressed.
struct Stream {
    child: Child,
    endpoint: Imp<states::Ready>,
    /// Offset of the stream's next byte.
    offset: u64,
}

/// What came of some bytes.
enum Step {
    /// The stream goes on.
    More(Stream, ExVec<u8>, usize),
    /// It has ended.
    Last,
}

fn decompress(reader: &mut Reader, output: &mut Output) -> Result<(), Stop> {
    let mut stream = start().map_err(|reason| Stop::Broken(format!("`{INFLATER}` does not start: {reason}")))?;
    while let Some((mut block, bytes)) = reader.block()? {
        let mut first = 0;
        loop {
            let text;
            (text, stream, block, first) = match step(stream, block, first, bytes)? {
                (text, Step::More(stream, block, next)) => (text, stream, block, next),
                (text, Step::Last) => return Ok(output.write_block(text).map_err(Error::from)?),
            };
            let is_empty = text.is_empty();
            output.write_block(text).map_err(Error::from)?;
            // Where all is read and the text was not full, the rest of it needs more bytes.
            if first == bytes && is_empty {
                break;
            }
        }
        reader.recycle(block);
    }
    Err(Stop::Broken(format!("it ends after {} bytes, within the stream", stream.offset)))
}

/// Has the bytes `first..end` of a block decompressed, as far as one answer goes.
fn step(stream: Stream, block: ExVec<u8>, first: usize, end: usize) -> Result<(ExVec<u8>, Step), Stop> {
    let Stream { child, endpoint, offset } = stream;
    let offset_of = |read: u32| offset + u64::from(read).saturating_sub(first as u64);
    match endpoint.input(first as u32, end as u32, block).receive() {
        ImpReadyAfterInput::Output { read, data, text, next } => {
            let stream = Stream { child, endpoint: next, offset: offset_of(read) };
            Ok((text, Step::More(stream, data, (read as usize).clamp(first, end))))
        }
        ImpReadyAfterInput::Last { text, .. } => Ok((text, Step::Last)),
        ImpReadyAfterInput::Malformed { read, .. } => {
            Err(Stop::Broken(format!("it is malformed before byte {}", offset_of(read))))
        }
        ImpReadyAfterInput::ChannelClosed(_) => {
            let end = child.wait().map_or_else(|status| status.text().to_string(), |epitaph| epitaph.to_string());
            Err(Stop::Broken(format!("`{INFLATER}` ended: {end}")))
        }
    }
}

fn start() -> Result<Stream, String> {
    let said = |status: sip::Status| status.text().to_string();
    let child = sip::process::create(INFLATER).map_err(|error| error.reason)?;
    let (importer, exporter) = inflater::new_channel().map_err(said)?;
    let child = child.endpoint(CLIENT_SLOT, exporter).and_then(Child::start).map_err(said)?;
    Ok(Stream { child, endpoint: importer, offset: 0 })
}
