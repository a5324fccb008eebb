//! Measured figures and their output formats.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::Write;

use stdio::Output;

use crate::Error;

/// Reported percentiles in permille of the timed requests, with their labels.
const PERCENTILES: [(usize, &str); 4] = [(500, "p50"), (900, "p90"), (990, "p99"), (1000, "max")];

/// Output format.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// Human-readable text.
    Text,
    /// Machine-readable lines.
    Figures,
}

/// Figures of one round.
pub struct Figures {
    form: Form,
    round: u64,
    text: String,
}

impl Figures {
    /// Creates an empty set of figures.
    pub fn new(form: Form) -> Figures {
        Figures { form, round: 0, text: String::new() }
    }

    /// Begins a round; later figures belong to it.
    pub fn begin_round(&mut self, round: u64) {
        self.round = round;
    }

    /// Adds a throughput: bytes moved in a time.
    pub fn throughput(&mut self, name: &str, what: &str, bytes: u64, nanoseconds: u64) {
        // Bytes per microsecond are megabytes per second.
        let tenths = bytes.saturating_mul(10_000) / nanoseconds.max(1);
        let line = format!("{what}: {}.{} MB/s", tenths / 10, tenths % 10);
        self.add(name, nanoseconds, &line);
    }

    /// Adds a rate: operations per time.
    pub fn rate(&mut self, name: &str, what: &str, count: u64, nanoseconds: u64) {
        let rate = count.saturating_mul(1_000_000_000) / nanoseconds.max(1);
        self.add(name, nanoseconds, &format!("{what}: {rate} in a second"));
    }

    /// Adds the latencies of requests, in nanoseconds, in request order.
    pub fn latencies(&mut self, name: &str, what: &str, each: &[u64]) {
        if self.form == Form::Figures {
            for (index, nanoseconds) in each.iter().enumerate() {
                self.add(&format!("{name}_{index}"), *nanoseconds, "");
            }
        }
        let mut sorted: Vec<u64> = each.into();
        sorted.sort_unstable();
        for (part, percentile) in PERCENTILES {
            let place = (sorted.len() * part).div_ceil(1000).saturating_sub(1);
            let nanoseconds = sorted.get(place).copied().unwrap_or(0);
            let line = format!("{what}, {percentile}: {}.{:03} us", nanoseconds / 1000, nanoseconds % 1000);
            self.add(&format!("{name}_{percentile}"), nanoseconds, &line);
        }
    }

    fn add(&mut self, name: &str, nanoseconds: u64, line: &str) {
        // Writing to a string cannot fail.
        let _ = match self.form {
            Form::Text => writeln!(self.text, "{line}"),
            Form::Figures => writeln!(self.text, "bench {name}_{} {nanoseconds}", self.round),
        };
    }

    /// Prints the collected figures.
    pub fn print(&mut self, output: &mut Output) -> Result<(), Error> {
        output.write(self.text.as_bytes())?;
        self.text.clear();
        Ok(output.flush()?)
    }
}
