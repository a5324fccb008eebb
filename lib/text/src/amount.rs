//! Parses amounts of bytes and lines.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

/// An amount of a file's start or end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Lines.
    Lines(u64),
    /// Bytes.
    Bytes(u64),
}

impl Part {
    /// Parses the amount of bytes if there is one, else takes the lines.
    ///
    /// # Errors
    /// A sentence for the user.
    pub fn new(lines: i64, bytes: Option<&str>) -> Result<Part, String> {
        let Some(bytes) = bytes else {
            let lines =
                u64::try_from(lines).map_err(|_| format!("`{lines}` is not a number of lines; write 0 or more"))?;
            return Ok(Part::Lines(lines));
        };
        parse_bytes(bytes).map(Part::Bytes).ok_or_else(|| not_an_amount(bytes))
    }
}

/// Removes a first operand of the form `-5` from the paths: the lines of `head -5` and `tail -5`.
pub fn take_lines(paths: &mut Vec<String>) -> Option<i64> {
    let digits = paths.first()?.strip_prefix('-')?;
    let lines = digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok()).flatten()?;
    paths.remove(0);
    Some(lines)
}

/// Error message for text that [`parse_bytes`] rejects.
pub fn not_an_amount(text: &str) -> String {
    format!("`{text}` is no amount of bytes; write it like 512, 64k or 1.5M")
}

/// Parses `512`, `64k`, `64K`, `64KiB`, `1.5M`, `2GiB`, `1T`: units are powers of 1024. `None` if it is no amount.
pub fn parse_bytes(text: &str) -> Option<u64> {
    const UNITS: [(&str, u32); 5] = [("k", 10), ("m", 20), ("g", 30), ("t", 40), ("", 0)];
    let lower = text.trim().to_ascii_lowercase();
    let without_bytes = lower.strip_suffix("ib").or_else(|| lower.strip_suffix('b')).unwrap_or(&lower).trim_end();
    let (number, shift) = UNITS.iter().find_map(|(unit, shift)| Some((without_bytes.strip_suffix(unit)?, *shift)))?;
    let (whole, fraction) = match number.trim_end().split_once('.') {
        Some((whole, fraction)) if shift > 0 && !fraction.is_empty() => (whole, fraction),
        Some(_) => return None,
        None => (number.trim_end(), ""),
    };
    let is_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || fraction.len() > 6 || !is_digits(whole) || !is_digits(fraction) {
        return None;
    }
    let mut bytes = u128::from(whole.parse::<u64>().ok()?) << shift;
    if !fraction.is_empty() {
        bytes += (u128::from(fraction.parse::<u64>().ok()?) << shift) / 10_u128.pow(fraction.len() as u32);
    }
    u64::try_from(bytes).ok()
}

#[cfg(test)]
mod tests {
    use alloc::string::String;
    use alloc::vec::Vec;

    use super::{parse_bytes, take_lines};

    #[test]
    fn lines_may_be_the_first_operand() {
        let taken = |words: &[&str]| {
            let mut paths: Vec<String> = words.iter().copied().map(String::from).collect();
            (take_lines(&mut paths), paths.len())
        };
        assert_eq!(taken(&["-5", "a"]), (Some(5), 1));
        assert_eq!(taken(&["-12"]), (Some(12), 0));
        for paths in [&["a", "-5"][..], &["-"], &["-5k"], &["5"], &["--5"], &["-99999999999999999999"]] {
            assert_eq!(taken(paths), (None, paths.len()), "{paths:?}");
        }
        assert_eq!(taken(&[]), (None, 0));
    }

    #[test]
    fn amounts_are_read() {
        for (text, bytes) in [
            ("0", 0),
            ("512", 512),
            ("512b", 512),
            ("4k", 4096),
            ("4K", 4096),
            ("64 KiB", 65536),
            ("1.5m", 3 << 19),
            ("2GiB", 2 << 30),
            ("1TB", 1 << 40),
        ] {
            assert_eq!(parse_bytes(text), Some(bytes), "{text}");
        }
    }

    #[test]
    fn what_is_no_amount_is_refused() {
        for text in ["", "k", "-1", "1.5", "1.k", ".5k", "1x", "1e3", "0x10", "99999999999999999999", "99999999999T"] {
            assert_eq!(parse_bytes(text), None, "{text}");
        }
    }
}
