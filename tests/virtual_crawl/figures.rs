//! Results of a virtual crawl, computed independently of the registry's own records.

use std::collections::HashMap;
use std::fmt;
use std::net::IpAddr;
use std::time::Duration as Elapsed;

use a2a_crawler::schedule::TIMEOUT_RETRY;
use a2a_crawler::{AttemptOutcome, SourceResult, SourceTask};
use time::{Duration, OffsetDateTime};

use super::origins::{OriginBehaviour, SimulatedOrigins, SimulatedResponse};

/// The pause between two visits of a host.
const SPACING: i64 = 60;
/// Maximum number of concurrent visits in one address block.
const OF_A_BLOCK: usize = 2;
/// The window in which requests are counted.
const WINDOW: i64 = 300;
/// The adaptive interval, computed here independently: its start in seconds …
const FIRST: f64 = 6.0 * 3600.0;
/// … and its limits, which also apply to `max-age`.
const LEAST: f64 = 900.0;
const MOST: f64 = 86_400.0;
/// Number of busiest windows that are reported.
const BUSIEST: usize = 6;
/// Tolerated delay of a fetch: the jitter, and some minutes.
const JITTER: f64 = 0.1;
const SLACK: f64 = 300.0;

/// History of one domain: 24 bytes.
#[derive(Debug, Clone, Copy)]
struct DomainHistory {
    /// End of the last visit, in seconds since the start; [`NEVER`] if there was none.
    ended: i32,
    /// Earliest time at which the origin accepts another request.
    not_before: i32,
    /// Start of the last successful fetch; [`NEVER`] if the last fetch failed.
    fetched_at: i32,
    /// End of the promised freshness of the card fetched then.
    fresh_until: i32,
    /// The adaptive interval, seconds.
    interval: f32,
    /// The version last seen.
    version: i16,
    /// Whether the last fetch timed out.
    timed_out: bool,
}

const NEVER: i32 = i32::MIN;

/// Running totals of a crawl.
#[derive(Clone)]
pub struct CrawlLedger {
    pub origins: SimulatedOrigins,
    known: Vec<DomainHistory>,
    /// End times of the visits in a block.
    blocks: HashMap<[u8; 3], Vec<OffsetDateTime>>,
    windows: Vec<u32>,
    behaviours: HashMap<OriginBehaviour, u64>,
    figures: CrawlFigures,
    card_seconds: f64,
    late_seconds: f64,
}

/// Results of a crawl.
#[derive(Debug, Clone, Default)]
pub struct CrawlFigures {
    pub domains: u64,
    pub fetches: u64,
    /// Visits too soon: of a host before its pause is over, of one in a visit, of one that sent `Retry-After`, or in a
    /// block with two visits in progress.
    pub too_soon: u64,
    pub at_once: u64,
    pub despite_retry_after: u64,
    pub block_full: u64,
    /// Share of the time of all cards within their promised freshness.
    pub fresh: f64,
    pub late_looks: u64,
    /// Maximum number of requests in five minutes after the first day.
    pub peak: u32,
    /// Start of the busiest windows, minutes since the crawl's start, busiest first.
    pub busiest: Vec<(usize, u32)>,
    pub mean: f64,
    /// Maximum ratio of a day's busiest window to that day's mean, without the first day. Per day, because the fetch
    /// frequency changes over the first weeks, and the overall mean with it.
    pub peak_to_mean_of_day: f64,
    /// Fetches of unchanged cards from validating origins; how many of them were conditional; how many were answered by
    /// 304.
    pub unchanged: u64,
    pub unchanged_conditional: u64,
    pub not_modified: u64,
    /// Peak anonymous memory, in bytes.
    pub memory: u64,
    pub elapsed: Elapsed,
    /// Fetches and share of domains, per behaviour.
    pub behaviours: Vec<(OriginBehaviour, u64, f64)>,
}

impl CrawlLedger {
    pub fn new(origins: SimulatedOrigins, domains: u64) -> Self {
        let known = DomainHistory {
            ended: NEVER,
            not_before: NEVER,
            fetched_at: NEVER,
            fresh_until: NEVER,
            interval: FIRST as f32,
            version: -1,
            timed_out: false,
        };
        Self {
            origins,
            known: vec![known; domains as usize],
            blocks: HashMap::new(),
            windows: Vec::new(),
            behaviours: HashMap::new(),
            figures: CrawlFigures {
                domains,
                ..CrawlFigures::default()
            },
            card_seconds: 0.0,
            late_seconds: 0.0,
        }
    }

    /// Records a fetch that begins at `now` and ends at `ends`.
    pub fn note(
        &mut self,
        number: u64,
        task: &SourceTask,
        said: &SimulatedResponse,
        now: OffsetDateTime,
        ends: OffsetDateTime,
    ) {
        let since_start = now - self.origins.start;
        let at = since_start.whole_seconds() as i32;
        let behaviour = self.origins.behaviour(number);
        *self.behaviours.entry(behaviour).or_default() += 1;
        self.figures.fetches += 1;
        self.count_request(at);
        self.check_block(number, now, ends);
        let known = &mut self.known[number as usize];
        if known.ended != NEVER {
            self.figures.at_once += u64::from(at < known.ended);
            let spacing = match known.timed_out {
                true => TIMEOUT_RETRY.whole_seconds(),
                false => SPACING,
            };
            self.figures.too_soon += u64::from(i64::from(at - known.ended) < spacing);
            self.figures.despite_retry_after += u64::from(at < known.not_before);
        }
        if known.fetched_at != NEVER {
            self.card_seconds += f64::from(at - known.fetched_at);
            self.late_seconds += f64::from((at - known.fresh_until).max(0));
            self.figures.late_looks += u64::from(at > known.fresh_until);
        }
        known.timed_out = matches!(
            said.result.result,
            SourceResult::Failed {
                outcome: AttemptOutcome::Timeout,
                ..
            }
        );
        known.ended = (ends - self.origins.start).whole_seconds() as i32;
        let alone = said.retry_after.map_or(0, |seconds| seconds as i32);
        known.not_before = known.ended + alone;
        let Some(version) = said.version else {
            known.fetched_at = NEVER;
            return;
        };
        let same = i64::from(known.version) == version;
        let factor = match known.version {
            -1 => 1.0,
            _ if same => 1.5,
            _ => 0.5,
        };
        known.interval = (f64::from(known.interval) * factor).clamp(LEAST, MOST) as f32;
        let wait = said
            .max_age
            .map_or(f64::from(known.interval), f64::from)
            .clamp(LEAST, MOST);
        if same && behaviour.validates() {
            let not_modified = matches!(said.result.result, SourceResult::NotModified(_));
            self.figures.unchanged += 1;
            self.figures.unchanged_conditional += u64::from(task.validators.is_some());
            self.figures.not_modified += u64::from(not_modified);
        }
        known.version = version as i16;
        known.fetched_at = at;
        known.fresh_until = at + (wait * (1.0 + JITTER) + SLACK) as i32;
    }

    fn count_request(&mut self, at: i32) {
        let window = (i64::from(at) / WINDOW) as usize;
        if self.windows.len() <= window {
            self.windows.resize(window + 1, 0);
        }
        self.windows[window] += 1;
    }

    fn check_block(&mut self, number: u64, now: OffsetDateTime, ends: OffsetDateTime) {
        let IpAddr::V4(address) = self.origins.address(number) else {
            return;
        };
        let [a, b, c, _] = address.octets();
        if a != 198 {
            // In a block with a single host only its own visits count, and they are checked already.
            return;
        }
        let visits = self.blocks.entry([a, b, c]).or_default();
        visits.retain(|ends| *ends > now);
        self.figures.block_full += u64::from(visits.len() >= OF_A_BLOCK);
        visits.push(ends);
    }

    /// Number of fetches so far.
    pub fn fetches(&self) -> u64 {
        self.figures.fetches
    }

    /// Records the memory use of the process.
    pub fn sample_memory(&mut self) {
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix("RssAnon:"));
        let kib = line.and_then(|rest| rest.trim().trim_end_matches(" kB").parse::<u64>().ok());
        self.figures.memory = self.figures.memory.max(kib.unwrap_or_default() * 1024);
    }

    /// Computes the results.
    pub fn figures(mut self, end: OffsetDateTime, elapsed: Elapsed) -> CrawlFigures {
        let end = (end - self.origins.start).whole_seconds() as i32;
        for known in self.known.iter().filter(|known| known.fetched_at != NEVER) {
            self.card_seconds += f64::from(end - known.fetched_at);
            self.late_seconds += f64::from((end - known.fresh_until).max(0));
        }
        let mut figures = self.figures;
        figures.fresh = 1.0 - self.late_seconds / self.card_seconds.max(1.0);
        let first = (Duration::DAY.whole_seconds() / WINDOW) as usize;
        let later = self.windows.get(first..).unwrap_or_default();
        let minutes = |window| (first + window) * (WINDOW / 60) as usize;
        let mut busiest: Vec<(usize, u32)> = later
            .iter()
            .enumerate()
            .map(|(window, fetches)| (minutes(window), *fetches))
            .collect();
        busiest.sort_by_key(|(minute, fetches)| (std::cmp::Reverse(*fetches), *minute));
        busiest.truncate(BUSIEST);
        figures.peak = busiest.first().map_or(0, |(_, fetches)| *fetches);
        figures.busiest = busiest;
        figures.mean = f64::from(later.iter().sum::<u32>()) / later.len().max(1) as f64;
        let days = later.chunks_exact(first).map(|day| {
            let peak = day.iter().max().copied().unwrap_or_default();
            let mean = f64::from(day.iter().sum::<u32>()) / day.len() as f64;
            f64::from(peak) / mean.max(1.0)
        });
        figures.peak_to_mean_of_day = days.fold(0.0, f64::max);
        figures.elapsed = elapsed;
        let mut members: HashMap<OriginBehaviour, u64> = HashMap::new();
        for number in 0..figures.domains {
            *members.entry(self.origins.behaviour(number)).or_default() += 1;
        }
        figures.behaviours = OriginBehaviour::SHARES
            .iter()
            .map(|(behaviour, _)| {
                let share = members.get(behaviour).copied().unwrap_or_default() as f64;
                let fetches = self.behaviours.get(behaviour).copied().unwrap_or_default();
                (*behaviour, fetches, share / figures.domains as f64)
            })
            .collect();
        figures
    }
}

impl CrawlFigures {
    /// Number of all violations of politeness.
    pub const fn violations(&self) -> u64 {
        self.too_soon + self.at_once + self.despite_retry_after + self.block_full
    }

    /// Ratio of the busiest five minutes to the mean.
    pub fn peak_to_mean(&self) -> f64 {
        f64::from(self.peak) / self.mean
    }

    /// Share of 304 among the unchanged responses of validating origins.
    pub fn not_modified_share(&self) -> f64 {
        self.not_modified as f64 / self.unchanged as f64
    }

    /// The same, without the full fetches that docs/develop/model.md#crawl-schedule demands.
    pub fn not_modified_share_of_conditional(&self) -> f64 {
        self.not_modified as f64 / self.unchanged_conditional as f64
    }
}

impl fmt::Display for CrawlFigures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.elapsed.as_secs_f64();
        writeln!(f, "{:<52} {}", "domains", self.domains)?;
        writeln!(
            f,
            "{:<52} {} ({:.0}/s)",
            "fetches",
            self.fetches,
            self.fetches as f64 / seconds
        )?;
        writeln!(
            f,
            "{:<52} {} (target 0): {} too soon, {} at once, {} despite Retry-After, {} into a full block",
            "politeness violations",
            self.violations(),
            self.too_soon,
            self.at_once,
            self.despite_retry_after,
            self.block_full
        )?;
        writeln!(
            f,
            "{:<52} {:.4} % (target 99.9); {} late fetches",
            "cards within their promised freshness",
            self.fresh * 100.0,
            self.late_looks
        )?;
        writeln!(
            f,
            "{:<52} {:.3} (target 1.2): {} against {:.1}",
            "peak to mean, 5 minutes, after the first day",
            self.peak_to_mean(),
            self.peak,
            self.mean
        )?;
        writeln!(
            f,
            "{:<52} {:.3}",
            "the same, each day against its own mean", self.peak_to_mean_of_day
        )?;
        let busiest = self.busiest.iter().map(|(minute, fetches)| {
            let (days, hours) = (minute / 1_440, minute / 60 % 24);
            format!("{fetches} on day {days} at {hours:02}:{:02}", minute % 60)
        });
        writeln!(
            f,
            "{:<52} {}",
            "busiest windows",
            busiest.collect::<Vec<_>>().join(", ")
        )?;
        writeln!(
            f,
            "{:<52} {:.2} % (target 95); of conditional fetches {:.2} %",
            "304 among fetches of unchanged, validated cards",
            self.not_modified_share() * 100.0,
            self.not_modified_share_of_conditional() * 100.0
        )?;
        writeln!(
            f,
            "{:<52} {} MiB (target 512)",
            "peak anonymous memory",
            self.memory / 1024 / 1024
        )?;
        writeln!(f, "{:<52} {seconds:.0} s", "took")?;
        writeln!(f, "{:<52} {:>9} {:>12}", "origins", "share", "fetches")?;
        for (behaviour, fetches, share) in &self.behaviours {
            let name = format!("  {behaviour:?}");
            writeln!(f, "{name:<52} {:>8.2}% {fetches:>12}", share * 100.0)?;
        }
        Ok(())
    }
}
