//! How fast bytes arrive at the other end, and what follows from that about losses.
//!
//! A loss tells of a full queue only where more is in flight than the way itself holds: the rate at which bytes arrive
//! times the least round trip time. On radio links and others that lose segments without being full, a window that
//! comes down at each loss uses a small part of the way. So slow start goes on through losses as long as the rate
//! grows, and no loss brings the window below what the way holds (as TCP Westwood has it), unless much is lost at once.
//! Deliberately not here: the samples of the rate, which are the scoreboard's.

/// Round trips for which a rate is believed.
const ROUNDS: usize = 10;
/// Round trips without growth of the rate by a quarter after which the way is full.
const FULL_ROUNDS: u8 = 3;
/// One in so many bytes lost is too many for a way that only loses some; and at least so many segments.
const HEAVY_LOSS: u64 = 5;
const HEAVY_LOSS_SEGMENTS: u64 = 4;

/// A sample of the rate.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sample {
    pub(crate) bytes_per_s: u64,
    /// Less was sent than might have been.
    pub(crate) is_limited: bool,
}

#[derive(Debug, Default)]
pub(crate) struct Rate {
    /// The greatest rate of each of the last round trips, this one first.
    rounds: [u64; ROUNDS],
    /// Whether this round trip has a sample of a window in full use.
    has_full_sample: bool,
    highest: u64,
    rounds_without_growth: u8,
    /// Bytes of this round trip and the one before.
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

    /// So much of what was taken for lost was not.
    pub(crate) fn note_spurious(&mut self, bytes: u64) {
        for lost in &mut self.lost {
            *lost = lost.saturating_sub(bytes);
        }
    }

    fn greatest(&self) -> u64 {
        self.rounds.iter().copied().max().unwrap_or(0)
    }

    /// A round trip is over.
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

    /// Whether a larger window would not bring more.
    pub(crate) fn is_full(&self) -> bool {
        self.rounds_without_growth >= FULL_ROUNDS
    }

    /// Whether more is lost than on a way that is not full.
    pub(crate) fn is_loss_heavy(&self, mss: u64) -> bool {
        let (lost, delivered): (u64, u64) = (self.lost.iter().sum(), self.delivered.iter().sum());
        lost >= HEAVY_LOSS_SEGMENTS * mss && lost * HEAVY_LOSS > lost + delivered
    }

    /// Bytes that the way holds.
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
