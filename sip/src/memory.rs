//! The process's memory usage, as the kernel accounts for it.

use abi::limits::PAGE_BYTES;

use crate::{raw::value as kernel, thread_block};

/// Pages used and allowed, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Usage {
    /// In use.
    pub used_bytes: usize,
    /// The manifest's quota.
    pub allowed_bytes: usize,
}

/// Returns the current usage.
pub fn usage() -> Usage {
    let used = kernel::memory_usage().unwrap_or(0) as usize;
    let allowed = thread_block::message_word(0) as usize;
    Usage { used_bytes: used.saturating_mul(PAGE_BYTES), allowed_bytes: allowed.saturating_mul(PAGE_BYTES) }
}
