//! The distribution of response times, in little memory however many responses there are.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The width of a bucket.
const WIDTH: Duration = Duration::from_micros(100);
/// Number of buckets: up to two seconds. Longer times count in the last one.
const BUCKETS: usize = 20_000;

/// Counts of response times.
pub struct LatencyHistogram(Vec<AtomicU64>);

impl LatencyHistogram {
    /// A histogram without any response.
    pub fn new() -> Self {
        Self((0..BUCKETS).map(|_| AtomicU64::new(0)).collect())
    }

    /// Counts a response.
    pub fn record(&self, time: Duration) {
        let bucket = (time.as_micros() / WIDTH.as_micros()).min(BUCKETS as u128 - 1);
        self.0[bucket as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// The time within which that share of the responses came, rounded up to a bucket.
    pub fn percentile(&self, share: f64) -> Duration {
        let counts = self.0.iter().map(|count| count.load(Ordering::Relaxed));
        let counts: Vec<u64> = counts.collect();
        let wanted = counts.iter().sum::<u64>() as f64 * share;
        let mut reached = 0;
        let bucket = counts.iter().position(|count| {
            reached += count;
            reached as f64 >= wanted
        });
        WIDTH * (bucket.unwrap_or(BUCKETS - 1) as u32 + 1)
    }
}

#[test]
fn a_percentile_is_that_of_the_times() {
    let histogram = LatencyHistogram::new();
    for milliseconds in 1..=100 {
        histogram.record(Duration::from_millis(milliseconds));
    }
    assert_eq!(histogram.percentile(0.50), Duration::from_micros(50_100));
    assert_eq!(histogram.percentile(0.99), Duration::from_micros(99_100));
    histogram.record(Duration::from_secs(3_600));
    assert_eq!(histogram.percentile(1.0), Duration::from_secs(2));
}
