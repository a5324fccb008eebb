//! Empties the kernel's buffers and writes the file.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use client::file_writer::FileWriter;
use sip::diagnostics::{Stream, StreamRecord};
use sip::exheap::ExVec;
use sip::sync::Event;
use sip::{Deadline, time};
use trace_file::{Format, Writer};

use crate::known::Known;

/// Bytes gathered before they are written.
const WRITE_BYTES: usize = 64 * 1024;

/// What was recorded.
pub struct Summary {
    /// Events written.
    pub events: u64,
    /// Events that the kernel had no room for.
    pub lost: u64,
}

/// The state of a recording.
pub struct Recorder {
    stream: Stream,
    known: Known,
    writer: Writer,
    file: FileWriter,
    block: Option<ExVec<u8>>,
    out: Vec<u8>,
    pause_ns: u64,
    summary: Summary,
    /// Events read, which wait for those of other processors that came before them.
    waiting: Vec<StreamRecord>,
}

impl Recorder {
    /// Takes over a stream that has started.
    pub fn new(stream: Stream, known: Known, format: Format, file: FileWriter, pause_ns: u64) -> Recorder {
        let summary = Summary { events: 0, lost: 0 };
        let (writer, out, waiting) = (Writer::new(format), Vec::new(), Vec::new());
        Recorder { stream, known, writer, file, block: None, out, pause_ns, summary, waiting }
    }

    /// Records until the event is set.
    ///
    /// # Errors
    ///
    /// A sentence, if the stream cannot be read or the file cannot be written.
    pub fn record(mut self, end: &Event) -> Result<Summary, String> {
        loop {
            let is_over = end.wait_until(Deadline::after_ns(self.pause_ns));
            // An event that was in a buffer before this time is read below, whichever processor's it is.
            let before_ns = time::monotonic();
            self.read()?;
            self.write_until(if is_over { u64::MAX } else { before_ns })?;
            if is_over {
                break;
            }
        }
        self.writer.finish();
        self.gather(0)?;
        self.file.finish().map_err(|error| error.to_string())?;
        Ok(self.summary)
    }

    /// Empties the buffers, as they are at one time.
    fn read(&mut self) -> Result<(), String> {
        let (mut lost, until_ns) = (0, time::monotonic());
        loop {
            let (events, more_lost) =
                self.stream.read().map_err(|status| format!("the stream cannot be read: {}", status.text()))?;
            lost += more_lost;
            self.waiting.extend_from_slice(events);
            // A system that makes events faster than they are read would keep this here for ever.
            if events.is_empty() || events.iter().all(|event| event.time_ns >= until_ns) {
                break;
            }
        }
        if lost > 0 {
            self.summary.lost += lost;
            self.writer.lost(lost, until_ns);
        }
        Ok(())
    }

    /// Writes the events before a time.
    fn write_until(&mut self, time_ns: u64) -> Result<(), String> {
        self.waiting.sort_by_key(|event| event.time_ns);
        let count = self.waiting.partition_point(|event| event.time_ns < time_ns);
        self.known.read_names(&self.waiting[..count]);
        for index in 0..count {
            let event = self.waiting[index];
            if self.known.keeps(&event) {
                self.writer.add(&event, &self.known.names);
                self.summary.events += 1;
            }
            if index % 256 == 255 {
                self.gather(WRITE_BYTES)?;
            }
        }
        self.waiting.drain(..count);
        self.gather(WRITE_BYTES)
    }

    /// Writes what has been gathered if it is more than this.
    fn gather(&mut self, more_than: usize) -> Result<(), String> {
        self.out.append(&mut self.writer.take());
        while self.out.len() > more_than {
            let mut block = match self.block.take() {
                Some(block) => block,
                None => {
                    ExVec::new(WRITE_BYTES).map_err(|status| format!("no memory to write from: {}", status.text()))?
                }
            };
            let count = self.out.len().min(WRITE_BYTES);
            block[..count].copy_from_slice(&self.out[..count]);
            self.block = Some(self.file.write(block, count).map_err(|error| error.to_string())?);
            self.out.drain(..count);
        }
        Ok(())
    }
}
