//! The compared part of lines.

/// Case sensitivity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Case {
    /// Case-sensitive.
    Distinct,
    /// Case-insensitive.
    Folded,
}

/// Returns the line after this many fields, each of them blanks and the non-blanks that follow.
pub fn key_of(line: &[u8], fields: usize) -> &[u8] {
    let is_blank = |byte: &u8| matches!(byte, b' ' | b'\t');
    let mut rest = line;
    for _ in 0..fields {
        let start = rest.iter().position(|byte| !is_blank(byte)).unwrap_or(rest.len());
        let end = rest[start..].iter().position(is_blank).map_or(rest.len(), |offset| start + offset);
        rest = &rest[end..];
    }
    rest
}

/// Whether two keys are equal.
pub fn is_same(left: &[u8], right: &[u8], case: Case) -> bool {
    match case {
        Case::Distinct => left == right,
        Case::Folded => left.eq_ignore_ascii_case(right),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_skipped_with_their_blanks() {
        assert_eq!(key_of(b"  a b c", 1), b" b c");
        assert_eq!(key_of(b"a\tb", 2), b"");
        assert_eq!(key_of(b"a", 0), b"a");
        assert!(is_same(b"aB", b"Ab", Case::Folded) && !is_same(b"aB", b"Ab", Case::Distinct));
    }
}
