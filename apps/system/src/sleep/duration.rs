//! Parses durations.

/// Returns the nanoseconds of `1.5`, `250ms`, `2s`, `3m`, `1h`; `None` if it is not a duration or longer than 584
/// years.
pub fn parse(text: &str) -> Option<u64> {
    const UNITS: [(&str, u64); 4] =
        [("ms", 1_000_000), ("s", 1_000_000_000), ("m", 60_000_000_000), ("h", 3_600_000_000_000)];
    let (number, unit) = UNITS
        .iter()
        .find_map(|(suffix, unit)| Some((text.strip_suffix(suffix)?, *unit)))
        .unwrap_or((text, 1_000_000_000));
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(whole) || !digits(fraction) || (whole.is_empty() && fraction.is_empty()) {
        return None;
    }
    let whole: u64 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    let mut nanoseconds = whole.checked_mul(unit)?;
    let mut share = unit;
    for digit in fraction.bytes() {
        share /= 10;
        nanoseconds = nanoseconds.checked_add(share * u64::from(digit - b'0'))?;
    }
    Some(nanoseconds)
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn durations_are_read() {
        assert_eq!(parse("2"), Some(2_000_000_000));
        assert_eq!(parse("1.5"), Some(1_500_000_000));
        assert_eq!(parse(".25s"), Some(250_000_000));
        assert_eq!(parse("20ms"), Some(20_000_000));
        assert_eq!(parse("1h"), Some(3_600_000_000_000));
    }

    #[test]
    fn what_is_no_duration_is_refused() {
        for text in ["", ".", "x", "-1", "1.x", "ms", "1e3", "99999999999999999999h", "1.2.3"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
