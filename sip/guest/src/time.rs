//! The monotonic clock, and deadlines by it.

use crate::imports;

/// A point of time by the monotonic clock, until which a call waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Deadline(u64);

impl Deadline {
    /// No deadline.
    pub const NEVER: Deadline = Deadline(abi::limits::NEVER);
    /// In the past: a call with it does not block.
    pub const PASSED: Deadline = Deadline(0);

    /// The deadline at this many nanoseconds of [`monotonic`].
    pub const fn at(monotonic_ns: u64) -> Deadline {
        Deadline(monotonic_ns)
    }

    /// The deadline this many milliseconds from now.
    pub fn after_ms(milliseconds: u64) -> Deadline {
        Deadline(monotonic().saturating_add(milliseconds.saturating_mul(1_000_000)))
    }

    /// Nanoseconds of [`monotonic`].
    pub const fn as_ns(self) -> u64 {
        self.0
    }
}

/// Nanoseconds since the machine started.
pub fn monotonic() -> u64 {
    imports::time()
}
