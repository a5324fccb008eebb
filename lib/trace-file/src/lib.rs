//! Events of the trace stream as a file: Perfetto's protobuf, Chrome's JSON, which Perfetto opens as well, or text.
//!
//! [`Writer`] takes events in the order of their time and appends to the file as it goes, so that a file of a writer
//! that was killed is readable, up to there. `story` interprets the events; `perfetto`, `json` and `text` encode the
//! result. Neighbours: the kernel makes the events, the program `trace` reads them. Deliberately not here: reading a
//! trace file.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod follow;
mod json;
mod names;
mod perfetto;
mod protobuf;
mod story;
#[cfg(test)]
mod tests;
mod text;

use alloc::boxed::Box;
use alloc::vec::Vec;

use abi::StreamRecord;

pub use follow::Follow;
pub use names::Names;

use story::Story;

/// Format of a trace file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// A sequence of `TracePacket`s, which <https://ui.perfetto.dev> opens.
    Perfetto,
    /// An object with `traceEvents`, as Chrome writes it.
    Json,
    /// One line per event.
    Text,
}

impl Format {
    /// The format of this name: `perfetto`, `json` or `text`.
    pub fn of(name: &str) -> Option<Format> {
        Some(match name {
            "perfetto" => Format::Perfetto,
            "json" => Format::Json,
            "text" => Format::Text,
            _ => return None,
        })
    }
}

/// A track: a row of the picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Track {
    /// A processor, by number.
    Processor(u64),
    /// A thread, by process id and handle.
    Thread(u64, u64),
    /// Requests of a process (by id) to devices. Concurrent ones are on different lanes.
    Requests(u64, u64),
    /// Events about the trace itself.
    Trace,
}

/// One end of a message's arrow, with a number that both ends have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Flow {
    From(u64),
    To(u64),
}

/// A file of some format, which grows.
trait File {
    /// Appends the declaration of a track; once, before anything that is on it.
    fn track(&mut self, out: &mut Vec<u8>, track: Track, name: &str, process_name: &str);
    /// Appends a slice: something with a duration.
    fn slice(&mut self, out: &mut Vec<u8>, track: Track, name: &str, span_ns: (u64, u64));
    /// Appends an instant, perhaps one end of an arrow.
    fn instant(&mut self, out: &mut Vec<u8>, track: Track, name: &str, at_ns: u64, flow: Option<Flow>);
    /// Appends the end of the file.
    fn finish(&mut self, out: &mut Vec<u8>);
}

/// Writes a trace file.
pub struct Writer {
    story: Story,
    text: bool,
    file: Box<dyn File + Send>,
    out: Vec<u8>,
}

impl Writer {
    /// Begins a file.
    pub fn new(format: Format) -> Writer {
        let mut out = Vec::new();
        let file: Box<dyn File + Send> = match format {
            Format::Perfetto => Box::new(perfetto::Perfetto::default()),
            Format::Json => Box::new(json::Json::new(&mut out)),
            Format::Text => Box::new(text::Text),
        };
        Writer { story: Story::default(), text: format == Format::Text, file, out }
    }

    /// Appends an event. Its time is not before that of the one appended before, or the picture is wrong.
    pub fn add(&mut self, event: &StreamRecord, names: &Names) {
        if self.text {
            text::line(&mut self.out, event, names);
        } else {
            self.story.add(event, names, self.file.as_mut(), &mut self.out);
        }
    }

    /// Appends a note that this many events, more than zero, were lost before this time.
    pub fn lost(&mut self, count: u64, at_ns: u64) {
        self.story.lost(count, at_ns, self.file.as_mut(), &mut self.out);
    }

    /// Appends what has not ended, and the end of the file.
    pub fn finish(&mut self) {
        self.story.finish(self.file.as_mut(), &mut self.out);
        self.file.finish(&mut self.out);
    }

    /// Takes the bytes that have been appended since the call before.
    pub fn take(&mut self) -> Vec<u8> {
        core::mem::take(&mut self.out)
    }
}
