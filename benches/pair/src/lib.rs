//! One half of a pair of SIPs that communicate only with each other: calls the other half continuously, and reports
//! the number of round trips within the given time.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

use bench_contract::measured::{self, ExpReady, ImpReadyAfterNumber, states::Ready};
use sip::time;

/// Round trips between two clock reads, so that the clock costs next to nothing.
const BETWEEN_LOOKS: u64 = 32;

sip::startup!();

/// Counts on request; counting starts with the request.
pub fn main(startup: Startup) -> i32 {
    let window_ns = startup.window_ms.clamp(1, 60_000) as u64 * 1_000_000;
    let mut caller = startup.caller;
    let mut other = startup.other;
    loop {
        caller = match caller.receive() {
            ExpReady::Number { value: begin_ns, next } => {
                let Some(idle) = run_until(other, begin_ns) else { return 1 };
                let Some(counted) = run_until(idle.other, begin_ns.saturating_add(window_ns)) else { return 1 };
                other = counted.other;
                next.number_back(counted.round_trips)
            }
            ExpReady::Block { data, next } => next.block_back(data),
            ExpReady::ChannelClosed(_) => return 0,
        };
    }
}

struct Run {
    other: measured::Imp<Ready>,
    round_trips: u64,
}

/// Makes round trips until this time of the monotonic clock; `None` if the peer is gone.
fn run_until(mut other: measured::Imp<Ready>, end_ns: u64) -> Option<Run> {
    let mut round_trips = 0;
    while time::monotonic() < end_ns {
        for value in 0..BETWEEN_LOOKS {
            other = match other.number(value).receive() {
                ImpReadyAfterNumber::NumberBack { next, .. } => next,
                ImpReadyAfterNumber::ChannelClosed(_) => return None,
            };
        }
        round_trips += BETWEEN_LOOKS;
    }
    Some(Run { other, round_trips })
}
