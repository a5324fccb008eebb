//! Decides when the host thread for a device's events begins to block on them.
//!
//! Key type: [`Watch`]. Busy processors poll for events themselves, whenever they have finished their work; a thread
//! that blocked on each next event would only preempt them. So it begins when a processor idles, or when no processor
//! has polled for [`GRACE`]. Deliberately not here: the events.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Time that busy processors may leave a request unpolled before the thread waits for its events.
const GRACE: Duration = Duration::from_millis(1);

/// Wakes the thread when it has to begin.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    state: Mutex<State>,
    changed: Condvar,
    /// Whether a request is pending for which the thread does not wait yet. Read at each idle, so it is outside the lock.
    is_open: AtomicBool,
}

#[derive(Debug, Default)]
struct State {
    /// Number of requests so far.
    asked: u64,
    /// Value of `asked` when the thread last began.
    seen: u64,
    /// Whether the thread has no request to wait for.
    is_parked: bool,
    /// Whether the thread is waiting for events.
    is_watching: bool,
    /// Whether a processor has gone idle.
    is_idle: bool,
}

impl Watch {
    /// Reports a new pending request.
    pub(crate) fn ask(&self) {
        let mut state = self.lock();
        state.asked += 1;
        if !state.is_watching {
            self.is_open.store(true, Ordering::Release);
        }
        if state.is_parked {
            self.changed.notify_one();
        }
    }

    /// Reports that a processor goes idle.
    pub(crate) fn processor_idles(&self) {
        if self.is_open.load(Ordering::Relaxed) && self.is_open.swap(false, Ordering::AcqRel) {
            self.lock().is_idle = true;
            self.changed.notify_one();
        }
    }

    /// Blocks the thread until it has to wait for events.
    pub(crate) fn begin(&self) {
        let mut state = self.lock();
        state.is_watching = false;
        // Begin at once for a request that came while the thread waited for another's events.
        let mut is_time = state.asked != state.seen;
        while !is_time {
            state.is_parked = state.asked == state.seen;
            if state.is_parked {
                state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
                is_time = state.is_idle && state.asked != state.seen;
                continue;
            }
            let before = state.asked;
            let (after, timeout) = self.changed.wait_timeout(state, GRACE).unwrap_or_else(PoisonError::into_inner);
            is_time = after.is_idle || timeout.timed_out() && after.asked == before;
            state = after;
        }
        state.seen = state.asked;
        (state.is_parked, state.is_watching, state.is_idle) = (false, true, false);
        self.is_open.store(false, Ordering::Release);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::mpsc::{Receiver, channel};
    use std::thread;

    use super::*;

    /// Starts a thread that reports each time it has to wait for events.
    fn watching() -> (Arc<Watch>, Receiver<()>) {
        let watch = Arc::new(Watch::default());
        let (says, hears) = channel();
        let its = Arc::clone(&watch);
        thread::spawn(move || {
            loop {
                its.begin();
                if says.send(()).is_err() {
                    return;
                }
            }
        });
        (watch, hears)
    }

    const LONG: Duration = Duration::from_secs(10);

    #[test]
    fn nothing_is_waited_for_that_nobody_asked_for() {
        let (watch, hears) = watching();
        watch.processor_idles();
        assert!(hears.recv_timeout(Duration::from_millis(20)).is_err());
    }

    #[test]
    fn a_request_is_waited_for_when_a_processor_idles_and_when_none_does() {
        let (watch, hears) = watching();
        for _ in 0..100 {
            watch.ask();
            watch.processor_idles();
            hears.recv_timeout(LONG).expect("it begins");
        }
        for _ in 0..3 {
            watch.ask();
            hears.recv_timeout(LONG).expect("it begins by itself");
        }
    }

    #[test]
    fn requests_that_follow_each_other_are_left_to_the_processors() {
        let (watch, hears) = watching();
        let busy = std::time::Instant::now();
        let mut begun = 0;
        while busy.elapsed() < Duration::from_millis(50) {
            watch.ask();
            begun += hears.try_iter().count();
            thread::sleep(Duration::from_micros(50));
        }
        watch.ask();
        watch.processor_idles();
        hears.recv_timeout(LONG).expect("it begins");
        assert!(begun < 20, "it began {begun} times within 50 ms");
    }
}
