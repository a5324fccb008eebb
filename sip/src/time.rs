//! Clocks and deadlines.

use abi::{Status, limits};

use crate::{executor, raw};

/// A point in time of the monotonic clock, at which a wait ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Deadline(u64);

impl Deadline {
    /// No deadline.
    pub const NEVER: Deadline = Deadline(limits::NEVER);
    /// In the past: a call with it does not block.
    pub const PASSED: Deadline = Deadline(0);

    /// The deadline at this many nanoseconds of [`monotonic`].
    pub const fn at(monotonic_ns: u64) -> Deadline {
        Deadline(monotonic_ns)
    }

    /// The deadline this many nanoseconds from now.
    pub fn after_ns(nanoseconds: u64) -> Deadline {
        let now = monotonic();
        executor::note_time(now);
        Deadline(now.saturating_add(nanoseconds))
    }

    /// The deadline this many milliseconds from now.
    pub fn after_ms(milliseconds: u64) -> Deadline {
        Deadline::after_ns(milliseconds.saturating_mul(1_000_000))
    }

    /// The deadline this many milliseconds from [`monotonic_coarse`]: for timeouts of a server, which are long beside
    /// the time its tasks run between two waits.
    pub fn coarse_after_ms(milliseconds: u64) -> Deadline {
        Deadline(monotonic_coarse().saturating_add(milliseconds.saturating_mul(1_000_000)))
    }

    /// Returns nanoseconds of [`monotonic`].
    pub const fn as_ns(self) -> u64 {
        self.0
    }

    /// Returns whether it has passed.
    pub fn has_passed(self) -> bool {
        match self {
            Deadline::NEVER => false,
            Deadline::PASSED => true,
            Deadline(at) => monotonic() >= at,
        }
    }
}

/// Returns nanoseconds since the machine started.
pub fn monotonic() -> u64 {
    raw::value::time_monotonic().unwrap_or(0)
}

/// Like [`monotonic`], but as this thread's executor saw it after its last wait, which tells it if it is asked for
/// often; otherwise the first call after a wait reads the clock. Behind by the time that tasks have run since.
pub fn monotonic_coarse() -> u64 {
    executor::time_seen().unwrap_or_else(|| {
        let now = monotonic();
        executor::note_time(now);
        now
    })
}

/// Returns nanoseconds since 1970-01-01 00:00 UTC.
pub fn wall() -> u64 {
    raw::value::time_wall().unwrap_or(0)
}

/// Sets the clock that [`wall`] reads. Needs the manifest's `wall-clock` permission; `NotPermitted` also
/// where the host keeps the time.
pub fn set_wall(wall_ns: u64) -> Result<(), Status> {
    raw::value::wall_time_set(wall_ns).map(|_| ())
}

/// Blocks the calling thread until the deadline.
pub fn sleep_until(deadline: Deadline) {
    // Cannot fail: it returns at the deadline.
    let _ = raw::value::thread_sleep(deadline.0);
}
