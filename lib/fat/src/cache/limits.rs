//! What a cache may hold, and what it has done.

use super::MAX_IN_FLIGHT;
use super::line::MAX_LINE_BYTES;

const MIN_LINE_BYTES: usize = 4096;
/// With fewer lines, lines would be evicted before they are used: an operation and its read-ahead must fit.
const MIN_LINES: usize = 32;
const _: () = assert!(MIN_LINES >= MAX_IN_FLIGHT);

/// How much a cache holds.
#[derive(Clone, Copy, Debug)]
pub struct CacheLimits {
    /// Bytes of data at most.
    pub data_bytes: usize,
    /// Bytes of a line; rounded to a power of two from 4 to 32 KiB.
    pub line_bytes: usize,
}

impl CacheLimits {
    /// What [`check`](crate::check) and [`format`](crate::format) use.
    pub const TOOLS: CacheLimits = CacheLimits { data_bytes: 4 << 20, line_bytes: MAX_LINE_BYTES };

    /// Bytes of a line as the cache rounds them.
    pub const fn rounded_line_bytes(&self) -> usize {
        let wanted = if self.line_bytes < MIN_LINE_BYTES {
            MIN_LINE_BYTES
        } else if self.line_bytes > MAX_LINE_BYTES {
            MAX_LINE_BYTES
        } else {
            self.line_bytes
        };
        if wanted.is_power_of_two() { wanted } else { wanted.next_power_of_two() / 2 }
    }

    /// Lines that the cache holds at most.
    pub const fn max_lines(&self) -> usize {
        let lines = self.data_bytes / self.rounded_line_bytes();
        if lines < MIN_LINES { MIN_LINES } else { lines }
    }

    /// Buffers that the cache has from its source at most at one time: its lines, and a sector for each transfer
    /// that goes sector by sector because the disk failed at the line. A quota of handles must allow for them.
    pub const fn max_buffers(&self) -> usize {
        self.max_lines() + MAX_IN_FLIGHT
    }
}

impl Default for CacheLimits {
    fn default() -> CacheLimits {
        CacheLimits::TOOLS
    }
}

/// What a cache has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheCounters {
    /// Look-ups of a line that found it.
    pub hits: u64,
    /// Look-ups that had to read.
    pub misses: u64,
    /// Bytes held.
    pub bytes: u64,
    /// Bytes that may be held.
    pub limit_bytes: u64,
    /// Bytes that are not on the disk yet.
    pub unwritten_bytes: u64,
}
