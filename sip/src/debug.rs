//! Text to the machine's debug output or to the debug sink of whoever started this, sinks of one's own, and notes in the
//! process's trace ring.
//!
//! For people who look at a machine or gave a command, not for a program's output, which goes through channels.

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

/// Writes bytes to the debug output, in pieces of at most a message buffer.
fn write(bytes: &[u8]) {
    for piece in bytes.chunks(limits::TEXT_BYTES) {
        // There is nowhere to report that the debug output failed.
        let _ = thread_block::put_bytes(piece).and_then(raw::value::debug_write);
    }
}

/// Writes formatted text and a line end; does not allocate. See [`log!`](crate::log).
pub fn write_line(text: Arguments<'_>) {
    let mut output = Output { line: Line::new() };
    // `Output` never refuses; only a Display of the caller's can fail, and then its text ends there.
    let _ = output.write_fmt(text);
    let _ = output.write_str("\n");
    write(output.line.as_bytes());
}

/// Adds an event of the program's own, with two words, to the process's trace ring.
pub fn note(a: u64, b: u64) {
    // Cannot fail.
    let _ = raw::value::trace_note(a, b);
}

/// The processor's cycle counter.
pub fn cycles() -> u64 {
    raw::value::cycles().unwrap_or(0)
}

/// Where the debug text of children waits for this process instead of going to the machine's debug output
/// ([`Child::debug_sink`](crate::process::Child::debug_sink)). When it is dropped, theirs goes there again.
#[derive(Debug)]
pub struct Sink {
    handle: u64,
}

/// What is read from a [`Sink`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SinkText {
    /// Text of one process, as it wrote it: a part of a line, or several.
    Text {
        /// Its process id.
        process_id: u64,
        /// Name of its program.
        program: String,
        /// The text, which may be no UTF-8 and may have control characters.
        bytes: Vec<u8>,
    },
    /// So many bytes that were written after what was read before did not fit in.
    Lost {
        /// How many.
        bytes: u64,
    },
}

impl Sink {
    /// A sink, empty. It counts against what the kernel may keep for this process.
    pub fn new() -> Result<Sink, Status> {
        raw::value::debug_sink_create().map(|handle| Sink { handle })
    }

    /// The oldest text, if there is any; [`wait_any`](crate::select::wait_any) waits for it.
    pub fn read(&self) -> Option<SinkText> {
        // The handle is this value's own, so what is refused is a read where nothing is.
        let count = raw::value::debug_sink_read(self.handle).ok()?;
        let (first, name_bytes) = (thread_block::message_word(0), thread_block::message_word(1));
        if count == 0 {
            return Some(SinkText::Lost { bytes: first });
        }
        // Both before anything is allocated, which may call the kernel.
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
        // Nobody waits for it: a waiter would borrow it.
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
