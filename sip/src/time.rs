//! Clocks and deadlines.

use abi::{Status, limits};

use crate::raw;

/// A moment of the monotonic clock until which a call waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Deadline(u64);

impl Deadline {
    /// Never comes.
    pub const NEVER: Deadline = Deadline(limits::NEVER);
    /// Has come: a call with it does not wait.
    pub const PASSED: Deadline = Deadline(0);

    /// The moment at this many nanoseconds of [`monotonic`].
    pub const fn at(monotonic_ns: u64) -> Deadline {
        Deadline(monotonic_ns)
    }

    /// This many nanoseconds from now.
    pub fn after_ns(nanoseconds: u64) -> Deadline {
        Deadline(monotonic().saturating_add(nanoseconds))
    }

    /// This many milliseconds from now.
    pub fn after_ms(milliseconds: u64) -> Deadline {
        Deadline::after_ns(milliseconds.saturating_mul(1_000_000))
    }

    /// The moment in nanoseconds of [`monotonic`].
    pub const fn as_ns(self) -> u64 {
        self.0
    }

    /// Whether it has come.
    pub fn has_passed(self) -> bool {
        self != Deadline::NEVER && monotonic() >= self.0
    }
}

/// Nanoseconds since the machine started.
pub fn monotonic() -> u64 {
    raw::value::time_monotonic().unwrap_or(0)
}

/// Nanoseconds since 1970-01-01 00:00 UTC.
pub fn wall() -> u64 {
    raw::value::time_wall().unwrap_or(0)
}

/// Sets what [`wall`] tells, from now on. Needs the manifest's `wall-clock` permission; `NotPermitted` also
/// where the host keeps the time.
pub fn set_wall(wall_ns: u64) -> Result<(), Status> {
    raw::value::wall_time_set(wall_ns).map(|_| ())
}

/// Stops the calling thread until the deadline.
pub fn sleep_until(deadline: Deadline) {
    // Cannot fail: at the deadline it returns.
    let _ = raw::value::thread_sleep(deadline.0);
}
