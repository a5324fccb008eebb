//! Completion candidates, and the layout of a list of them.

use alloc::string::String;
use alloc::vec::Vec;

use crate::layout::text_width;

/// A completion candidate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// Replaces the part that was typed; quoted as the line needs it.
    pub text: String,
    /// Text in the list of candidates.
    pub label: String,
    /// Suffix for a sole candidate: a blank after a whole word, nothing after a folder.
    pub suffix: &'static str,
}

/// Returns the longest common prefix of all candidates.
pub fn common_prefix(candidates: &[Candidate]) -> &str {
    let Some((first, others)) = candidates.split_first() else { return "" };
    let mut length = first.text.len();
    for other in others {
        let same = first.text.char_indices().zip(other.text.chars()).find(|((_, a), b)| a != b);
        let common = same.map_or(other.text.len().min(first.text.len()), |((offset, _), _)| offset);
        length = length.min(common);
    }
    &first.text[..length]
}

/// Formats the labels in as many columns as fit, read downwards; rows have no line end.
pub fn rows(candidates: &[Candidate], columns: usize) -> Vec<String> {
    let widest = candidates.iter().map(|candidate| text_width(&candidate.label)).max().unwrap_or(0) + 2;
    let across = (columns.saturating_sub(1) / widest).max(1);
    let down = candidates.len().div_ceil(across);
    let mut rows = Vec::new();
    for row in 0..down {
        let mut text = String::new();
        for candidate in candidates.iter().skip(row).step_by(down) {
            while !text.is_empty() && !text_width(&text).is_multiple_of(widest) {
                text.push(' ');
            }
            text.push_str(&candidate.label);
            text.push_str("  ");
        }
        text.truncate(text.trim_end().len());
        rows.push(text);
    }
    rows
}
