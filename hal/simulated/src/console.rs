//! The console: input from a script, output to standard output.
//!
//! Deliberately not here: lines, echo, colours.

use std::collections::VecDeque;
use std::io::{self, Write};

/// The console's two streams.
#[derive(Debug)]
pub(crate) struct Console {
    input: VecDeque<u8>,
}

impl Console {
    /// Makes a console on which this is typed, followed by the end of input.
    pub(crate) fn new(script: &[u8]) -> Console {
        Console { input: script.iter().copied().collect() }
    }

    /// Takes the input that is there, at most this many bytes; none at the end of input.
    pub(crate) fn read(&mut self, bytes: usize) -> Vec<u8> {
        self.input.drain(..bytes.min(self.input.len())).collect()
    }

    /// Writes output; false if standard output is gone.
    pub(crate) fn write(&self, bytes: &[u8]) -> bool {
        let mut output = io::stdout().lock();
        output.write_all(bytes).and_then(|()| output.flush()).is_ok()
    }
}
