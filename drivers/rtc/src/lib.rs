//! Driver of a PC's real-time clock: sets the system's wall clock at start, and reads and sets the clock
//! for clients.
//!
//! Key type: [`cmos::Clock`] (the registers). Deliberately not here: the alarm,
//! the periodic interrupt, and time zones; the clock is assumed to run in UTC.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod cmos;

use alloc::format;
use alloc::rc::Rc;
use alloc::string::String;

use contracts::real_time_clock::{self, ClockError, ExpReady, states};
use contracts::service_provider::StartError;
use layout::Access;
use sip::exheap::ExVec;
use sip::hardware::IoPortRange;
use sip::{Deadline, Status};
use stdio::report;

use cmos::{Clock, Error, Ports, Window};

sip::startup!();

const NANOSECONDS: u64 = 1_000_000_000;
/// Polling interval during an update, which takes at most 2 ms.
const PAUSE_NS: u64 = 100_000;

/// The clock's registers, selected one at a time.
struct Selected(Window<IoPortRange>);

impl Selected {
    fn select(&self, register: u64) {
        // The register map, and the parameter, end at 0x7f.
        self.0.number().write(register as u8);
    }
}

impl Access<u8> for Selected {
    fn read(&self, register: u64) -> u8 {
        self.select(register);
        self.0.register().read()
    }

    fn write(&self, register: u64, value: u8) {
        self.select(register);
        self.0.register().write(value);
    }
}

impl Ports for Selected {
    fn pause(&self) {
        sip::time::sleep_until(Deadline::after_ns(PAUSE_NS));
    }
}

type Shared = Rc<Clock<Selected>>;

/// Sets the wall clock, and serves clients until the provider channel closes.
pub fn main(startup: Startup) -> i32 {
    let century_register = match u8::try_from(startup.century_register) {
        Ok(0) => None,
        Ok(register @ 0x0e..=0x7f) => Some(register),
        _ => {
            let explanation = "the parameter century-register is 0, or a number from 14 to 127";
            return refuse(startup.clients, StartError::BadParameter, explanation);
        }
    };
    let clock = match startup.clock.open() {
        Ok(device) => Clock::new(Selected(device.window), century_register),
        Err(status) => {
            let explanation = format!("the clock cannot be opened: {}", status.text());
            return refuse(startup.clients, provider::start_error(status), &explanation);
        }
    };
    // A clock without a valid time can still be set, and the system runs on.
    if let Err(explanation) = set_wall_clock(&clock) {
        report::error(format_args!("{explanation}"));
    }
    let shared: Shared = Rc::new(clock);
    let serving = provider::accept(startup.clients.ready(), move |client: real_time_clock::Exp<states::Start>| {
        serve(Rc::clone(&shared), client.success())
    });
    i32::from(sip::executor::block_on(serving).is_err())
}

type Clients = contracts::service_provider::Exp<contracts::service_provider::states::Start>;

fn refuse(clients: Clients, error: StartError, explanation: &str) -> i32 {
    match ExVec::from_slice(explanation.as_bytes()) {
        Ok(block) => drop(clients.not_ready(error, block)),
        Err(_) => report::error(format_args!("{explanation}")),
    }
    1
}

fn set_wall_clock(clock: &Clock<Selected>) -> Result<(), String> {
    let seconds = clock.read().map_err(|error| format!("the wall clock was not set: {error}"))?;
    set_system_time(seconds).map_err(|status| format!("the wall clock was not set: {}", status.text()))
}

fn set_system_time(seconds: i64) -> Result<(), Status> {
    let nanoseconds = u64::try_from(seconds).ok().and_then(|seconds| seconds.checked_mul(NANOSECONDS));
    sip::time::set_wall(nanoseconds.ok_or(Status::BadArgument)?)
}

async fn serve(clock: Shared, mut client: real_time_clock::Exp<states::Ready>) {
    loop {
        client = match client.receive_async().await {
            ExpReady::GetTime { next } => match clock.read() {
                Ok(seconds) => next.time(seconds),
                Err(error) => next.failed(clock_error(error)),
            },
            ExpReady::SetTime { seconds, next } => {
                match clock
                    .set(seconds)
                    .map_err(clock_error)
                    .and_then(|()| set_system_time(seconds).map_err(|_| ClockError::OutOfRange))
                {
                    Ok(()) => next.done(),
                    Err(error) => next.failed(error),
                }
            }
            ExpReady::ChannelClosed(_) => return,
        };
    }
}

fn clock_error(error: Error) -> ClockError {
    match error {
        Error::PowerLost | Error::NoTime => ClockError::NoTime,
        Error::OutOfRange => ClockError::OutOfRange,
        Error::NoClock | Error::NotKept => ClockError::DeviceError,
    }
}
