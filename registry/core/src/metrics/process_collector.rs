//! Figures of the operating system about this process, under the names that Prometheus' own clients give them. Each
//! scrape reads them from `/proc`; they are absent where the system has none.

use std::fmt;
use std::fs;
use std::time::Duration;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Unit;

/// Milliseconds of a tick in `/proc/self/stat`: Linux shows programs 100 ticks in a second on every architecture that
/// the registry is built for.
const TICK_MILLISECONDS: u64 = 10;

#[derive(Debug)]
pub(super) struct ProcessCollector;

impl Collector for ProcessCollector {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let encoder = &mut encoder;
        let (seconds, bytes) = (Some(Unit::Seconds), Some(Unit::Bytes));
        if let Some(stat) = read_process_stat() {
            let cpu = "User and system processor time.";
            let cpu_seconds = ConstCounter::new(stat.cpu_time.as_secs_f64());
            encode_metric(encoder, "process_cpu", cpu, seconds.as_ref(), &cpu_seconds)?;
            if let Some(boot_time) = read_boot_time() {
                let start = "Start of the process since 1970 UTC.";
                let start_time = (boot_time + stat.start_after_boot).as_secs_f64();
                let start_time = ConstGauge::new(start_time);
                encode_metric(
                    encoder,
                    "process_start_time",
                    start,
                    seconds.as_ref(),
                    &start_time,
                )?;
            }
        }
        for (name, help, field) in [
            ("process_resident_memory", "Resident memory.", "VmRSS:"),
            ("process_virtual_memory", "Virtual memory.", "VmSize:"),
        ] {
            if let Some(size) = read_status_bytes(field) {
                encode_metric(encoder, name, help, bytes.as_ref(), &ConstGauge::new(size))?;
            }
        }
        let descriptors = [
            (
                "process_open_fds",
                "Open file descriptors.",
                count_open_files(),
            ),
            (
                "process_max_fds",
                "Limit of open file descriptors.",
                read_file_limit(),
            ),
        ];
        for (name, help, count) in descriptors {
            if let Some(count) = count {
                encode_metric(encoder, name, help, None, &ConstGauge::new(count))?;
            }
        }
        Ok(())
    }
}

fn encode_metric(
    encoder: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    unit: Option<&Unit>,
    metric: &impl EncodeMetric,
) -> Result<(), fmt::Error> {
    let described = encoder.encode_descriptor(name, help, unit, metric.metric_type())?;
    metric.encode(described)
}

struct ProcessStat {
    cpu_time: Duration,
    start_after_boot: Duration,
}

fn read_process_stat() -> Option<ProcessStat> {
    let text = fs::read_to_string("/proc/self/stat").ok()?;
    // The name of the program, in parentheses, may contain spaces.
    let (_, fields) = text.rsplit_once(')')?;
    let fields: Vec<&str> = fields.split_whitespace().collect();
    let ticks = |index: usize| -> Option<Duration> {
        let ticks: u64 = fields.get(index)?.parse().ok()?;
        Some(Duration::from_millis(
            ticks.saturating_mul(TICK_MILLISECONDS),
        ))
    };
    Some(ProcessStat {
        cpu_time: ticks(11)?.saturating_add(ticks(12)?),
        start_after_boot: ticks(19)?,
    })
}

/// The time at which the system was started, since 1970 UTC.
fn read_boot_time() -> Option<Duration> {
    let text = fs::read_to_string("/proc/stat").ok()?;
    let seconds = text.lines().find_map(|line| line.strip_prefix("btime "))?;
    seconds.trim().parse().ok().map(Duration::from_secs)
}

/// A size of `/proc/self/status`, which has kibibytes.
fn read_status_bytes(field: &str) -> Option<u64> {
    let text = fs::read_to_string("/proc/self/status").ok()?;
    let size = text.lines().find_map(|line| line.strip_prefix(field))?;
    let kibibytes: u64 = size.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kibibytes.checked_mul(1024)
}

fn count_open_files() -> Option<u64> {
    let open = fs::read_dir("/proc/self/fd").ok()?.count();
    // One of them is the folder itself while it is read.
    u64::try_from(open.saturating_sub(1)).ok()
}

/// The limit in force; `None` if there is none.
fn read_file_limit() -> Option<u64> {
    let text = fs::read_to_string("/proc/self/limits").ok()?;
    let limits = text
        .lines()
        .find_map(|line| line.strip_prefix("Max open files"))?;
    limits.split_whitespace().next()?.parse().ok()
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn the_figures_of_this_process_are_plausible() {
        let stat = read_process_stat().unwrap();
        assert!(stat.start_after_boot > stat.cpu_time / 1024);
        // 2020, before which no system was started that runs this.
        assert!(read_boot_time().unwrap() > Duration::from_secs(1_577_836_800));
        let (resident, size) = (read_status_bytes("VmRSS:"), read_status_bytes("VmSize:"));
        assert!(resident.unwrap() > 1024 * 1024 && size >= resident);
        let before = count_open_files().unwrap();
        let _open: Vec<fs::File> = (0..50)
            .map(|_| fs::File::open("/proc/self/stat").unwrap())
            .collect();
        assert!(count_open_files().unwrap() >= before.saturating_sub(20) + 30);
        assert!(read_file_limit().is_none_or(|limit| limit > before));
    }
}
