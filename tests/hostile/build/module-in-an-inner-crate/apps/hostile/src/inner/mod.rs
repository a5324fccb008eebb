//! What the bill says nothing of.

/// What is said.
pub const WORDS: &[u8] = b"not in the bill\n";
