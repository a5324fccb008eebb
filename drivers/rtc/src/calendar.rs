//! Dates of the Gregorian calendar as seconds since 1970-01-01 00:00 UTC, and back.

use contracts::text::Moment;

const SECONDS_A_DAY: i64 = 86_400;

/// Days of a month (1 to 12).
pub fn days_in_month(year: i64, month: u8) -> u8 {
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    match month {
        2 => 28 + u8::from(is_leap),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Seconds since 1970-01-01 00:00 UTC. The day of the week does not count. `None` if there is no such moment, or
/// the year is not from 0 to 9999.
pub fn seconds(moment: &Moment) -> Option<i64> {
    let &Moment { year, month, day, hour, minute, second, .. } = moment;
    let is_date = (0..10_000).contains(&year) && (1..=12).contains(&month);
    if !is_date || !(1..=days_in_month(year, month)).contains(&day) || hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    // Years begin in March, so that the leap day is the last of its year; 719,468 days are before 1970.
    let year = year - i64::from(month <= 2);
    let months = i64::from((month + 9) % 12);
    let day_of_year = (153 * months + 2) / 5 + i64::from(day) - 1;
    let days = 365 * year + year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400) + day_of_year - 719_468;
    Some(days * SECONDS_A_DAY + i64::from(hour) * 3600 + i64::from(minute) * 60 + i64::from(second))
}
