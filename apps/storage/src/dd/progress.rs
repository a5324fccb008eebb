//! Progress of a copy, for people.

use alloc::format;
use alloc::string::String;

use stdio::{Output, report};
use text::{bytes, count, duration};

/// Interval between progress lines in nanoseconds.
const INTERVAL_NS: u64 = 2_000_000_000;

/// Counts bytes and reports progress.
pub struct Progress {
    output: Option<Output>,
    bytes: u64,
    started_ns: u64,
    told_ns: u64,
}

impl Progress {
    /// Reports to the machine's user.
    pub fn to_person() -> Progress {
        let now = sip::time::monotonic();
        Progress { output: None, bytes: 0, started_ns: now, told_ns: now }
    }

    /// Reports on standard output.
    pub fn to_output(output: Output) -> Progress {
        Progress { output: Some(output), ..Progress::to_person() }
    }

    /// Adds copied bytes.
    pub fn add(&mut self, more: usize) {
        self.bytes += more as u64;
        let now = sip::time::monotonic();
        if now - self.told_ns >= INTERVAL_NS {
            self.told_ns = now;
            self.tell(&format!("{} so far", so_much(self.bytes, now - self.started_ns)));
        }
    }

    /// Reports the end of the copy and its number of blocks.
    pub fn finish(mut self, blocks: u64) {
        let elapsed = sip::time::monotonic() - self.started_ns;
        let line = format!("{} in {} blocks", so_much(self.bytes, elapsed), count(blocks));
        self.tell(&line);
        if let Some(output) = self.output {
            // The copy is complete even if the report cannot be written.
            let _ = output.finish();
        }
    }

    fn tell(&mut self, line: &str) {
        match &mut self.output {
            Some(output) => {
                // As in `finish`.
                let _ = output.write(format!("{line}\n").as_bytes()).and_then(|()| output.flush());
            }
            None => report::error(format_args!("{line}")),
        }
    }
}

/// Formats progress: `1,024 bytes (1.0 KiB), 2.0 ms, 500.0 KiB/s`.
fn so_much(copied: u64, elapsed_ns: u64) -> String {
    let rate = u128::from(copied) * 1_000_000_000 / u128::from(elapsed_ns.max(1));
    let rate = bytes(u64::try_from(rate).unwrap_or(u64::MAX));
    format!("{} bytes ({}) copied, {}, {rate}/s", count(copied), bytes(copied), duration(elapsed_ns))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_of_seconds() {
        assert_eq!(so_much(1024, 2_000_000), "1,024 bytes (1.0 KiB) copied, 2.0 ms, 500.0 KiB/s");
        assert_eq!(so_much(0, 0), "0 bytes (0 B) copied, 0 ns, 0 B/s");
    }
}
