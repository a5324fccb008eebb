//! Decimal fixed-point numbers that keep their number of digits, and sequences of them.

use alloc::format;
use alloc::string::{String, ToString};

/// Maximum digits after the decimal point.
const MAX_DIGITS: usize = 9;

/// A decimal number: `units` times 10 to the power of minus `digits`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decimal {
    units: i128,
    digits: usize,
}

impl Decimal {
    /// The number 1.
    pub const ONE: Decimal = Decimal { units: 1, digits: 0 };

    /// Parses `7`, `-2`, `0.25`.
    pub fn parse(text: &str) -> Option<Decimal> {
        let (sign, digits) = match text.strip_prefix('-') {
            Some(digits) => (-1, digits),
            None => (1, text.strip_prefix('+').unwrap_or(text)),
        };
        let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
        let is_number = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
        if (whole.is_empty() && fraction.is_empty()) || !is_number(whole) || !is_number(fraction) {
            return None;
        }
        if whole.len() > 18 || fraction.len() > MAX_DIGITS {
            return None;
        }
        let units: i128 = format!("0{whole}{fraction}").parse().ok()?;
        Some(Decimal { units: sign * units, digits: fraction.len() })
    }

    fn scaled(self, digits: usize) -> i128 {
        self.units * 10_i128.pow((digits - self.digits) as u32)
    }
}

/// An arithmetic sequence.
pub struct Sequence {
    next: i128,
    step: i128,
    last: i128,
    digits: usize,
    width: usize,
}

/// Width of the numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Width {
    /// Minimal width.
    Own,
    /// Equal width, padded with zeros.
    Equal,
}

impl Sequence {
    /// Creates the sequence from `first` to `last`. `None` if the step is zero.
    pub fn new(first: Decimal, step: Decimal, last: Decimal, width: Width) -> Option<Sequence> {
        let digits = first.digits.max(step.digits);
        let common = digits.max(last.digits);
        if step.units == 0 {
            return None;
        }
        // In the units of the printed numbers; a finer end lies between two of them.
        let unit = 10_i128.pow((common - digits) as u32);
        let last = last.scaled(common).div_euclid(unit)
            + i128::from(step.units < 0 && last.scaled(common).rem_euclid(unit) != 0);
        let mut sequence = Sequence { next: first.scaled(digits), step: step.scaled(digits), last, digits, width: 0 };
        if width == Width::Equal {
            let steps = (sequence.last - sequence.next).div_euclid(sequence.step).max(0);
            let ends = [sequence.next, sequence.next + steps * sequence.step];
            sequence.width = ends.map(|number| sequence.text(number).len()).into_iter().max().unwrap_or(0);
        }
        Some(sequence)
    }

    fn text(&self, number: i128) -> String {
        let sign = if number < 0 { "-" } else { "" };
        let absolute = number.unsigned_abs();
        let unit = 10_u128.pow(self.digits as u32);
        let whole = (absolute / unit).to_string();
        let fraction = match self.digits {
            0 => String::new(),
            digits => format!(".{:0digits$}", absolute % unit),
        };
        let zeros = self.width.saturating_sub(sign.len() + whole.len() + fraction.len());
        format!("{sign}{}{whole}{fraction}", "0".repeat(zeros))
    }
}

impl Iterator for Sequence {
    type Item = String;

    fn next(&mut self) -> Option<String> {
        let is_over = if self.step > 0 { self.next > self.last } else { self.next < self.last };
        if is_over {
            return None;
        }
        let text = self.text(self.next);
        self.next += self.step;
        Some(text)
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    fn sequence(words: [&str; 3], width: Width) -> Vec<String> {
        let [first, step, last] = words.map(|word| Decimal::parse(word).unwrap_or_else(|| panic!("{word}")));
        Sequence::new(first, step, last, width).map(Iterator::collect).unwrap_or_default()
    }

    #[test]
    fn numbers_go_up_and_down() {
        assert_eq!(sequence(["1", "1", "3"], Width::Own), ["1", "2", "3"]);
        assert_eq!(sequence(["3", "-2", "-2"], Width::Own), ["3", "1", "-1"]);
        assert_eq!(sequence(["0", "0.25", "1"], Width::Own), ["0.00", "0.25", "0.50", "0.75", "1.00"]);
        assert_eq!(sequence(["1", "1", "2.5"], Width::Own), ["1", "2"]);
        assert_eq!(sequence(["1", "-1", "-0.5"], Width::Own), ["1", "0"]);
        assert!(sequence(["2", "1", "1"], Width::Own).is_empty());
        assert!(sequence(["1", "0", "2"], Width::Own).is_empty());
    }

    #[test]
    fn widths_are_those_of_the_widest() {
        assert_eq!(sequence(["8", "1", "10"], Width::Equal), ["08", "09", "10"]);
        assert_eq!(sequence(["-1", "1", "1"], Width::Equal), ["-1", "00", "01"]);
        assert_eq!(sequence(["1", "5", "10"], Width::Equal), ["1", "6"]);
    }

    #[test]
    fn what_is_no_number_is_refused() {
        for text in ["", "-", ".", "1e3", "0x1", "1.2.3", "--1", "1234567890123456789", "1.0123456789"] {
            assert_eq!(Decimal::parse(text), None, "{text}");
        }
        assert_eq!(Decimal::parse(".5"), Some(Decimal { units: 5, digits: 1 }));
    }
}
