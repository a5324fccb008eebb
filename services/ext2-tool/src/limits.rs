//! What the tool takes of its quota, which its manifest grants.

/// The memory that a check may take, in bytes.
pub(crate) const MEMORY_BYTES: u64 = 56 << 20;
