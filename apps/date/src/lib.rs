//! Prints the date and time, in UTC: the machine knows of no other place.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

use alloc::format;

use contracts::pipe_io::Output;
use contracts::text::Moment;

sip::startup!();

const WEEKDAYS: [&str; 7] = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];

/// Prints the moment.
pub fn main(startup: Startup) -> i32 {
    let mut output = Output::new(startup.output);
    let seconds = sip::time::wall() / 1_000_000_000;
    let text = if startup.unix {
        format!("{seconds}\n")
    } else {
        let moment = Moment::from_unix(seconds as i64);
        format!("{} {moment} UTC\n", WEEKDAYS[usize::from(moment.weekday) % WEEKDAYS.len()])
    };
    output.write(text.as_bytes()).map_or(1, |()| output.finish_with(0))
}
