//! The tool's share of the quota in its manifest.

/// Memory budget of a check, in bytes.
pub(crate) const MEMORY_BYTES: u64 = 56 << 20;
