//! Prints or sets the date and time, in UTC: the machine has no time zone.

use alloc::format;
use alloc::string::String;

use client::access::AccessError;
use client::answer::{DEVICE_LIMIT, REQUEST_LIMIT, wait};
use client::namespace::Namespace;
use contracts::directory::{self, NameError};
use contracts::real_time_clock::{self, ClockError, states};
use stdio::{Output, report};
use text::Moment;

sip::startup!("date/manifest.toml");

const WEEKDAYS: [&str; 7] = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];

/// Path of the real-time clock, which runs while the machine is off.
const CLOCK: &str = "/dev/clock";

/// Prints the time, after setting it if requested.
pub fn main(startup: Startup) -> i32 {
    let seconds = match (startup.set, startup.clock) {
        (Some(text), _) => set(startup.namespace, &text),
        (None, true) => ask(startup.namespace),
        (None, false) => Ok((sip::time::wall() / 1_000_000_000) as i64),
    };
    let seconds = match seconds {
        Ok(seconds) => seconds,
        Err(error) => {
            report::error(format_args!("{error}"));
            return 1;
        }
    };
    let mut output = Output::new(startup.output);
    let text = if startup.unix {
        format!("{seconds}\n")
    } else {
        let moment = Moment::from_unix(seconds);
        format!("{} {moment} UTC\n", WEEKDAYS[usize::from(moment.weekday) % WEEKDAYS.len()])
    };
    output.write(text.as_bytes()).map_or(1, |()| output.finish_with(0))
}

type Root = Option<directory::Imp<directory::states::Ready>>;

fn set(root: Root, text: &str) -> Result<i64, String> {
    let seconds = Moment::parse(text).and_then(|moment| moment.to_unix());
    let seconds = seconds.ok_or_else(|| format!("`{text}` is not a time; write it like `2026-11-21 03:06:38`"))?;
    match wait(open(root)?.set_time(seconds), DEVICE_LIMIT).map_err(path_text)? {
        real_time_clock::ImpReadyAfterSetTime::Done { .. } => Ok(seconds),
        real_time_clock::ImpReadyAfterSetTime::Failed { error, .. } => Err(clock_text(error).into()),
        real_time_clock::ImpReadyAfterSetTime::ChannelClosed(_) => Err(path_text(AccessError::ServerEnded)),
    }
}

fn ask(root: Root) -> Result<i64, String> {
    match wait(open(root)?.get_time(), DEVICE_LIMIT).map_err(path_text)? {
        real_time_clock::ImpReadyAfterGetTime::Time { seconds, .. } => Ok(seconds),
        real_time_clock::ImpReadyAfterGetTime::Failed { error, .. } => Err(clock_text(error).into()),
        real_time_clock::ImpReadyAfterGetTime::ChannelClosed(_) => Err(path_text(AccessError::ServerEnded)),
    }
}

fn open(root: Root) -> Result<real_time_clock::Imp<states::Ready>, String> {
    let root = root.ok_or_else(|| path_text(NameError::NotFound.into()))?;
    let opened = Namespace::new(root).open(CLOCK, real_time_clock::new_channel, |importer| {
        match wait(importer, REQUEST_LIMIT)? {
            real_time_clock::ImpStart::Success { next } => Ok(next),
            real_time_clock::ImpStart::Refused { .. } => Err(NameError::Exhausted.into()),
            real_time_clock::ImpStart::ChannelClosed(_) => Err(AccessError::ServerEnded),
        }
    });
    opened.map_err(path_text)
}

fn path_text(error: AccessError) -> String {
    match error {
        // A hosted system uses the host's clock.
        AccessError::Name(NameError::NotFound) => {
            String::from("this machine has no hardware clock; its host keeps the time")
        }
        error => format!("{CLOCK}: {error}"),
    }
}

fn clock_text(error: ClockError) -> &'static str {
    match error {
        ClockError::NoTime => "the clock has lost its power; set it with `date --set`",
        ClockError::OutOfRange => "the clock cannot hold this time; it begins in 1970",
        ClockError::DeviceError => "the clock does not respond, or does not keep the time set",
        ClockError::Exhausted => "the clock's driver has too many clients; try again later",
    }
}
