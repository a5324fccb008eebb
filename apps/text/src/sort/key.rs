//! POSIX sort keys and their comparison.

use alloc::format;
use alloc::string::String;
use core::cmp::Ordering;

/// Comparison options of a key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Compares the leading numbers.
    pub numeric: bool,
    /// Reverses the order.
    pub reverse: bool,
    /// Ignores case.
    pub fold: bool,
    /// Ignores leading blanks.
    pub blanks: bool,
}

/// A field and a character in it, both counted from 1; character 0 is the end of the field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Position {
    field: usize,
    character: usize,
    skips_blanks: bool,
}

/// A sort key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key {
    from: Position,
    to: Option<Position>,
    options: Options,
}

impl Key {
    /// The whole line.
    pub fn line(options: Options) -> Key {
        let from = Position { field: 1, character: 1, skips_blanks: options.blanks };
        Key { from, to: None, options }
    }

    /// Parses a key: `2`, `2,2`, `3.2nr,4`. A key without options uses `inherited`. An error is a sentence.
    pub fn parse(text: &str, inherited: Options) -> Result<Key, String> {
        let problem = || format!("invalid key `{text}`; write it like 2, 2,2 or 3.1nr,4, from 1 on, with n, r, f or b");
        let (from, to) = match text.split_once(',') {
            Some((from, to)) => (from, Some(to)),
            None => (text, None),
        };
        let (mut from, from_options) = parse_position(from, 1).ok_or_else(problem)?;
        let to = to.map(|to| parse_position(to, 0).ok_or_else(problem)).transpose()?;
        if from.character == 0 {
            return Err(problem());
        }
        let to_options = to.map_or(Options::default(), |(_, options)| options);
        let has_own = from_options != Options::default() || to_options != Options::default();
        let options = if has_own {
            Options {
                numeric: from_options.numeric || to_options.numeric,
                reverse: from_options.reverse || to_options.reverse,
                fold: from_options.fold || to_options.fold,
                blanks: from_options.blanks,
            }
        } else {
            inherited
        };
        from.skips_blanks = options.blanks;
        let to = to.map(|(to, own)| Position { skips_blanks: own.blanks || (!has_own && inherited.blanks), ..to });
        Ok(Key { from, to, options })
    }

    /// Compares two lines by this key.
    pub fn compare(&self, left: &[u8], right: &[u8], separator: Option<u8>) -> Ordering {
        let (left, right) = (self.part(left, separator), self.part(right, separator));
        let ordering = if self.options.numeric {
            compare_numbers(left, right)
        } else if self.options.fold {
            let upper = |part: &'_ [u8]| part.to_ascii_uppercase();
            upper(left).cmp(&upper(right))
        } else {
            left.cmp(right)
        };
        if self.options.reverse { ordering.reverse() } else { ordering }
    }

    fn part<'l>(&self, line: &'l [u8], separator: Option<u8>) -> &'l [u8] {
        let start = place(line, self.from.field - 1, self.from.skips_blanks, self.from.character - 1, separator);
        let end = match self.to {
            None => line.len(),
            Some(Position { field, character: 0, .. }) => field_end(line, field, separator),
            Some(to) => place(line, to.field - 1, to.skips_blanks, to.character, separator),
        };
        line.get(start..end).unwrap_or_default()
    }
}

/// Parses a position and the options after it.
fn parse_position(text: &str, character: usize) -> Option<(Position, Options)> {
    let letters = text.find(|character: char| character.is_ascii_alphabetic()).unwrap_or(text.len());
    let (numbers, letters) = text.split_at(letters);
    let (field, character) = match numbers.split_once('.') {
        Some((field, character)) => (field.parse().ok()?, character.parse().ok()?),
        None => (numbers.parse().ok()?, character),
    };
    let mut options = Options::default();
    for letter in letters.chars() {
        match letter {
            'n' => options.numeric = true,
            'r' => options.reverse = true,
            'f' => options.fold = true,
            'b' => options.blanks = true,
            _ => return None,
        }
    }
    let position = Position { field, character, skips_blanks: options.blanks };
    (field > 0).then_some((position, options))
}

fn is_blank(byte: &u8) -> bool {
    matches!(byte, b' ' | b'\t')
}

/// Returns where this many fields end and the next one begins: before the separator, or before the blanks that belong
/// to the next field.
fn skip_fields(line: &[u8], fields: usize, separator: Option<u8>) -> usize {
    let mut at = 0;
    for _ in 0..fields {
        let rest = &line[at..];
        at += match separator {
            Some(separator) => rest.iter().position(|byte| *byte == separator).map_or(rest.len(), |offset| offset + 1),
            None => {
                let start = rest.iter().position(|byte| !is_blank(byte)).unwrap_or(rest.len());
                rest[start..].iter().position(is_blank).map_or(rest.len(), |offset| start + offset)
            }
        };
    }
    at
}

fn place(line: &[u8], fields: usize, skips_blanks: bool, characters: usize, separator: Option<u8>) -> usize {
    let start = skip_fields(line, fields, separator);
    let blanks = if skips_blanks { line[start..].iter().take_while(|byte| is_blank(byte)).count() } else { 0 };
    (start + blanks).saturating_add(characters).min(line.len())
}

fn field_end(line: &[u8], field: usize, separator: Option<u8>) -> usize {
    let Some(separator) = separator else { return skip_fields(line, field, None) };
    let start = skip_fields(line, field - 1, Some(separator));
    line[start..].iter().position(|byte| *byte == separator).map_or(line.len(), |offset| start + offset)
}

/// Splits the leading number of a text into its sign, integer digits without leading zeros, and fraction digits
/// without trailing zeros. No precision is lost, whatever its length.
fn number(text: &[u8]) -> (bool, &[u8], &[u8]) {
    let text = &text[text.iter().take_while(|byte| is_blank(byte)).count()..];
    let (is_negative, digits) = match text.split_first() {
        Some((b'-', digits)) => (true, digits),
        _ => (false, text),
    };
    let whole = digits.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (whole, rest) = digits.split_at(whole);
    let fraction = rest.strip_prefix(b".").unwrap_or_default();
    let fraction = &fraction[..fraction.iter().take_while(|byte| byte.is_ascii_digit()).count()];
    let whole = &whole[whole.iter().take_while(|byte| **byte == b'0').count()..];
    let zeros = fraction.iter().rev().take_while(|byte| **byte == b'0').count();
    let fraction = &fraction[..fraction.len() - zeros];
    let is_zero = whole.is_empty() && fraction.is_empty();
    (is_negative && !is_zero, whole, fraction)
}

fn compare_numbers(left: &[u8], right: &[u8]) -> Ordering {
    let (left, right) = (number(left), number(right));
    let by_size =
        || left.1.len().cmp(&right.1.len()).then_with(|| left.1.cmp(right.1)).then_with(|| left.2.cmp(right.2));
    match (left.0, right.0) {
        (false, true) => Ordering::Greater,
        (true, false) => Ordering::Less,
        (false, false) => by_size(),
        (true, true) => by_size().reverse(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compare(key: &str, separator: Option<u8>, left: &str, right: &str) -> Ordering {
        let key = Key::parse(key, Options::default()).unwrap_or_else(|error| panic!("{error}"));
        key.compare(left.as_bytes(), right.as_bytes(), separator)
    }

    #[test]
    fn numbers_compare_as_numbers() {
        for (left, right, expected) in [
            ("9", "10", Ordering::Less),
            ("-9", "-10", Ordering::Greater),
            ("  007", "7", Ordering::Equal),
            ("1.5", "1.45", Ordering::Greater),
            ("x", "0", Ordering::Equal),
            ("-0", "0", Ordering::Equal),
            ("123456789012345678901234567890", "123456789012345678901234567891", Ordering::Less),
        ] {
            assert_eq!(compare_numbers(left.as_bytes(), right.as_bytes()), expected, "{left} {right}");
        }
    }

    #[test]
    fn keys_are_parts_of_lines() {
        let part = |key: &str, separator, line: &'static str| {
            let key = Key::parse(key, Options::default()).unwrap_or_else(|error| panic!("{error}"));
            core::str::from_utf8(key.part(line.as_bytes(), separator)).unwrap_or("not UTF-8")
        };
        assert_eq!(part("2", None, "a  b c"), "  b c");
        assert_eq!(part("2b,2", None, "a  b c"), "b");
        assert_eq!(part("2,2", Some(b':'), "a:b:c"), "b");
        assert_eq!(part("3", Some(b':'), "a:b"), "");
        assert_eq!(part("1.2,1.3", None, "abcd"), "bc");
        assert_eq!(part("2.2,3.1", Some(b':'), "a:bc:de"), "c:d");
        assert_eq!(part("2,1", Some(b':'), "a:b"), "");
    }

    #[test]
    fn options_of_a_key_count_alone() {
        assert_eq!(compare("2nr", None, "a 9", "b 10"), Ordering::Greater);
        assert_eq!(compare("1f", None, "B", "a"), Ordering::Greater);
        let reverse = Options { reverse: true, ..Options::default() };
        assert_eq!(Key::parse("2", reverse).map(|key| key.options), Ok(reverse));
        let numeric = Options { numeric: true, ..Options::default() };
        assert_eq!(Key::parse("2n", reverse).map(|key| key.options), Ok(numeric));
        for text in ["", "0", "1.0", "x", "1x", "1,", "1,0", ",2"] {
            assert!(Key::parse(text, reverse).is_err_and(|error| error.contains("invalid key")), "{text}");
        }
    }
}
