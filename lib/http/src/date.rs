//! Date formats of header fields (RFC 9110, section 5.6.7) and of access logs.

const DAYS: [&str; 7] = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"];
const LONG_DAYS: [&str; 7] = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];
const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
const SECONDS_OF_DAY: i64 = 86_400;
/// 9999-12-31 23:59:59, the last second with four digits for the year.
const LAST_SECOND: i64 = 253_402_300_799;

/// Length of a date in a header field, in bytes.
pub const HEADER_BYTES: usize = 29;
/// Length of a date in an access log, in bytes.
pub const LOG_BYTES: usize = 26;

struct Fields {
    year: u32,
    /// 0 to 11.
    month: usize,
    day: u32,
    /// 0 is Sunday.
    weekday: usize,
    second_of_day: u32,
}

/// Converts seconds since 1970-01-01 00:00 UTC to a calendar date, clamped to that moment and the year 9999.
fn fields(second: i64) -> Fields {
    let second = second.clamp(0, LAST_SECOND);
    let days = second / SECONDS_OF_DAY;
    // Counting years from March puts the leap day at their end; 400 years have 146,097 days. Day 0 is 0000-03-01.
    let shifted = days + 719_468;
    let era = shifted / 146_097;
    let day_of_era = shifted % 146_097;
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let march_month = (5 * day_of_year + 2) / 153;
    let month = (march_month + 2) % 12;
    Fields {
        year: (era * 400 + year_of_era + i64::from(month < 2)) as u32,
        month: month as usize,
        day: (day_of_year - (153 * march_month + 2) / 5 + 1) as u32,
        weekday: ((days + 4) % 7) as usize,
        second_of_day: (second % SECONDS_OF_DAY) as u32,
    }
}

/// Returns the days from 1970-01-01 to a date; `None` if it does not exist.
fn days_to(year: i64, month: usize, day: i64) -> Option<i64> {
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days_of_month = match month {
        1 => 28 + i64::from(is_leap),
        3 | 5 | 8 | 10 => 30,
        _ => 31,
    };
    if day < 1 || day > days_of_month {
        return None;
    }
    let march_year = year - i64::from(month < 2);
    let march_month = (month as i64 + 10) % 12;
    let day_of_year = (153 * march_month + 2) / 5 + day - 1;
    let era = march_year.div_euclid(400);
    let year_of_era = march_year.rem_euclid(400);
    Some(era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468)
}

/// Formats a date for a header field: `Sun, 06 Nov 1994 08:49:37 GMT`.
pub fn header(second: i64) -> [u8; HEADER_BYTES] {
    let fields = fields(second);
    let mut text = *b"Sun, 06 Nov 1994 08:49:37 GMT";
    text[..3].copy_from_slice(DAYS[fields.weekday].as_bytes());
    digits(&mut text[5..7], fields.day);
    text[8..11].copy_from_slice(MONTHS[fields.month].as_bytes());
    digits(&mut text[12..16], fields.year);
    clock(&mut text[17..25], fields.second_of_day);
    text
}

/// Formats a date for an access log: `06/Nov/1994:08:49:37 +0000`.
pub fn log(second: i64) -> [u8; LOG_BYTES] {
    let fields = fields(second);
    let mut text = *b"06/Nov/1994:08:49:37 +0000";
    digits(&mut text[..2], fields.day);
    text[3..6].copy_from_slice(MONTHS[fields.month].as_bytes());
    digits(&mut text[7..11], fields.year);
    clock(&mut text[12..20], fields.second_of_day);
    text
}

/// Formats a date for a listing: `1994-11-06 08:49`.
pub fn listing(second: i64) -> [u8; 16] {
    let fields = fields(second);
    let mut text = *b"1994-11-06 08:49";
    digits(&mut text[..4], fields.year);
    digits(&mut text[5..7], fields.month as u32 + 1);
    digits(&mut text[8..10], fields.day);
    digits(&mut text[11..13], fields.second_of_day / 3600);
    digits(&mut text[14..16], fields.second_of_day / 60 % 60);
    text
}

fn clock(text: &mut [u8], second_of_day: u32) {
    digits(&mut text[..2], second_of_day / 3600);
    digits(&mut text[3..5], second_of_day / 60 % 60);
    digits(&mut text[6..8], second_of_day % 60);
}

fn digits(text: &mut [u8], mut number: u32) {
    for digit in text.iter_mut().rev() {
        *digit = b'0' + (number % 10) as u8;
        number /= 10;
    }
}

/// Parses a date in a header field, in any of the three formats, to seconds since 1970-01-01 00:00 UTC. `now`
/// determines the century of a two-digit year.
pub fn parse(text: &str, now: i64) -> Option<i64> {
    let (first, rest) = text.split_once(' ')?;
    match first.strip_suffix(',') {
        Some(day) if DAYS.contains(&day) => parse_fixed(rest),
        Some(day) if LONG_DAYS.contains(&day) => parse_rfc850(rest, now),
        None if DAYS.contains(&first) => parse_asctime(rest),
        _ => None,
    }
}

/// `06 Nov 1994 08:49:37 GMT`
fn parse_fixed(text: &str) -> Option<i64> {
    let text = text.strip_suffix(" GMT")?;
    let (day, month, year, time) = (text.get(..2)?, text.get(2..7)?, text.get(7..11)?, text.get(11..)?);
    let month = month.strip_prefix(' ')?.strip_suffix(' ')?;
    moment(number(year)?, month, number(day)?, time.strip_prefix(' ')?)
}

/// `06-Nov-94 08:49:37 GMT`
fn parse_rfc850(text: &str, now: i64) -> Option<i64> {
    let text = text.strip_suffix(" GMT")?;
    let (day, month, year, time) = (text.get(..2)?, text.get(2..7)?, text.get(7..9)?, text.get(9..)?);
    let month = month.strip_prefix('-')?.strip_suffix('-')?;
    let this_year = i64::from(fields(now).year);
    let year = this_year - this_year % 100 + number(year)?;
    // More than fifty years ahead means the previous century.
    let year = if year > this_year + 50 { year - 100 } else { year };
    moment(year, month, number(day)?, time.strip_prefix(' ')?)
}

/// `Nov  6 08:49:37 1994`
fn parse_asctime(text: &str) -> Option<i64> {
    let (month, day, time, year) = (text.get(..3)?, text.get(4..6)?, text.get(7..15)?, text.get(16..)?);
    if year.len() != 4 || [3, 6, 15].iter().any(|at| text.as_bytes()[*at] != b' ') {
        return None;
    }
    moment(number(year)?, month, number(day.strip_prefix(' ').unwrap_or(day))?, time)
}

fn moment(year: i64, month: &str, day: i64, time: &str) -> Option<i64> {
    let month = MONTHS.iter().position(|name| *name == month)?;
    let (hour, minute, second) = (time.get(..2)?, time.get(2..5)?, time.get(5..)?);
    let hour = number(hour)?;
    let minute = number(minute.strip_prefix(':')?)?;
    let second = number(second.strip_prefix(':').filter(|second| second.len() == 2)?)?;
    if hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    Some(days_to(year, month, day)? * SECONDS_OF_DAY + hour * 3600 + minute * 60 + second)
}

fn number(text: &str) -> Option<i64> {
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) { None } else { text.parse().ok() }
}
