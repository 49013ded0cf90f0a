//! What a process uses, memory and file descriptors, and how that grows.

use std::time::Duration;

/// A measurement of a process and its time.
#[derive(Debug, Clone, Copy)]
pub struct ProcessSample {
    pub at: Duration,
    /// Anonymous memory, as the kernel counts it.
    pub kibibytes: u64,
    /// Open files and connections.
    pub descriptors: u64,
}

impl ProcessSample {
    /// Measures a process now, which is this long after the first measurement.
    pub fn take(process: u32, at: Duration) -> Self {
        let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix("RssAnon:"));
        let text = line.unwrap().trim().trim_end_matches(" kB");
        let descriptors = std::fs::read_dir(format!("/proc/{process}/fd")).unwrap();
        Self {
            at,
            kibibytes: text.parse().unwrap(),
            descriptors: descriptors.count() as u64,
        }
    }
}

/// Slope of the regression line through a value of the samples, per minute.
pub fn slope(samples: &[ProcessSample], value: impl Fn(&ProcessSample) -> u64) -> f64 {
    let count = samples.len() as f64;
    let minutes = |sample: &ProcessSample| sample.at.as_secs_f64() / 60.0;
    let mean = |of: &dyn Fn(&ProcessSample) -> f64| samples.iter().map(of).sum::<f64>() / count;
    let (middle, level) = (mean(&minutes), mean(&|sample| value(sample) as f64));
    let (mut above, mut below) = (0.0, 0.0);
    for sample in samples {
        let distance = minutes(sample) - middle;
        above += distance * (value(sample) as f64 - level);
        below += distance * distance;
    }
    if below == 0.0 { 0.0 } else { above / below }
}

#[test]
fn the_slope_is_that_of_the_line() {
    let sample = |minute: u64, kibibytes| ProcessSample {
        at: Duration::from_secs(minute * 60),
        kibibytes,
        descriptors: 7,
    };
    let rising = [
        sample(0, 100),
        sample(1, 112),
        sample(2, 118),
        sample(3, 130),
    ];
    let of_memory = |samples: &[ProcessSample]| slope(samples, |sample| sample.kibibytes);
    let growth = of_memory(&rising);
    assert!((growth - 9.6).abs() < 1e-9, "{growth}");
    assert_eq!(slope(&rising, |sample| sample.descriptors), 0.0);
    assert_eq!(of_memory(&[sample(0, 5), sample(1, 5)]), 0.0);
    assert_eq!(of_memory(&[sample(1, 5)]), 0.0);
}
