//! When the host thread that waits for a device's events begins to wait.
//!
//! Key type: [`Watch`]. While processors are busy they look for events themselves, each time they have done what they
//! had; a host thread that slept for the next event then would only take the processor from them at each one. So it
//! begins when a processor has nothing to do, or when nobody has looked for [`GRACE`]. Deliberately not here: the events.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How long busy processors may leave a request alone before the thread waits for its events.
const GRACE: Duration = Duration::from_millis(1);

/// Tells the thread when to begin.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    state: Mutex<State>,
    changed: Condvar,
    /// A request waits for which the thread does not wait yet. Read at each idling, so without the lock.
    is_open: AtomicBool,
}

#[derive(Debug, Default)]
struct State {
    /// Requests that have begun to wait so far.
    asked: u64,
    /// Of those, how many there were when the thread last began.
    seen: u64,
    /// It has nothing to wait for.
    is_parked: bool,
    /// It waits for events.
    is_watching: bool,
    /// A processor has nothing to do.
    is_idle: bool,
}

impl Watch {
    /// A request begins to wait.
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

    /// A processor has nothing to do.
    pub(crate) fn processor_idles(&self) {
        if self.is_open.load(Ordering::Relaxed) && self.is_open.swap(false, Ordering::AcqRel) {
            self.lock().is_idle = true;
            self.changed.notify_one();
        }
    }

    /// On the thread: returns when it is to wait for events.
    pub(crate) fn begin(&self) {
        let mut state = self.lock();
        state.is_watching = false;
        // One that came while it waited for another's events is waited for at once.
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

    /// A thread that says each time when it is to wait for events.
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
