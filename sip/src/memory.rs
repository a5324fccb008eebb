//! The process's own memory, as the kernel counts it.

use abi::limits::PAGE_BYTES;

use crate::{raw::value as kernel, thread_block};

/// Paged memory used and allowed, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Usage {
    /// In use.
    pub used_bytes: usize,
    /// The most that the manifest's quota allows.
    pub allowed_bytes: usize,
}

/// What the process uses now.
pub fn usage() -> Usage {
    let used = kernel::memory_usage().unwrap_or(0) as usize;
    let allowed = thread_block::message_word(0) as usize;
    Usage { used_bytes: used.saturating_mul(PAGE_BYTES), allowed_bytes: allowed.saturating_mul(PAGE_BYTES) }
}
