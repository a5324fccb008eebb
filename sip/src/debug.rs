//! Text to the machine's debug output, and notes in the process's trace ring.
//!
//! For people who look at a machine, not for a program's output, which goes through channels.

use core::fmt::{Arguments, Write};

pub use abi::Printable;

use crate::entry::Line;
use crate::{raw, thread_block};

/// Writes a line to the machine's debug output: `log!("opened {path}")`.
#[macro_export]
macro_rules! log {
    ($($argument:tt)*) => {
        $crate::debug::write_line(::core::format_args!($($argument)*))
    };
}

/// Writes bytes to the machine's debug output, in pieces of at most a message buffer.
fn write(bytes: &[u8]) {
    for piece in bytes.chunks(abi::limits::TEXT_BYTES) {
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
