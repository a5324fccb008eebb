//! Delivery rate, and whether a loss is due to congestion.
//!
//! A loss signals a full queue only if more is in flight than the bandwidth-delay product: the delivery rate times the
//! minimum RTT. On radio and other lossy links, reducing the window at each loss would waste most of the capacity.
//! Slow start therefore continues through losses while the rate grows, and no loss reduces the window below the
//! bandwidth-delay product (as in TCP Westwood), unless the loss is heavy. Deliberately not here: taking rate samples,
//! which the scoreboard does.

/// Round trips that the maximum rate is remembered for.
const ROUNDS: usize = 10;
/// Round trips without 25 % of growth after which the path counts as full (as in BBR).
const FULL_ROUNDS: u8 = 3;
/// Heavy loss: more than one byte in this many, and at least this many segments.
const HEAVY_LOSS: u64 = 5;
const HEAVY_LOSS_SEGMENTS: u64 = 4;

/// A delivery rate sample.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sample {
    pub(crate) bytes_per_s: u64,
    /// The sender was application-limited.
    pub(crate) is_limited: bool,
}

#[derive(Debug, Default)]
pub(crate) struct Rate {
    /// Maximum rate of each of the last round trips, latest first.
    rounds: [u64; ROUNDS],
    /// Whether this round trip has a cwnd-limited sample.
    has_full_sample: bool,
    highest: u64,
    rounds_without_growth: u8,
    /// Bytes delivered in this round trip and the previous one.
    delivered: [u64; 2],
    lost: [u64; 2],
}

impl Rate {
    pub(crate) fn note(&mut self, sample: Option<Sample>, delivered: u64, lost: u64) {
        self.delivered[0] += delivered;
        self.lost[0] += lost;
        let Some(sample) = sample else { return };
        if !sample.is_limited || sample.bytes_per_s > self.greatest() {
            self.rounds[0] = self.rounds[0].max(sample.bytes_per_s);
        }
        self.has_full_sample |= !sample.is_limited;
    }

    /// Bytes marked lost that arrived after all.
    pub(crate) fn note_spurious(&mut self, bytes: u64) {
        for lost in &mut self.lost {
            *lost = lost.saturating_sub(bytes);
        }
    }

    fn greatest(&self) -> u64 {
        self.rounds.iter().copied().max().unwrap_or(0)
    }

    /// Ends a round trip.
    pub(crate) fn end_round(&mut self) {
        let greatest = self.greatest();
        if greatest >= self.highest + self.highest / 4 {
            (self.highest, self.rounds_without_growth) = (greatest, 0);
        } else if self.has_full_sample {
            self.rounds_without_growth = self.rounds_without_growth.saturating_add(1);
        }
        self.rounds.rotate_right(1);
        self.rounds[0] = 0;
        self.has_full_sample = false;
        self.delivered = [0, self.delivered[0]];
        self.lost = [0, self.lost[0]];
    }

    /// Whether the path is full: a larger window would not raise the rate.
    pub(crate) fn is_full(&self) -> bool {
        self.rounds_without_growth >= FULL_ROUNDS
    }

    /// Whether the loss is heavy enough to mean congestion.
    pub(crate) fn is_loss_heavy(&self, mss: u64) -> bool {
        let (lost, delivered): (u64, u64) = (self.lost.iter().sum(), self.delivered.iter().sum());
        lost >= HEAVY_LOSS_SEGMENTS * mss && lost * HEAVY_LOSS > lost + delivered
    }

    /// Bandwidth-delay product, in bytes.
    pub(crate) fn held_bytes(&self, min_rtt_ns: u64) -> u64 {
        let held = u128::from(self.greatest()) * u128::from(min_rtt_ns) / 1_000_000_000;
        u64::try_from(held).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u64 = 1000;

    fn round(rate: &mut Rate, bytes_per_s: u64, lost: u64) {
        rate.note(Some(Sample { bytes_per_s, is_limited: false }), 100 * MSS, lost);
        rate.end_round();
    }

    #[test]
    fn a_way_is_full_when_the_rate_grows_no_more() {
        let mut rate = Rate::default();
        for bytes_per_s in [1_000_000, 2_000_000, 4_000_000, 4_100_000, 4_000_000] {
            round(&mut rate, bytes_per_s, 0);
            assert!(!rate.is_full());
        }
        rate.note(Some(Sample { bytes_per_s: 100, is_limited: true }), MSS, 0);
        rate.end_round();
        assert!(!rate.is_full(), "less was sent than might have been");
        round(&mut rate, 4_000_000, 0);
        assert!(rate.is_full());
        assert_eq!(rate.held_bytes(100_000_000), 410_000);
        (0..ROUNDS).for_each(|_| round(&mut rate, 1_000_000, 0));
        assert_eq!(rate.held_bytes(100_000_000), 100_000);
    }

    #[test]
    fn many_losses_are_heavy_and_some_are_not() {
        let mut rate = Rate::default();
        round(&mut rate, 1_000_000, 6 * MSS);
        assert!(!rate.is_loss_heavy(MSS));
        rate.note(None, 50 * MSS, 40 * MSS);
        assert!(rate.is_loss_heavy(MSS));
        round(&mut rate, 1_000_000, 0);
        round(&mut rate, 1_000_000, 0);
        assert!(!rate.is_loss_heavy(MSS));
    }
}
