//! Statistics of a series of requests.

use alloc::vec::Vec;
use core::fmt;

use text::{count, duration};

/// Maximum number of RTTs kept for the median; in a longer series it is that of the latest ones.
const MAX_KEPT: usize = 10_000;

/// Requests and replies so far.
#[derive(Default)]
pub struct Tally {
    sent: u64,
    answered: u64,
    min_ns: Option<u64>,
    max_ns: u64,
    /// Ring of the latest RTTs.
    kept_ns: Vec<u64>,
}

impl Tally {
    /// Records a request and its RTT, if answered.
    pub fn note(&mut self, round_trip_ns: Option<u64>) {
        self.sent += 1;
        let Some(taken) = round_trip_ns else { return };
        let place = usize::try_from(self.answered).unwrap_or(0) % MAX_KEPT;
        match self.kept_ns.get_mut(place) {
            Some(kept) => *kept = taken,
            None => self.kept_ns.push(taken),
        }
        self.answered += 1;
        self.min_ns = Some(self.min_ns.map_or(taken, |least| least.min(taken)));
        self.max_ns = self.max_ns.max(taken);
    }

    /// Number of replies.
    pub fn answered(&self) -> u64 {
        self.answered
    }

    fn median_ns(&self) -> u64 {
        let mut sorted = self.kept_ns.clone();
        sorted.sort_unstable();
        sorted.get(sorted.len().saturating_sub(1) / 2).copied().unwrap_or(0)
    }
}

/// Formats as `4 packets transmitted, 4 received, 0 lost (0 %); rtt min/median/max 0.1 ms/0.2 ms/0.3 ms`.
impl fmt::Display for Tally {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lost = self.sent - self.answered;
        let percent = (lost * 100).checked_div(self.sent).unwrap_or(0);
        write!(
            formatter,
            "{} packets transmitted, {} received, {} lost ({percent} %)",
            count(self.sent),
            count(self.answered),
            count(lost)
        )?;
        match self.min_ns {
            None => Ok(()),
            Some(least) => write!(
                formatter,
                "; rtt min/median/max {}/{}/{}",
                duration(least),
                duration(self.median_ns()),
                duration(self.max_ns)
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use super::*;

    #[test]
    fn a_series_is_summed_up() {
        let mut tally = Tally::default();
        assert_eq!(tally.to_string(), "0 packets transmitted, 0 received, 0 lost (0 %)");
        for taken in [Some(300_000), None, Some(100_000), Some(200_000)] {
            tally.note(taken);
        }
        assert_eq!(
            tally.to_string(),
            "4 packets transmitted, 3 received, 1 lost (25 %); rtt min/median/max 100.0 us/200.0 us/300.0 us"
        );
    }

    #[test]
    fn a_long_series_takes_no_more_room() {
        let mut tally = Tally::default();
        for taken in 0..3 * MAX_KEPT as u64 {
            tally.note(Some(taken));
        }
        assert_eq!((tally.kept_ns.len(), tally.answered()), (MAX_KEPT, 3 * MAX_KEPT as u64));
        assert_eq!(tally.min_ns, Some(0));
    }
}
