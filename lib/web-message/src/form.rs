//! Queries and forms (`application/x-www-form-urlencoded`).

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::{self, Write};

/// Maximum number of pairs.
pub const MAX_PAIRS: usize = 256;

/// Why a query or form is malformed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FormError {
    /// A `%` without two hexadecimal digits.
    BadPercent,
    /// A decoded name or value is not UTF-8.
    NotText,
    /// More than [`MAX_PAIRS`].
    TooManyPairs,
}

impl fmt::Display for FormError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            FormError::BadPercent => "a `%` is not followed by two hexadecimal digits",
            FormError::NotText => "a name or a value is no UTF-8",
            FormError::TooManyPairs => "there are too many pairs of name and value",
        })
    }
}

/// The decoded pairs of a query or form, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Form {
    pairs: Vec<(String, String)>,
}

impl Form {
    /// The first value of a name.
    pub fn value(&self, name: &str) -> Option<&str> {
        self.pairs.iter().find(|(found, _)| found == name).map(|(_, value)| value.as_str())
    }

    /// The first value of a name, as a number of at most `most`.
    pub fn number(&self, name: &str, most: u64) -> Result<Option<u64>, BadNumber> {
        let Some(value) = self.value(name) else { return Ok(None) };
        let is_digits = !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit());
        let number = value.parse().ok().filter(|number| is_digits && *number <= most);
        number.map(Some).ok_or(BadNumber { most })
    }

    /// All pairs.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.pairs.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// Number of pairs.
    pub fn len(&self) -> usize {
        self.pairs.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.pairs.is_empty()
    }
}

/// A value that is not a number in range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadNumber {
    /// The maximum.
    pub most: u64,
}

impl fmt::Display for BadNumber {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "it is no number from 0 to {}", self.most)
    }
}

/// Parses a query or a form. A name without `=` has an empty value; empty pairs are skipped.
pub fn pairs(bytes: &[u8]) -> Result<Form, FormError> {
    let mut pairs = Vec::new();
    for pair in bytes.split(|byte| *byte == b'&').filter(|pair| !pair.is_empty()) {
        if pairs.len() == MAX_PAIRS {
            return Err(FormError::TooManyPairs);
        }
        let middle = pair.iter().position(|byte| *byte == b'=').unwrap_or(pair.len());
        let value = pair.get(middle + 1..).unwrap_or(&[]);
        pairs.push((decode(&pair[..middle])?, decode(value)?));
    }
    Ok(Form { pairs })
}

fn decode(bytes: &[u8]) -> Result<String, FormError> {
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut rest = bytes.iter();
    while let Some(byte) = rest.next() {
        decoded.push(match byte {
            b'+' => b' ',
            b'%' => {
                let mut digit = || rest.next().and_then(|digit| char::from(*digit).to_digit(16));
                let (high, low) = (digit().ok_or(FormError::BadPercent)?, digit().ok_or(FormError::BadPercent)?);
                (high << 4 | low) as u8
            }
            other => *other,
        });
    }
    String::from_utf8(decoded).map_err(|_| FormError::NotText)
}

/// Percent-encodes a name or value for a query.
pub fn encode(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            // Writing to a string cannot fail.
            let _ = write!(encoded, "%{byte:02X}");
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Vec<(String, String)> {
        pairs(text.as_bytes()).expect("pairs").pairs
    }

    fn expected(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        pairs.iter().map(|(name, value)| (String::from(*name), String::from(*value))).collect()
    }

    #[test]
    fn pairs_are_decoded() {
        assert_eq!(read("a=1&b=two+words&c=%C3%A4%26"), expected(&[("a", "1"), ("b", "two words"), ("c", "\u{e4}&")]));
        assert_eq!(read("a&b=&=c&&d=x=y"), expected(&[("a", ""), ("b", ""), ("", "c"), ("d", "x=y")]));
        assert_eq!(read(""), expected(&[]));
    }

    #[test]
    fn nonsense_is_refused() {
        for (text, error) in [
            ("a=%", FormError::BadPercent),
            ("a=%4", FormError::BadPercent),
            ("%zz=1", FormError::BadPercent),
            ("a=%+1", FormError::BadPercent),
            ("a=%ff", FormError::NotText),
        ] {
            assert_eq!(pairs(text.as_bytes()), Err(error), "{text}");
        }
        assert_eq!(pairs("a&".repeat(MAX_PAIRS + 1).as_bytes()), Err(FormError::TooManyPairs));
        assert_eq!(pairs("a&".repeat(MAX_PAIRS).as_bytes()).expect("pairs").len(), MAX_PAIRS);
    }

    #[test]
    fn numbers_are_digits_within_their_bound() {
        let form = pairs(b"a=7&b=+7&c=&d=11&e=x&f=99999999999999999999").expect("pairs");
        assert_eq!(form.number("a", 10), Ok(Some(7)));
        assert_eq!(form.number("z", 10), Ok(None));
        for name in ["b", "c", "d", "e", "f"] {
            assert_eq!(form.number(name, 10), Err(BadNumber { most: 10 }), "{name}");
        }
    }

    #[test]
    fn what_is_encoded_is_decoded_to_the_same() {
        let text = "a b&c=d+\u{e4}%/?\n\u{1F600}~";
        let form = pairs(std::format!("x={}", encode(text)).as_bytes()).expect("pairs");
        assert_eq!(form.value("x"), Some(text));
    }
}
