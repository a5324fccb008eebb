//! Text to the debug output (the machine's, or the sink that an ancestor set up), sinks for the process's own children,
//! and notes in its trace ring.
//!
//! For debugging and console users; a program's regular output goes through channels.

use core::fmt::{Arguments, Write};

pub use abi::Printable;

use abi::{Status, limits};
use alloc::string::String;
use alloc::vec::Vec;

use crate::entry::Line;
use crate::{raw, thread_block};

/// Writes a line to the debug output: `log!("opened {path}")`.
#[macro_export]
macro_rules! log {
    ($($argument:tt)*) => {
        $crate::debug::write_line(::core::format_args!($($argument)*))
    };
}

/// Writes bytes to the debug output, in pieces of at most a message buffer. Best-effort: errors are ignored.
fn write(bytes: &[u8]) {
    for piece in bytes.chunks(limits::TEXT_BYTES) {
        // There is no channel left on which to report that the debug output failed.
        let _ = thread_block::put_bytes(piece).and_then(raw::value::debug_write);
    }
}

/// Writes formatted text and a newline; does not allocate. See [`log!`](crate::log).
pub fn write_line(text: Arguments<'_>) {
    let mut output = Output { line: Line::new() };
    // `Output` never fails; only a Display impl of the caller's can, and then its text ends there.
    let _ = output.write_fmt(text);
    let _ = output.write_str("\n");
    write(output.line.as_bytes());
}

/// Adds a program-defined event with two words to the process's trace ring.
pub fn note(a: u64, b: u64) {
    // Cannot fail.
    let _ = raw::value::trace_note(a, b);
}

/// Returns the processor's cycle counter.
pub fn cycles() -> u64 {
    raw::value::cycles().unwrap_or(0)
}

/// Collects the debug text of children instead of the machine's debug output
/// ([`Child::debug_sink`](crate::process::Child::debug_sink)). When it is dropped, their text goes there again.
#[derive(Debug)]
pub struct Sink {
    handle: u64,
}

/// A piece read from a [`Sink`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SinkText {
    /// Text of one process, as it wrote it: part of a line, or several lines.
    Text {
        /// Its process id.
        process_id: u64,
        /// Name of its program.
        program: String,
        /// The text, unfiltered: it may be invalid UTF-8 and contain control characters.
        bytes: Vec<u8>,
    },
    /// Bytes lost because the sink was full; they were written after the text read before.
    Lost {
        /// Number of bytes.
        bytes: u64,
    },
}

impl Sink {
    /// Creates an empty sink, charged to this process's kernel memory quota.
    pub fn new() -> Result<Sink, Status> {
        raw::value::debug_sink_create().map(|handle| Sink { handle })
    }

    /// Returns the oldest text, if there is any; [`wait_any`](crate::select::wait_any) waits for it.
    pub fn read(&self) -> Option<SinkText> {
        // This value owns the handle, so the only possible refusal is of a read from an empty sink.
        let count = raw::value::debug_sink_read(self.handle).ok()?;
        let (first, name_bytes) = (thread_block::message_word(0), thread_block::message_word(1));
        if count == 0 {
            return Some(SinkText::Lost { bytes: first });
        }
        // Copied before anything is allocated, because allocating may make ABI calls.
        let both = thread_block::copy_bytes();
        let part = |word: usize, length: u64| {
            let rest = &both[8 * word..];
            &rest[..usize::try_from(length).unwrap_or(usize::MAX).min(rest.len())]
        };
        let program = String::from_utf8_lossy(part(limits::DEBUG_SINK_NAME_WORD, name_bytes)).into_owned();
        let bytes = part(limits::DEBUG_SINK_TEXT_WORD, count).to_vec();
        Some(SinkText::Text { process_id: first, program, bytes })
    }

    pub(crate) fn handle(&self) -> u64 {
        self.handle
    }
}

impl Drop for Sink {
    fn drop(&mut self) {
        // There is no waiter: it would borrow the sink.
        let _ = raw::value::debug_sink_close(self.handle);
    }
}

struct Output {
    line: Line,
}

impl Write for Output {
    fn write_str(&mut self, text: &str) -> core::fmt::Result {
        let mut rest = text.as_bytes();
        loop {
            rest = self.line.push(rest);
            if rest.is_empty() {
                return Ok(());
            }
            write(self.line.as_bytes());
            self.line.clear();
        }
    }
}
