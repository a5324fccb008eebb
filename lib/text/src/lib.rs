//! Formats numbers, times and tables for people, and JSON strings for tools; [`amount`] parses amounts.
//!
//! Deliberately not here: colours. Programs write plain text; the shell decides whether it goes to a terminal.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod amount;

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt::Write;

use abi::Printable;

/// Formats bytes with a binary unit: `512 B`, `1.5 KiB`, `64.0 MiB`.
pub fn bytes(count: u64) -> String {
    const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    if count < 1024 {
        return format!("{count} B");
    }
    // In tenths, without floating point.
    let mut tenths = u128::from(count) * 10 / 1024;
    let mut unit = 0;
    while tenths >= 10_240 && unit + 1 < UNITS.len() {
        tenths /= 1024;
        unit += 1;
    }
    format!("{}.{} {}", tenths / 10, tenths % 10, UNITS[unit])
}

/// Formats a count with thousands separators: `1,234,567`.
pub fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// Formats a duration in nanoseconds with a fitting unit: `850 ns`, `12.3 us`, `4.5 ms`, `3.2 s`, `2 min 05 s`, `3 h 12
/// min`.
pub fn duration(nanoseconds: u64) -> String {
    let tenths = |unit: u64| format!("{}.{}", nanoseconds / unit, nanoseconds % unit * 10 / unit);
    let seconds = nanoseconds / 1_000_000_000;
    match nanoseconds {
        0..1_000 => format!("{nanoseconds} ns"),
        1_000..1_000_000 => tenths(1_000) + " us",
        1_000_000..1_000_000_000 => tenths(1_000_000) + " ms",
        1_000_000_000..60_000_000_000 => tenths(1_000_000_000) + " s",
        60_000_000_000..3_600_000_000_000 => format!("{} min {:02} s", seconds / 60, seconds % 60),
        _ => format!("{} h {:02} min", seconds / 3600, seconds / 60 % 60),
    }
}

/// Date and time in UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// Year of the Gregorian calendar.
    pub year: i64,
    /// 1 to 12.
    pub month: u8,
    /// 1 to 31.
    pub day: u8,
    /// 0 to 6, from Sunday.
    pub weekday: u8,
    /// 0 to 23.
    pub hour: u8,
    /// 0 to 59.
    pub minute: u8,
    /// 0 to 59.
    pub second: u8,
}

impl Moment {
    /// Converts from seconds since 1970-01-01 00:00 UTC.
    pub fn from_unix(seconds: i64) -> Moment {
        let days = seconds.div_euclid(86_400);
        let second_of_day = seconds.rem_euclid(86_400);
        // Days are counted from 0000-03-01, so that the leap day is the last of its year.
        let shifted = days + 719_468;
        let era = shifted.div_euclid(146_097);
        let day_of_era = shifted.rem_euclid(146_097);
        let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
        let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let march_month = (5 * day_of_year + 2) / 153;
        let month = if march_month < 10 { march_month + 3 } else { march_month - 9 };
        Moment {
            year: year_of_era + era * 400 + i64::from(month <= 2),
            month: month as u8,
            day: (day_of_year - (153 * march_month + 2) / 5 + 1) as u8,
            weekday: (days + 4).rem_euclid(7) as u8,
            hour: (second_of_day / 3600) as u8,
            minute: (second_of_day / 60 % 60) as u8,
            second: (second_of_day % 60) as u8,
        }
    }
}

impl Moment {
    /// Converts to seconds since 1970-01-01 00:00 UTC, ignoring the weekday. `None` if the date or time is invalid, or
    /// the year is not from 0 to 9999.
    pub fn to_unix(&self) -> Option<i64> {
        let &Moment { year, month, day, hour, minute, second, .. } = self;
        let is_date = (0..10_000).contains(&year) && (1..=12).contains(&month);
        if !is_date || !(1..=days_in_month(year, month)).contains(&day) || hour > 23 || minute > 59 || second > 59 {
            return None;
        }
        // As in `from_unix`, years begin in March.
        let year = year - i64::from(month <= 2);
        let months = i64::from((month + 9) % 12);
        let day_of_year = (153 * months + 2) / 5 + i64::from(day) - 1;
        let leap_days = year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
        let days = 365 * year + leap_days + day_of_year - 719_468;
        Some(days * 86_400 + i64::from(hour) * 3600 + i64::from(minute) * 60 + i64::from(second))
    }

    /// Parses `2026-11-21 03:06:38`; the seconds, or the time, are optional.
    pub fn parse(text: &str) -> Option<Moment> {
        let (date, time) = text.trim().split_once([' ', 'T']).unwrap_or((text.trim(), "00:00"));
        let mut date = date.splitn(3, '-');
        let mut time = time.splitn(3, ':');
        let number = |text: Option<&str>| text.filter(|text| text.len() <= 4)?.parse::<u16>().ok();
        let year = number(date.next())?;
        let small = |text: Option<&str>| number(text).and_then(|number| u8::try_from(number).ok());
        let (month, day) = (small(date.next())?, small(date.next())?);
        let (hour, minute) = (small(time.next())?, small(time.next())?);
        let second = time.next().map_or(Some(0), |text| small(Some(text)))?;
        let moment = Moment { year: year.into(), month, day, weekday: 0, hour, minute, second };
        moment.to_unix().map(Moment::from_unix)
    }
}

/// Days of a month (1 to 12) of the Gregorian calendar.
fn days_in_month(year: i64, month: u8) -> u8 {
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    match month {
        2 => 28 + u8::from(is_leap),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

impl core::fmt::Display for Moment {
    fn fmt(&self, formatter: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let Moment { year, month, day, hour, minute, second, .. } = self;
        write!(formatter, "{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}")
    }
}

/// Returns the text before the first zero byte of a padded field; invalid UTF-8 is replaced.
pub fn padded(name: &[u8]) -> String {
    let end = name.iter().position(|&byte| byte == 0).unwrap_or(name.len());
    String::from_utf8_lossy(&name[..end]).into_owned()
}

/// Truncates text to a field, between characters, and pads it with zero bytes.
pub fn pad<const N: usize>(text: &str) -> [u8; N] {
    let mut end = text.len().min(N);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let mut bytes = [0; N];
    bytes[..end].copy_from_slice(&text.as_bytes()[..end]);
    bytes
}

/// Escapes control and invisible characters of a name, so that a file's name cannot send escape sequences to the
/// terminal.
pub fn printable(name: &[u8]) -> String {
    Printable(name).to_string()
}

/// Encodes text as a JSON string, with its quotes.
pub fn json_string(text: &str) -> String {
    let mut out = String::from("\"");
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            control if control < ' ' => {
                // Writing to a String cannot fail.
                let _ = write!(out, "\\u{:04x}", control as u32);
            }
            other => out.push(other),
        }
    }
    out.push('"');
    out
}

/// Alignment of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Align {
    /// For words.
    Left,
    /// For numbers.
    Right,
}

/// A table with headings, each column as wide as its widest cell.
pub struct Table {
    columns: Vec<(String, Align)>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// Creates a table with these headings.
    pub fn new(columns: &[(&str, Align)]) -> Table {
        let columns = columns.iter().map(|(name, align)| (String::from(*name), *align)).collect();
        Table { columns, rows: Vec::new() }
    }

    /// Adds a line. Missing cells stay empty.
    pub fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().collect());
    }

    /// Renders the lines without the headings.
    pub fn body(&self) -> String {
        let text = self.render();
        text.split_once('\n').map_or(String::new(), |(_, rest)| rest.into())
    }

    /// Renders the table, without trailing blanks in its lines.
    pub fn render(&self) -> String {
        let headings: Vec<String> = self.columns.iter().map(|(name, _)| name.clone()).collect();
        let lines = || core::iter::once(&headings).chain(&self.rows);
        let widths: Vec<usize> = (0..self.columns.len())
            .map(|column| {
                lines().filter_map(|line| line.get(column)).map(|cell| cell.chars().count()).max().unwrap_or(0)
            })
            .collect();
        let mut out = String::new();
        for line in lines() {
            let mut text = String::new();
            for ((cell, width), (_, align)) in line.iter().zip(&widths).zip(&self.columns) {
                if !text.is_empty() {
                    text.push_str("  ");
                }
                let blanks = " ".repeat(width - cell.chars().count().min(*width));
                match align {
                    Align::Left => text = text + cell + &blanks,
                    Align::Right => text = text + &blanks + cell,
                }
            }
            out.push_str(text.trim_end());
            out.push('\n');
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_have_units() {
        assert_eq!(bytes(0), "0 B");
        assert_eq!(bytes(1023), "1023 B");
        assert_eq!(bytes(1536), "1.5 KiB");
        assert_eq!(bytes(2 << 30), "2.0 GiB");
        assert_eq!(bytes(u64::MAX), "15.9 EiB");
    }

    #[test]
    fn counts_have_commas() {
        assert_eq!(count(7), "7");
        assert_eq!(count(1_000), "1,000");
        assert_eq!(count(1_234_567), "1,234,567");
    }

    #[test]
    fn durations_have_units() {
        assert_eq!(duration(850), "850 ns");
        assert_eq!(duration(12_340), "12.3 us");
        assert_eq!(duration(125_000_000_000), "2 min 05 s");
        assert_eq!(duration(3_600_000_000_000 * 3 + 720_000_000_000), "3 h 12 min");
    }

    #[test]
    fn moments_follow_the_calendar() {
        assert_eq!(Moment::from_unix(0).to_string(), "1970-01-01 00:00:00");
        assert_eq!(Moment::from_unix(951_782_400).to_string(), "2000-02-29 00:00:00");
        assert_eq!(Moment::from_unix(-1).to_string(), "1969-12-31 23:59:59");
        assert_eq!(Moment::from_unix(0).weekday, 4);
        assert_eq!(Moment::from_unix(1_795_230_398).to_string(), "2026-11-21 03:06:38");
        assert_eq!(Moment::from_unix(1_795_230_398).weekday, 6);
    }

    #[test]
    fn moments_are_read_as_they_are_shown() {
        for seconds in [0, 951_782_399, 951_782_400, 1_795_230_398, 4_102_444_799, 4_102_444_800, 4_107_542_400] {
            let moment = Moment::from_unix(seconds);
            assert_eq!(Moment::parse(&moment.to_string()), Some(moment));
            assert_eq!(moment.to_unix(), Some(seconds));
        }
        assert_eq!(Moment::parse("2026-11-21 03:06"), Moment::parse("2026-11-21T03:06:00"));
        assert_eq!(Moment::parse("2026-11-21"), Moment::parse("2026-11-21 00:00:00"));
        for wrong in
            ["", "2026", "2026-02-29", "2026-13-01", "2026-1-0", "2026-1-1 24:00", "2026-1-1 1:60", "a-b-c d:e"]
        {
            assert_eq!(Moment::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_table_lines_its_columns_up() {
        let mut table = Table::new(&[("NAME", Align::Left), ("SIZE", Align::Right)]);
        table.row(["a".into(), "1".into()]);
        table.row(["long name".into(), "1,000".into()]);
        assert_eq!(table.render(), "NAME        SIZE\na              1\nlong name  1,000\n");
    }

    #[test]
    fn a_padded_text_is_cut_between_characters() {
        assert_eq!(pad::<4>("ab"), *b"ab\0\0");
        assert_eq!(padded(&pad::<4>("abcdef")), "abcd");
        assert_eq!(padded(&pad::<4>("abc\u{e4}")), "abc");
    }

    #[test]
    fn json_is_escaped() {
        assert_eq!(json_string("a\"b\\c\n\u{1}"), "\"a\\\"b\\\\c\\n\\u0001\"");
    }

    #[test]
    fn names_cannot_give_orders_to_a_terminal() {
        assert_eq!(printable(b"a\x1b[31mb\n"), r"a\x1b[31mb\n");
    }
}
