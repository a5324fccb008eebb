//! Virtual time, and what will happen when.
//!
//! Time moves by a fixed amount at each ABI call, so that a loop that reads the clock comes to an end, and otherwise only
//! when no processor can run: then to the next event or deadline. Key type: [`Clock`]. Deliberately not here: what an
//! event does.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Virtual time at power on. Not 0, which some take for "never".
const START_NS: u64 = 1_000_000;
/// The wall clock at power on: 2026-01-01 00:00 UTC.
const WALL_START_NS: u64 = 1_767_225_600_000_000_000;

/// The clocks of the machine, and its future events, each named by a number of the caller's.
#[derive(Debug)]
pub(crate) struct Clock {
    now_ns: u64,
    wall_offset_ns: u64,
    /// When, in which order, and which.
    events: BinaryHeap<Reverse<(u64, u64)>>,
}

impl Clock {
    pub(crate) fn new() -> Clock {
        Clock { now_ns: START_NS, wall_offset_ns: WALL_START_NS, events: BinaryHeap::new() }
    }

    /// Returns the virtual time in nanoseconds.
    pub(crate) fn now_ns(&self) -> u64 {
        self.now_ns
    }

    /// Returns the wall clock in nanoseconds since 1970.
    pub(crate) fn wall_ns(&self) -> u64 {
        self.wall_offset_ns.wrapping_add(self.now_ns)
    }

    /// Sets the wall clock.
    pub(crate) fn set_wall_ns(&mut self, wall_ns: u64) {
        self.wall_offset_ns = wall_ns.wrapping_sub(self.now_ns);
    }

    /// Moves time; it does not go back.
    pub(crate) fn move_to(&mut self, time_ns: u64) {
        self.now_ns = self.now_ns.max(time_ns);
    }

    /// Makes an event happen after this time. Numbers order events of the same time.
    pub(crate) fn after(&mut self, delay_ns: u64, number: u64) {
        self.events.push(Reverse((self.now_ns + delay_ns, number)));
    }

    /// Makes an event happen at a time.
    pub(crate) fn at(&mut self, time_ns: u64, number: u64) {
        self.events.push(Reverse((time_ns, number)));
    }

    /// Returns when the next event happens.
    pub(crate) fn next_event_ns(&self) -> Option<u64> {
        self.events.peek().map(|Reverse((time, _))| *time)
    }

    /// Takes the next event that is due.
    pub(crate) fn take_due(&mut self) -> Option<u64> {
        let due = self.next_event_ns().is_some_and(|time| time <= self.now_ns);
        if due { self.events.pop().map(|Reverse((_, number))| number) } else { None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_come_in_the_order_of_their_times_and_then_of_their_numbers() {
        let mut clock = Clock::new();
        clock.after(200, 1);
        clock.after(100, 3);
        clock.after(100, 2);
        assert_eq!(clock.take_due(), None);
        clock.move_to(START_NS + 100);
        assert_eq!([clock.take_due(), clock.take_due(), clock.take_due()], [Some(2), Some(3), None]);
        clock.move_to(START_NS + 1_000);
        assert_eq!(clock.take_due(), Some(1));
        clock.move_to(START_NS);
        assert_eq!(clock.now_ns(), START_NS + 1_000);
    }

    #[test]
    fn the_wall_clock_goes_on_from_where_it_is_set() {
        let mut clock = Clock::new();
        clock.set_wall_ns(5);
        clock.move_to(START_NS + 10);
        assert_eq!(clock.wall_ns(), 15);
    }
}
