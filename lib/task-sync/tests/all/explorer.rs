//! Runs a scenario once for every possible sequence of choices, or for random ones.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::{Context, Poll, Wake, Waker};

/// The choices of one run.
pub struct Choices {
    /// Choices of the previous run up to the first difference, then new ones, each with the number of options.
    path: Vec<(usize, usize)>,
    made: usize,
    random: Option<u64>,
}

impl Choices {
    /// Returns a number below `options`.
    pub fn pick(&mut self, options: usize) -> usize {
        assert!(options > 0);
        let made = self.made;
        self.made += 1;
        if let Some(state) = &mut self.random {
            // SplitMix64.
            *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut bits = *state;
            bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            return ((bits ^ (bits >> 31)) % options as u64) as usize;
        }
        if made == self.path.len() {
            self.path.push((0, options));
        }
        assert_eq!(self.path[made].1, options, "the scenario depends on something other than its choices");
        self.path[made].0
    }
}

/// Runs the scenario with every sequence of choices. Returns the number of runs.
pub fn every(mut scenario: impl FnMut(&mut Choices)) -> u64 {
    let mut choices = Choices { path: Vec::new(), made: 0, random: None };
    for runs in 1.. {
        choices.made = 0;
        scenario(&mut choices);
        choices.path.truncate(choices.made);
        while choices.path.pop_if(|(chosen, options)| *chosen + 1 == *options).is_some() {}
        match choices.path.last_mut() {
            Some((chosen, _)) => *chosen += 1,
            None => return runs,
        }
    }
    unreachable!("more runs than fit a number")
}

/// Runs the scenario with random choices, once for each seed.
pub fn random(runs: u64, mut scenario: impl FnMut(&mut Choices)) {
    for seed in 0..runs {
        scenario(&mut Choices { path: Vec::new(), made: 0, random: Some(seed << 32) });
    }
}

/// Counts wakes.
#[derive(Default)]
pub struct Woken(AtomicU32);

impl Wake for Woken {
    fn wake(self: Arc<Woken>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

impl Woken {
    pub fn count(&self) -> u32 {
        self.0.load(Ordering::Relaxed)
    }
}

/// A future polled by a test.
pub struct Task<'a, T> {
    future: Pin<Box<dyn Future<Output = T> + 'a>>,
    woken: Arc<Woken>,
    /// Wakes up to the last poll.
    seen: u32,
}

impl<'a, T> Task<'a, T> {
    pub fn new(future: impl Future<Output = T> + 'a) -> Task<'a, T> {
        Task { future: Box::pin(future), woken: Arc::default(), seen: 0 }
    }

    pub fn poll(&mut self) -> Option<T> {
        self.seen = self.woken.count();
        match self.future.as_mut().poll(&mut Context::from_waker(&Waker::from(Arc::clone(&self.woken)))) {
            Poll::Ready(output) => Some(output),
            Poll::Pending => None,
        }
    }

    /// Polls with a new waker, as if another task had taken over the future.
    pub fn poll_elsewhere(&mut self) -> Option<T> {
        self.woken = Arc::default();
        self.poll()
    }

    /// Returns whether the waker was called since the last poll.
    pub fn is_woken(&self) -> bool {
        self.woken.count() != self.seen
    }

    /// Returns whether it was called more than once since the last poll.
    pub fn is_woken_twice(&self) -> bool {
        self.woken.count() > self.seen + 1
    }
}

#[test]
fn every_sequence_is_run_once() {
    let mut seen = Vec::new();
    let runs = every(|choices| {
        let first = choices.pick(3);
        let second = if first == 1 { choices.pick(2) } else { 0 };
        seen.push((first, second));
    });
    assert_eq!(runs, 4);
    assert_eq!(seen, [(0, 0), (1, 0), (1, 1), (2, 0)]);
}
