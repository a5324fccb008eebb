//! RTT estimation and the retransmission timeout (RFC 6298).

const MS: u64 = 1_000_000;
/// Initial RTO (RFC 6298, 2.1).
const INITIAL_RTO_NS: u64 = 1000 * MS;
/// Minimum of the RTO's variance term, which covers delayed ACKs.
const MIN_SLACK_NS: u64 = 200 * MS;
const MAX_RTO_NS: u64 = 60_000 * MS;
const MAX_BACKOFF: u32 = 12;
/// Lifetime of the minimum RTT.
const MIN_RTT_WINDOW_NS: u64 = 300_000 * MS;

/// Number of recent samples that must all be long for a queue to be detected.
const RECENT: usize = 8;
/// Minimum queueing delay that is detected (compare the threshold of RFC 9406, 4.2).
const MIN_QUEUE_NS: u64 = 4 * MS;

#[derive(Debug, Default)]
pub(crate) struct Rtt {
    smoothed_ns: Option<u64>,
    variance_ns: u64,
    min: Option<(u64, u64)>,
    backoff: u32,
    /// Ring of the last samples.
    recent: [u64; RECENT],
    count: usize,
}

impl Rtt {
    pub(crate) fn sample(&mut self, rtt_ns: u64, now_ns: u64) {
        // An RTT of zero is a clock too coarse.
        let rtt_ns = rtt_ns.max(1);
        match self.smoothed_ns {
            None => {
                self.smoothed_ns = Some(rtt_ns);
                self.variance_ns = rtt_ns / 2;
            }
            Some(smoothed_ns) => {
                self.variance_ns = self.variance_ns - self.variance_ns / 4 + smoothed_ns.abs_diff(rtt_ns) / 4;
                self.smoothed_ns = Some(smoothed_ns - smoothed_ns / 8 + rtt_ns / 8);
            }
        }
        self.recent[self.count % RECENT] = rtt_ns;
        self.count += 1;
        let is_old = |(_, since_ns): &(u64, u64)| now_ns.saturating_sub(*since_ns) > MIN_RTT_WINDOW_NS;
        if self.min.is_none_or(|min| rtt_ns <= min.0 || is_old(&min)) {
            self.min = Some((rtt_ns, now_ns));
        }
    }

    pub(crate) fn smoothed_ns(&self) -> Option<u64> {
        self.smoothed_ns
    }

    pub(crate) fn min_ns(&self) -> Option<u64> {
        self.min.map(|(min_ns, _)| min_ns)
    }

    /// Whether a queue has built up: all recent samples exceed the minimum RTT by a quarter.
    pub(crate) fn is_queue_seen(&self) -> bool {
        let Some(min_ns) = self.min_ns().filter(|_| self.count >= RECENT) else { return false };
        self.recent.iter().all(|rtt_ns| *rtt_ns > min_ns + (min_ns / 4).max(MIN_QUEUE_NS))
    }

    pub(crate) fn rto_ns(&self) -> u64 {
        let base_ns = match self.smoothed_ns {
            None => INITIAL_RTO_NS,
            Some(smoothed_ns) => smoothed_ns.saturating_add((4 * self.variance_ns).max(MIN_SLACK_NS)),
        };
        (base_ns << self.backoff).min(MAX_RTO_NS)
    }

    /// Backs off after an RTO (RFC 6298, 5.5).
    pub(crate) fn back_off(&mut self) {
        self.backoff = (self.backoff + 1).min(MAX_BACKOFF);
    }

    /// RTOs since the peer last answered.
    pub(crate) fn backoff(&self) -> u32 {
        self.backoff
    }

    /// Resets the backoff: the peer answered.
    pub(crate) fn reset_backoff(&mut self) {
        self.backoff = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_is_seen_when_nothing_comes_in_time() {
        let mut rtt = Rtt::default();
        (0..20).for_each(|_| rtt.sample(40 * MS, MS));
        (0..7).for_each(|_| rtt.sample(60 * MS, MS));
        assert!(!rtt.is_queue_seen());
        rtt.sample(51 * MS, MS);
        assert!(rtt.is_queue_seen());
        rtt.sample(49 * MS, MS);
        assert!(!rtt.is_queue_seen());
    }

    #[test]
    fn the_timeout_follows_the_round_trip_time() {
        let mut rtt = Rtt::default();
        assert_eq!(rtt.rto_ns(), INITIAL_RTO_NS);
        for _ in 0..100 {
            rtt.sample(50 * MS, MS);
        }
        assert!((250 * MS..260 * MS).contains(&rtt.rto_ns()), "{}", rtt.rto_ns());
        rtt.back_off();
        rtt.back_off();
        assert!((1000 * MS..1040 * MS).contains(&rtt.rto_ns()));
        (0..100).for_each(|_| rtt.back_off());
        assert_eq!(rtt.rto_ns(), MAX_RTO_NS);
        rtt.reset_backoff();
        rtt.sample(10 * MS, 2 * MS);
        assert_eq!(rtt.min_ns(), Some(10 * MS));
        rtt.sample(20 * MS, MIN_RTT_WINDOW_NS + 3 * MS);
        assert_eq!(rtt.min_ns(), Some(20 * MS));
    }
}
