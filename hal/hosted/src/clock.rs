//! The host's monotonic and wall clock.
//!
//! Key type: [`Clock`], which counts from the machine's start. Deliberately not here: waiting.

/// Monotonic clock that starts with the machine.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    start_ns: u64,
}

impl Clock {
    /// Starts the clock.
    pub(crate) fn start() -> Self {
        Self { start_ns: read(libc::CLOCK_MONOTONIC) }
    }

    /// Returns nanoseconds since the start.
    pub(crate) fn elapsed_ns(self) -> u64 {
        read(libc::CLOCK_MONOTONIC).saturating_sub(self.start_ns)
    }

    /// Converts a deadline in nanoseconds since the start to the host's absolute monotonic time; `None` for
    /// one out of its range, which never passes.
    pub(crate) fn host_deadline(self, deadline_ns: u64) -> Option<libc::timespec> {
        let absolute = deadline_ns.checked_add(self.start_ns)?;
        let seconds = libc::time_t::try_from(absolute / 1_000_000_000).ok()?;
        let nanoseconds = libc::c_long::try_from(absolute % 1_000_000_000).ok()?;
        Some(libc::timespec { tv_sec: seconds, tv_nsec: nanoseconds })
    }
}

/// Returns nanoseconds since 1970-01-01 00:00 UTC; 0 if the host's clock is set before that.
pub(crate) fn wall_ns() -> u64 {
    read(libc::CLOCK_REALTIME)
}

/// Returns nanoseconds that the calling thread ran on a processor.
pub(crate) fn processor_ns() -> u64 {
    read(libc::CLOCK_THREAD_CPUTIME_ID)
}

fn read(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a live timespec for the whole call, which writes only to it.
    unsafe { libc::clock_gettime(clock, &mut time) };
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    let nanoseconds = u64::try_from(time.tv_nsec).unwrap_or(0);
    seconds.saturating_mul(1_000_000_000).saturating_add(nanoseconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn far_deadlines_never_come() {
        let clock = Clock { start_ns: 5 };
        assert!(clock.host_deadline(u64::MAX).is_none());
        let near = clock.host_deadline(1_999_999_995).expect("a deadline that can be written");
        assert_eq!((near.tv_sec, near.tv_nsec), (2, 0));
    }
}
