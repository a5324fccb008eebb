//! Congestion window: slow start and CUBIC (RFC 9438).
//!
//! Windows are in bytes. Deliberately not here: loss detection, and rate reduction during recovery.

const MS: u64 = 1_000_000;
/// Initial window, in segments (RFC 6928).
const INITIAL_SEGMENTS: u64 = 10;
const INITIAL_BYTES: u64 = 14_600;
/// Maximum window, in bytes.
const MAX_WINDOW: u64 = 16 << 20;
/// Maximum time argument of the cubic function, in milliseconds.
const MAX_EPOCH_MS: i64 = 1_000_000;

#[derive(Debug)]
pub(crate) struct Cubic {
    window: u64,
    threshold: u64,
    /// W_max: the window before the last reduction, with fast convergence applied.
    plateau: u64,
    /// cwnd_prior: the window right before the last reduction.
    prior: u64,
    epoch: Option<Epoch>,
}

/// A congestion avoidance epoch.
#[derive(Clone, Copy, Debug)]
struct Epoch {
    start_ns: u64,
    /// K: when the plateau is reached, in milliseconds after the epoch's start.
    plateau_ms: u64,
    plateau: u64,
    /// W_est: the Reno-friendly window.
    reno: u64,
}

/// State to restore when a reduction proves spurious.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Saved {
    window: u64,
    threshold: u64,
    plateau: u64,
    prior: u64,
}

impl Cubic {
    pub(crate) fn new(mss: u64) -> Cubic {
        let window = initial_window(mss);
        Cubic { window, threshold: u64::MAX, plateau: 0, prior: 0, epoch: None }
    }

    pub(crate) fn window(&self) -> u64 {
        self.window
    }

    pub(crate) fn threshold(&self) -> u64 {
        self.threshold
    }

    /// Sets the window during recovery.
    pub(crate) fn set_window(&mut self, window: u64) {
        self.window = window.min(MAX_WINDOW);
    }

    pub(crate) fn is_in_slow_start(&self) -> bool {
        self.window < self.threshold
    }

    /// Grows the window for acknowledged bytes; call only while cwnd-limited.
    pub(crate) fn acked(&mut self, mut bytes: u64, mss: u64, rtt_ns: u64, now_ns: u64) {
        if self.is_in_slow_start() {
            let count = bytes.min(self.threshold - self.window);
            self.window = (self.window + count).min(MAX_WINDOW);
            bytes -= count;
        }
        if bytes == 0 || self.window >= MAX_WINDOW {
            return;
        }
        let (window, prior) = (self.window, self.prior);
        let mut epoch = self.epoch.unwrap_or_else(|| Epoch::new(window, self.plateau, mss, now_ns));
        // Reno's additive increase, less until the window is back where it was (RFC 9438, 4.3).
        let share = bytes * mss;
        epoch.reno += if epoch.reno < prior { share * 9 / (window * 17) } else { share / window };
        let since_ms = now_ns.saturating_sub(epoch.start_ns) / MS;
        if epoch.at(since_ms, mss) < epoch.reno {
            self.window = window.max(epoch.reno);
        } else {
            let target = epoch.at(since_ms + rtt_ns / MS, mss).clamp(window, window + window / 2);
            self.window = window + ((target - window) * bytes / window).min(bytes);
        }
        self.window = self.window.min(MAX_WINDOW);
        self.epoch = Some(epoch);
    }

    /// Saves the state that a reduction changes.
    pub(crate) fn save(&self) -> Saved {
        Saved { window: self.window, threshold: self.threshold, plateau: self.plateau, prior: self.prior }
    }

    /// Loss: sets ssthresh, at least `floor` bytes.
    pub(crate) fn reduce(&mut self, mss: u64, floor: u64) {
        // Fast convergence: release bandwidth to another flow (RFC 9438, 4.7).
        self.plateau = if self.window < self.plateau { self.window * 17 / 20 } else { self.window };
        self.prior = self.window;
        self.threshold = (self.window * 7 / 10).max(floor.min(self.window)).max(2 * mss);
        self.epoch = None;
    }

    /// The path is full: leaves slow start.
    pub(crate) fn end_slow_start(&mut self) {
        self.threshold = self.threshold.min(self.window);
    }

    /// RTO: the window collapses to one segment.
    pub(crate) fn collapse(&mut self, mss: u64) {
        self.window = mss;
        self.epoch = None;
    }

    pub(crate) fn restore(&mut self, saved: Saved) {
        self.window = self.window.max(saved.window);
        (self.threshold, self.plateau, self.prior) = (saved.threshold, saved.plateau, saved.prior);
        self.epoch = None;
    }

    /// Restarts after idle (RFC 5681, 4.1).
    pub(crate) fn idle(&mut self, mss: u64) {
        self.window = self.window.min(initial_window(mss));
        self.epoch = None;
    }

    /// Ends the epoch after an application-limited period.
    pub(crate) fn pause(&mut self) {
        self.epoch = None;
    }
}

fn initial_window(mss: u64) -> u64 {
    (INITIAL_SEGMENTS * mss).min(INITIAL_BYTES.max(2 * mss))
}

impl Epoch {
    fn new(window: u64, plateau: u64, mss: u64, now_ns: u64) -> Epoch {
        let plateau = plateau.max(window);
        // K in milliseconds: the cube root of (plateau - window) / (C * mss) seconds cubed, with C = 0.4.
        let cubed = u128::from(plateau - window) * 5 * 1_000_000_000 / (2 * u128::from(mss.max(1)));
        Epoch { start_ns: now_ns, plateau_ms: cube_root(cubed), plateau, reno: window }
    }

    /// W_cubic at `since_ms` after the epoch's start (RFC 9438, 4.2).
    fn at(&self, since_ms: u64, mss: u64) -> u64 {
        let limited = |ms: u64| i64::try_from(ms).unwrap_or(i64::MAX).min(MAX_EPOCH_MS);
        let distance = limited(since_ms) - limited(self.plateau_ms);
        // Divided in two steps, so that 10^18 * 2^16 does not overflow.
        let grown = distance.pow(3) / 1_000_000 * 2 * (mss as i64) / 5000;
        u64::try_from(self.plateau as i64 + grown).unwrap_or(0).min(MAX_WINDOW)
    }
}

/// The integer cube root, rounded down.
fn cube_root(cubed: u128) -> u64 {
    let mut root: u64 = 0;
    for bit in (0..42).rev() {
        let larger = root | 1 << bit;
        if u128::from(larger).pow(3) <= cubed {
            root = larger;
        }
    }
    root
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u64 = 1460;

    #[test]
    fn cube_roots_are_whole() {
        assert_eq!([0, 1, 7, 8, 26, 27, 1_000_000_000].map(cube_root), [0, 1, 1, 2, 2, 3, 1000]);
    }

    #[test]
    fn slow_start_doubles_and_a_loss_takes_three_tenths() {
        let mut cubic = Cubic::new(MSS);
        assert_eq!(cubic.window(), 14_600);
        cubic.acked(14_600, MSS, 100 * MS, 0);
        assert_eq!(cubic.window(), 29_200);
        cubic.reduce(MSS, 0);
        assert_eq!(cubic.threshold(), 20_440);
    }

    #[test]
    fn the_window_does_not_come_down_below_what_the_way_holds() {
        let mut cubic = Cubic::new(MSS);
        cubic.set_window(100_000);
        cubic.reduce(MSS, 90_000);
        assert_eq!(cubic.threshold(), 90_000);
        cubic.reduce(MSS, 200_000);
        assert_eq!(cubic.threshold(), 100_000);
    }

    #[test]
    fn the_window_returns_to_where_the_loss_was_and_grows_beyond() {
        let mut cubic = Cubic::new(MSS);
        cubic.set_window(1_000_000);
        cubic.reduce(MSS, 0);
        cubic.set_window(cubic.threshold());
        let rtt_ns = 100 * MS;
        let mut windows = alloc::vec::Vec::new();
        for round in 0..200 {
            let window = cubic.window();
            windows.push(window);
            cubic.acked(window, MSS, rtt_ns, round * rtt_ns);
        }
        // K is the cube root of 300,000 / (0.4 * 1460), 8 s.
        assert!((950_000..1_000_001).contains(&windows[80]), "{}", windows[80]);
        assert!(windows.is_sorted() && windows[199] > 1_500_000, "{:?}", windows.last());
    }

    #[test]
    fn on_a_short_way_it_is_as_fast_as_reno() {
        let mut cubic = Cubic::new(MSS);
        cubic.set_window(20 * MSS);
        cubic.reduce(MSS, 0);
        cubic.set_window(cubic.threshold());
        for round in 0..12 {
            let window = cubic.window();
            cubic.acked(window, MSS, MS, round * MS);
        }
        assert!(cubic.window() >= 19 * MSS, "{}", cubic.window());
    }

    #[test]
    fn a_spurious_reduction_is_undone() {
        let mut cubic = Cubic::new(MSS);
        cubic.set_window(500_000);
        let saved = cubic.save();
        cubic.reduce(MSS, 0);
        cubic.collapse(MSS);
        assert_eq!(cubic.window(), MSS);
        cubic.restore(saved);
        assert_eq!((cubic.window(), cubic.threshold()), (500_000, u64::MAX));
    }
}
