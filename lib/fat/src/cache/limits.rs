//! Limits and statistics of a cache.

use super::MAX_IN_FLIGHT;
use super::page::MAX_PAGE_BYTES;

const MIN_PAGE_BYTES: usize = 4096;
/// Minimum number of pages: those of one operation and its read-ahead, or pages would be evicted before their use.
const MIN_PAGES: usize = 32;
const _: () = assert!(MIN_PAGES >= MAX_IN_FLIGHT);

/// Cache limits.
#[derive(Clone, Copy, Debug)]
pub struct CacheLimits {
    /// Maximum bytes of data.
    pub data_bytes: usize,
    /// Page size in bytes; rounded to a power of two from 4 to 32 KiB.
    pub page_bytes: usize,
}

impl CacheLimits {
    /// The limits of [`check`](crate::check) and [`format`](crate::format).
    pub const TOOLS: CacheLimits = CacheLimits { data_bytes: 4 << 20, page_bytes: MAX_PAGE_BYTES };

    /// The page size after rounding, in bytes.
    pub const fn rounded_page_bytes(&self) -> usize {
        let wanted = if self.page_bytes < MIN_PAGE_BYTES {
            MIN_PAGE_BYTES
        } else if self.page_bytes > MAX_PAGE_BYTES {
            MAX_PAGE_BYTES
        } else {
            self.page_bytes
        };
        if wanted.is_power_of_two() { wanted } else { wanted.next_power_of_two() / 2 }
    }

    /// Maximum number of pages.
    pub const fn max_pages(&self) -> usize {
        let pages = self.data_bytes / self.rounded_page_bytes();
        if pages < MIN_PAGES { MIN_PAGES } else { pages }
    }

    /// Maximum buffers allocated from the source at a time: the pages, and a sector per transfer that is retried sector
    /// by sector after an error. A quota of handles must allow for them.
    pub const fn max_buffers(&self) -> usize {
        self.max_pages() + MAX_IN_FLIGHT
    }
}

impl Default for CacheLimits {
    fn default() -> CacheLimits {
        CacheLimits::TOOLS
    }
}

/// Cache statistics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheCounters {
    /// Hits.
    pub hits: u64,
    /// Misses.
    pub misses: u64,
    /// Bytes in the cache.
    pub bytes: u64,
    /// Maximum bytes in the cache.
    pub limit_bytes: u64,
    /// Dirty bytes.
    pub unwritten_bytes: u64,
}
