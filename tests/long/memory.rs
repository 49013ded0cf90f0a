//! Memory use of a process, and its growth.

use std::time::Duration;

/// A measurement of memory and its time.
#[derive(Debug, Clone, Copy)]
pub struct MemorySample {
    pub at: Duration,
    pub kibibytes: u64,
}

/// Anonymous memory of a process in KiB, as the kernel counts it.
pub fn anonymous_kibibytes(process: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("RssAnon:"));
    let text = line.unwrap().trim().trim_end_matches(" kB");
    text.parse().unwrap()
}

/// Slope of the regression line through the samples, in KiB per minute.
pub fn slope(samples: &[MemorySample]) -> f64 {
    let count = samples.len() as f64;
    let minutes = |sample: &MemorySample| sample.at.as_secs_f64() / 60.0;
    let mean = |of: &dyn Fn(&MemorySample) -> f64| samples.iter().map(of).sum::<f64>() / count;
    let (middle, level) = (mean(&minutes), mean(&|sample| sample.kibibytes as f64));
    let (mut above, mut below) = (0.0, 0.0);
    for sample in samples {
        let distance = minutes(sample) - middle;
        above += distance * (sample.kibibytes as f64 - level);
        below += distance * distance;
    }
    if below == 0.0 { 0.0 } else { above / below }
}

#[test]
fn the_slope_is_that_of_the_line() {
    let sample = |minute: u64, kibibytes| MemorySample {
        at: Duration::from_secs(minute * 60),
        kibibytes,
    };
    let rising = [
        sample(0, 100),
        sample(1, 112),
        sample(2, 118),
        sample(3, 130),
    ];
    assert!((slope(&rising) - 9.6).abs() < 1e-9, "{}", slope(&rising));
    assert_eq!(slope(&[sample(0, 5), sample(1, 5)]), 0.0);
    assert_eq!(slope(&[sample(1, 5)]), 0.0);
}
