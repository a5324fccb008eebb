//! Waits.

mod duration;

use sip::Deadline;
use stdio::report;

sip::startup!("sleep/manifest.toml");

/// Waits for the duration.
pub fn main(startup: Startup) -> i32 {
    match duration::parse(&startup.duration) {
        Some(nanoseconds) => {
            sip::time::sleep_until(Deadline::after_ns(nanoseconds));
            0
        }
        None => {
            let asked = &startup.duration;
            report::error(format_args!(
                "`{asked}` is not a duration; use seconds (1.5), or a number with ms, s, m or h"
            ));
            1
        }
    }
}
