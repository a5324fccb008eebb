//! What is left out, and why.

/// Files that are left out as a whole.
pub const FILES: [(&str, &str); 1] =
    [("simd/simd_memory-multi", "several memories are a proposal that is not supported")];

/// Why the whole file is left out.
pub fn left_out(name: &str) -> Option<&'static str> {
    FILES.iter().find(|(file, _)| *file == name).map(|(_, why)| *why)
}

/// Kinds of traps, in the words of epitaphs.
const TRAPS: [&str; 10] = [
    "unreachable",
    "out of bounds memory access",
    "out of bounds table access",
    "undefined element",
    "uninitialized element",
    "indirect call type mismatch",
    "integer overflow",
    "integer divide by zero",
    "invalid conversion to integer",
    "uncaught exception",
];

/// The kind of a trap that the suite expects in its own words, which may say more or less.
pub fn trap(words: &str) -> Option<&'static str> {
    TRAPS.into_iter().find(|kind| words.starts_with(kind) || kind.starts_with(words))
}
