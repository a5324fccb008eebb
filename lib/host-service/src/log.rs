//! Log lines with time and author.
//!
//! The input is lines as the kernel writes them: `author: text` with control characters escaped, or text of the kernel
//! itself. Deliberately not here: the destination.

use std::fmt::Write as _;
use std::io;
use std::time::{SystemTime, UNIX_EPOCH};

/// Author of a line that names none.
const KERNEL: &str = "kernel";
/// Maximum line length in bytes; longer lines are split.
const LINE_BYTES_MAX: usize = 64 * 1024;

/// Log format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Time, author, a colon and the text.
    Text,
    /// A JSON object with the strings `time`, `program` and `text`.
    Json,
}

/// Formats whole lines, with the time in milliseconds since 1970 and their authors.
pub fn stamp(lines: &[u8], format: Format, unix_ms: u64) -> String {
    let time = time_text(unix_ms);
    let mut stamped = String::with_capacity(lines.len() + 64);
    for line in lines.strip_suffix(b"\n").unwrap_or(lines).split(|&byte| byte == b'\n') {
        let line = String::from_utf8_lossy(line);
        let (program, text) = author_and_text(&line);
        // Writing to a String cannot fail.
        let _ = match format {
            Format::Text => writeln!(stamped, "{time} {program}: {text}"),
            Format::Json => writeln!(
                stamped,
                "{{\"time\":\"{time}\",\"program\":\"{}\",\"text\":\"{}\"}}",
                Escaped(program),
                Escaped(text)
            ),
        };
    }
    stamped
}

/// Current time in milliseconds since 1970, by the host's clock.
pub fn unix_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// A program's name contains no blank or colon.
fn author_and_text(line: &str) -> (&str, &str) {
    match line.split_once(": ") {
        Some((author, text)) if !author.is_empty() && !author.contains([' ', ':']) => (author, text),
        _ => (KERNEL, line),
    }
}

/// Formats a time as in RFC 3339.
fn time_text(unix_ms: u64) -> String {
    let (seconds, milliseconds) = (unix_ms / 1000, unix_ms % 1000);
    let (year, month, day) = date(seconds / 86_400);
    let (hour, minute, second) = (seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{milliseconds:03}Z")
}

/// Converts days since 1970 to year, month and day. Years are counted from March, so that a leap day is the last.
fn date(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let (year, month) = if month < 10 { (0, month + 3) } else { (1, month - 9) };
    (era * 400 + year_of_era + year, month, day)
}

/// Escapes text for a JSON string (RFC 8259, section 7).
struct Escaped<'a>(&'a str);

impl std::fmt::Display for Escaped<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for letter in self.0.chars() {
            match letter {
                '"' => formatter.write_str("\\\"")?,
                '\\' => formatter.write_str("\\\\")?,
                '\0'..='\u{1f}' | '\u{7f}' => write!(formatter, "\\u{:04x}", u32::from(letter))?,
                _ => formatter.write_char(letter)?,
            }
        }
        Ok(())
    }
}

/// Adds time and author to the lines of a stream, each when it is complete.
#[derive(Debug)]
pub struct Stamper<W> {
    to: W,
    format: Format,
    line: Vec<u8>,
}

impl<W: io::Write> Stamper<W> {
    /// Creates a writer that forwards to `to`.
    pub fn new(to: W, format: Format) -> Stamper<W> {
        Stamper { to, format, line: Vec::new() }
    }
}

impl<W: io::Write> io::Write for Stamper<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        for part in bytes.split_inclusive(|&byte| byte == b'\n') {
            self.line.extend_from_slice(part);
            if part.ends_with(b"\n") || self.line.len() > LINE_BYTES_MAX {
                let stamped = stamp(&self.line, self.format, unix_ms());
                self.line.clear();
                self.to.write_all(stamped.as_bytes())?;
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    const TIME_MS: u64 = 1_709_210_096_007;

    #[test]
    fn each_line_has_time_and_author() {
        let stamped = stamp(b"web-server: a: b\nthe root exited: 1\n", Format::Text, TIME_MS);
        let expected =
            "2024-02-29T12:34:56.007Z web-server: a: b\n2024-02-29T12:34:56.007Z kernel: the root exited: 1\n";
        assert_eq!(stamped, expected);
        assert_eq!(stamp(b"\n", Format::Text, TIME_MS), "2024-02-29T12:34:56.007Z kernel: \n");
    }

    #[test]
    fn what_programs_say_cannot_break_out_of_an_object() {
        let stamped = stamp(b"evil: \",\"program\":\"kernel\\\x01\xff\n", Format::Json, TIME_MS);
        let expected = "{\"time\":\"2024-02-29T12:34:56.007Z\",\"program\":\"evil\",\"text\":\
                        \"\\\",\\\"program\\\":\\\"kernel\\\\\\u0001\u{fffd}\"}\n";
        assert_eq!(stamped, expected);
    }

    #[test]
    fn dates_are_those_of_the_calendar() {
        for (days, expected) in [
            (0, (1970, 1, 1)),
            (59, (1970, 3, 1)),
            (11_016, (2000, 2, 29)),
            (11_017, (2000, 3, 1)),
            (20_819, (2027, 1, 1)),
            (47_540, (2100, 2, 28)),
            (47_541, (2100, 3, 1)),
        ] {
            assert_eq!(date(days), expected, "{days}");
        }
    }

    #[test]
    fn a_line_is_stamped_once_however_it_comes() {
        let mut out = Vec::new();
        let mut stamper = Stamper::new(&mut out, Format::Text);
        for part in [&b"a: on"[..], b"e\nb: t", b"wo\n", b"half"] {
            stamper.write_all(part).expect("memory takes it");
        }
        let text = String::from_utf8(out).expect("text");
        let lines: Vec<&str> = text.lines().map(|line| line.split_once(' ').expect("a time").1).collect();
        assert_eq!(lines, ["a: one", "b: two"]);
    }
}
