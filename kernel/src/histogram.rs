//! Latencies by powers of two.

use core::sync::atomic::{AtomicU64, Ordering};

use abi::{LATENCY_BUCKETS, LATENCY_FIRST_BITS};

/// Counts of latencies, of a fixed size. Any processor may add to it.
#[derive(Default)]
pub struct Histogram {
    buckets: [AtomicU64; LATENCY_BUCKETS],
    sum_ns: AtomicU64,
}

impl Histogram {
    /// Counts a latency.
    pub fn add(&self, ns: u64) {
        let bits = u64::BITS - ns.leading_zeros();
        let bucket = bits.saturating_sub(LATENCY_FIRST_BITS) as usize;
        self.buckets[bucket.min(LATENCY_BUCKETS - 1)].fetch_add(1, Ordering::Relaxed);
        self.sum_ns.fetch_add(ns, Ordering::Relaxed);
    }

    /// The counts, and the sum in nanoseconds.
    pub fn read(&self) -> ([u64; LATENCY_BUCKETS], u64) {
        (self.buckets.each_ref().map(|count| count.load(Ordering::Relaxed)), self.sum_ns.load(Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use abi::LatencyRecord;

    #[test]
    fn a_latency_is_below_the_bound_of_its_bucket_and_not_below_the_one_before() {
        for ns in [0, 1, 255, 256, 257, 1_000, 1 << 20, (1 << 34) - 1, 1 << 34, u64::MAX / 2] {
            let histogram = Histogram::default();
            histogram.add(ns);
            let (buckets, sum_ns) = histogram.read();
            let bucket = buckets.iter().position(|count| *count == 1).expect("one is counted");
            assert_eq!((buckets.iter().sum::<u64>(), sum_ns), (1, ns));
            assert!(LatencyRecord::bound_ns(bucket).is_none_or(|bound| ns < bound), "{ns} in {bucket}");
            let below = bucket.checked_sub(1).and_then(LatencyRecord::bound_ns).unwrap_or(0);
            assert!(ns >= below, "{ns} in {bucket}");
        }
    }
}
