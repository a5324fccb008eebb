//! What the calls of a program work on.

use alloc::string::String;
use alloc::vec::Vec;

use client::namespace::Namespace;
use client::random::Source;
use sip::Deadline;
use sip_wasm::{Caller, Host, Trap};

use crate::calls;
use crate::descriptors::Descriptors;
use crate::held::Held;
use crate::streams::Streams;

/// The host of a program.
pub struct Wasi {
    /// The namespace, for the source of random bytes.
    pub namespace: Namespace,
    /// Open descriptors.
    pub descriptors: Descriptors,
    /// Endpoints and blocks that the program holds.
    pub held: Held,
    /// Standard streams.
    pub streams: Streams,
    /// Arguments; the first is the program's name.
    pub arguments: Vec<String>,
    /// Variables, as `NAME=VALUE`.
    pub environment: Vec<String>,
    /// The source of random bytes, once it is open.
    pub random: Option<Source>,
    /// When the program started, in nanoseconds of the monotonic clock.
    pub started_ns: u64,
}

/// How long the end of a program waits until what it wrote to its connections is taken, in milliseconds.
const END_MS: u64 = 5_000;

impl Wasi {
    /// Ends what is open; returns the exit status.
    pub fn finish(&mut self, status: i32) -> i32 {
        self.streams.show_line();
        self.descriptors.end_all(Deadline::after_ms(END_MS));
        self.streams.finish(status)
    }
}

impl Host for Wasi {
    fn call(&mut self, import: usize, caller: &mut Caller<'_>) -> Result<(), Trap> {
        calls::perform(self, import, caller);
        Ok(())
    }
}
