//! Restart policy for programs that ended.
//!
//! Key types: [`Backoff`], pure arithmetic on the manifest's restart settings, and [`FirstStart`], how long dependents
//! wait. Users: the service manager and the volume managers. Deliberately not here: clocks, and starting anything.
#![no_std]
#![forbid(unsafe_code)]

use manifest_model::{Restart, Supervision};

/// A run of this length counts as healthy and resets the back-off.
pub const HEALTHY_NS: u64 = 5_000_000_000;

/// Starts that fail before dependents go on without a program.
pub const MAX_FAILED_STARTS: u32 = 6;
/// Time in nanoseconds from the first start after which another failure makes dependents go on without a program.
pub const MAX_START_NS: u64 = 30_000_000_000;

/// Result of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// It exited with status 0.
    Success,
    /// It exited in any other way.
    Failure,
    /// Killed from outside, which is no evidence of its health.
    Stopped,
    /// It reported that its configuration cannot be served; a restart would end the same way.
    Hopeless,
}

/// Reaction to an exit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Restart after this many milliseconds.
    Restart {
        /// Milliseconds to wait.
        after_ms: u64,
    },
    /// No restart: it completed its work.
    Rest,
    /// No restart: it failed too often or permanently.
    GiveUp,
}

/// The restarts of one program.
#[derive(Clone, Debug)]
pub struct Backoff {
    supervision: Supervision,
    restarts_in_a_row: u32,
}

impl Backoff {
    /// No restart yet.
    pub fn new(supervision: Supervision) -> Backoff {
        Backoff { supervision, restarts_in_a_row: 0 }
    }

    /// Decides after a run of `ran_ns`.
    pub fn after(&mut self, end: End, ran_ns: u64) -> Next {
        let again = match (self.supervision.restart, end) {
            (_, End::Hopeless) => return Next::GiveUp,
            (Restart::Always, _) => true,
            (Restart::OnFailure, End::Failure | End::Stopped) => true,
            (Restart::OnFailure, End::Success) | (Restart::Never, End::Success | End::Stopped) => return Next::Rest,
            (Restart::Never, End::Failure) => false,
        };
        if again && end == End::Stopped {
            return Next::Restart { after_ms: 0 };
        }
        if ran_ns >= HEALTHY_NS {
            self.restarts_in_a_row = 0;
        }
        if !again || self.supervision.limit.is_some_and(|limit| self.restarts_in_a_row >= limit) {
            return Next::GiveUp;
        }
        let doubled = u64::from(self.supervision.backoff_ms) << self.restarts_in_a_row.min(20);
        self.restarts_in_a_row += 1;
        Next::Restart { after_ms: doubled.min(u64::from(self.supervision.backoff_max_ms)) }
    }

    /// Withdraws the last failure: its cause was external.
    pub fn forgive(&mut self) {
        self.restarts_in_a_row = self.restarts_in_a_row.saturating_sub(1);
    }

    /// Minimum delay before a restart, in milliseconds.
    pub fn shortest_ms(&self) -> u64 {
        self.supervision.backoff_ms.into()
    }
}

/// The starts of a program that has not been ready, for which its dependents wait. One failure is no reason to go on
/// without it, since a restart follows; a program that can never start must not hold them for ever.
#[derive(Clone, Copy, Debug, Default)]
pub struct FirstStart {
    failed: u32,
    begun_ns: Option<u64>,
}

impl FirstStart {
    /// Begins a start, at a time of the monotonic clock in nanoseconds.
    pub fn begin(&mut self, now_ns: u64) {
        self.begun_ns.get_or_insert(now_ns);
    }

    /// Counts a failed start after which there is a restart; true if dependents go on without the program.
    pub fn fail(&mut self, now_ns: u64) -> bool {
        self.failed = self.failed.saturating_add(1);
        let took_ns = self.begun_ns.map_or(0, |begun| now_ns.saturating_sub(begun));
        self.failed >= MAX_FAILED_STARTS || took_ns >= MAX_START_NS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn backoff(restart: Restart, limit: Option<u32>) -> Backoff {
        Backoff::new(Supervision { restart, backoff_ms: 10, backoff_max_ms: 100, limit, ending_ms: 0 })
    }

    #[test]
    fn waits_double_up_to_the_longest() {
        let mut backoff = backoff(Restart::OnFailure, None);
        let mut waits = (0..40).map(|_| backoff.after(End::Failure, 0));
        for expected in [10, 20, 40, 80, 100, 100] {
            assert_eq!(waits.next(), Some(Next::Restart { after_ms: expected }));
        }
        assert_eq!(waits.last(), Some(Next::Restart { after_ms: 100 }));
    }

    #[test]
    fn a_healthy_run_begins_anew() {
        let mut backoff = backoff(Restart::Always, Some(2));
        assert_eq!(backoff.after(End::Success, 0), Next::Restart { after_ms: 10 });
        assert_eq!(backoff.after(End::Failure, 0), Next::Restart { after_ms: 20 });
        assert_eq!(backoff.after(End::Failure, HEALTHY_NS), Next::Restart { after_ms: 10 });
        assert_eq!(backoff.after(End::Failure, 0), Next::Restart { after_ms: 20 });
        assert_eq!(backoff.after(End::Failure, 0), Next::GiveUp);
    }

    #[test]
    fn an_end_from_outside_says_nothing_of_health() {
        let mut backoff = backoff(Restart::OnFailure, Some(1));
        for _ in 0..10 {
            assert_eq!(backoff.after(End::Stopped, 0), Next::Restart { after_ms: 0 });
        }
        for _ in 0..10 {
            assert_eq!(backoff.after(End::Failure, 0), Next::Restart { after_ms: 10 });
            backoff.forgive();
        }
    }

    #[test]
    fn dependents_wait_for_some_starts_but_not_for_ever() {
        let mut often = FirstStart::default();
        often.begin(0);
        for number in 1..=MAX_FAILED_STARTS {
            assert_eq!(often.fail(u64::from(number)), number == MAX_FAILED_STARTS);
        }
        let mut slow = FirstStart::default();
        slow.begin(7);
        assert!(!slow.fail(MAX_START_NS));
        slow.begin(MAX_START_NS);
        assert!(slow.fail(MAX_START_NS + 7));
        assert!(!FirstStart::default().fail(u64::MAX));
    }

    #[test]
    fn the_policy_says_which_ends_count() {
        assert_eq!(backoff(Restart::OnFailure, None).after(End::Success, 0), Next::Rest);
        assert_eq!(backoff(Restart::Never, None).after(End::Failure, 0), Next::GiveUp);
        assert_eq!(backoff(Restart::Never, None).after(End::Success, 0), Next::Rest);
        assert_eq!(backoff(Restart::Always, None).after(End::Hopeless, HEALTHY_NS), Next::GiveUp);
    }
}
