//! Gauges that scrapes read from the database. While it does not respond, the last readings are served with their age.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use a2a_registry_store::operating_counts::HookCounts;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode_registry;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use super::{METRIC_PREFIX, SecondsGauge, register_metric, register_seconds};

/// Minimum time between two readings, however often the metrics are scraped.
pub const READ_INTERVAL: Duration = Duration::from_secs(15);

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DatabaseReadings {
    pub visits_due: i64,
    pub visits_overdue: i64,
    /// How long the oldest due visit has been due.
    pub oldest_due_visit_age: Duration,
    pub open_reviews: i64,
    pub oldest_open_review_age: Duration,
    /// The number of holds by kind.
    pub holds: Vec<(&'static str, i64)>,
    /// The number of agents with a checked endpoint by its last result.
    pub endpoints: Vec<(&'static str, i64)>,
    /// The number of approvals that end within a number of days.
    pub approvals_ending: [(&'static str, i64); 2],
    pub hooks: HookCounts,
    /// The age of the oldest event that the index has not applied.
    pub index_lag: Duration,
    pub is_read_only: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct HoldLabels {
    hold: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct EndpointLabels {
    endpoint: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct TermLabels {
    within_days: &'static str,
}

/// When the database was last read, and what was read.
#[derive(Debug, Default)]
struct LastReadings {
    last_attempt: Option<Duration>,
    read: Option<(Duration, DatabaseReadings)>,
}

#[derive(Debug)]
pub struct DatabaseGauges {
    registry: Registry,
    last: Mutex<LastReadings>,
    readings_age: SecondsGauge,
    visits_due: Gauge,
    visits_overdue: Gauge,
    oldest_due_visit_age: SecondsGauge,
    open_reviews: Gauge,
    oldest_open_review_age: SecondsGauge,
    holds: Family<HoldLabels, Gauge>,
    endpoints: Family<EndpointLabels, Gauge>,
    approvals_ending: Family<TermLabels, Gauge>,
    hooks: HookGauges,
    index_lag: SecondsGauge,
    read_only: Gauge,
}

#[derive(Debug)]
struct HookGauges {
    failing: Gauge,
    waiting: Gauge,
    dead: Gauge,
}

impl HookGauges {
    fn new(registry: &mut Registry) -> Self {
        Self {
            failing: register_metric(
                registry,
                "hooks_failing",
                "Active hooks whose last deliveries have failed",
            ),
            waiting: register_metric(
                registry,
                "hook_deliveries_waiting",
                "Deliveries to hooks that wait, for the first attempt or another; at most 100,000 are counted",
            ),
            dead: register_metric(
                registry,
                "hook_deliveries_dead",
                "Deliveries to hooks that were given up and can be replayed; at most 100,000 are counted",
            ),
        }
    }

    fn set(&self, counts: HookCounts) {
        self.failing.set(counts.failing);
        self.waiting.set(counts.waiting);
        self.dead.set(counts.dead);
    }
}

fn register_endpoints(registry: &mut Registry) -> Family<EndpointLabels, Gauge> {
    let help = "Agents with a checked endpoint, by the result of its last check; at most 100,000 are counted";
    register_metric(registry, "agents_by_endpoint", help)
}

impl DatabaseGauges {
    pub(super) fn new() -> Self {
        let mut own = Registry::with_prefix(METRIC_PREFIX);
        let all = &mut own;
        Self {
            readings_age: register_seconds(
                all,
                "database_readings_age",
                "Time since the gauges that come from the database were read",
            ),
            visits_due: register_metric(
                all,
                "crawl_visits_due",
                "Visits that are due and not under way; at most 100,000 requested and as many planned are counted",
            ),
            visits_overdue: register_metric(
                all,
                "crawl_visits_overdue",
                "Visits that have been due for more than 15 minutes, counted like those that are due",
            ),
            oldest_due_visit_age: register_seconds(
                all,
                "crawl_oldest_due_visit_age",
                "Time for which the oldest due visit has been due",
            ),
            open_reviews: register_metric(
                all,
                "reviews_open",
                "Open reviews; at most 100,000 are counted",
            ),
            oldest_open_review_age: register_seconds(
                all,
                "reviews_oldest_open_age",
                "Time since the oldest open review was opened",
            ),
            holds: register_metric(
                all,
                "holds",
                "Holds on agents that are not retired, by kind; at most 100,000 are counted",
            ),
            endpoints: register_endpoints(all),
            approvals_ending: register_metric(
                all,
                "approvals_ending",
                "Approvals whose term ends within so many days; at most 200,000 are counted",
            ),
            hooks: HookGauges::new(all),
            index_lag: register_seconds(
                all,
                "index_lag",
                "Age of the oldest event that the index has not applied",
            ),
            read_only: register_metric(
                all,
                "database_read_only",
                "1 if the database accepts no writes, because it is read-only or its disk is full, else 0",
            ),
            last: Mutex::default(),
            registry: own,
        }
    }

    /// Whether the database should be read now. If so, no other caller is told to read it for [`READ_INTERVAL`].
    pub fn begin_reading(&self, now: Duration) -> bool {
        let mut last = self.lock();
        let is_due = last
            .last_attempt
            .is_none_or(|attempt| now.saturating_sub(attempt) >= READ_INTERVAL);
        if is_due {
            last.last_attempt = Some(now);
        }
        is_due
    }

    /// Stores what was read at `read_at`.
    pub fn store_readings(&self, read_at: Duration, readings: DatabaseReadings) {
        self.lock().read = Some((read_at, readings));
    }

    /// Appends the last readings; nothing if there are none, because a zero would be wrong.
    pub(super) fn encode(&self, text: &mut String, now: Duration) -> Result<(), std::fmt::Error> {
        let Some((read_at, readings)) = self.lock().read.clone() else {
            return Ok(());
        };
        let age = now.saturating_sub(read_at);
        self.readings_age.set(age.as_secs_f64());
        self.visits_due.set(readings.visits_due);
        self.visits_overdue.set(readings.visits_overdue);
        self.oldest_due_visit_age
            .set(readings.oldest_due_visit_age.as_secs_f64());
        self.open_reviews.set(readings.open_reviews);
        self.oldest_open_review_age
            .set(readings.oldest_open_review_age.as_secs_f64());
        for (hold, count) in readings.holds {
            self.holds.get_or_create(&HoldLabels { hold }).set(count);
        }
        for (endpoint, count) in readings.endpoints {
            let labels = EndpointLabels { endpoint };
            self.endpoints.get_or_create(&labels).set(count);
        }
        for (within_days, count) in readings.approvals_ending {
            let labels = TermLabels { within_days };
            self.approvals_ending.get_or_create(&labels).set(count);
        }
        self.hooks.set(readings.hooks);
        self.index_lag.set(readings.index_lag.as_secs_f64());
        self.read_only.set(readings.is_read_only.into());
        encode_registry(text, &self.registry)
    }

    fn lock(&self) -> MutexGuard<'_, LastReadings> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn encoded(gauges: &DatabaseGauges, now: u64) -> String {
        let mut text = String::new();
        gauges.encode(&mut text, Duration::from_secs(now)).unwrap();
        text
    }

    #[test]
    fn the_database_is_read_once_in_an_interval_and_the_last_readings_keep_their_age() {
        let gauges = DatabaseGauges::new();
        assert_eq!(encoded(&gauges, 99), "");
        let start = Duration::from_secs(100);
        assert!(gauges.begin_reading(start));
        assert!(!gauges.begin_reading(start));
        let readings = DatabaseReadings {
            open_reviews: 3,
            oldest_open_review_age: Duration::from_secs(60),
            holds: vec![("operator", 2), ("other", 0)],
            endpoints: vec![("answers", 5)],
            approvals_ending: [("7", 1), ("30", 4)],
            hooks: HookCounts {
                failing: 2,
                waiting: 6,
                dead: 7,
            },
            is_read_only: true,
            ..DatabaseReadings::default()
        };
        gauges.store_readings(start, readings);
        // The next attempt finds a database that does not respond.
        let next = start + READ_INTERVAL;
        assert!(!gauges.begin_reading(next.checked_sub(Duration::from_micros(1)).unwrap()));
        assert!(gauges.begin_reading(next));
        assert!(!gauges.begin_reading(next));
        let text = encoded(&gauges, 118);
        for line in [
            "a2a_registry_database_readings_age_seconds 18.0",
            "a2a_registry_reviews_open 3",
            "a2a_registry_reviews_oldest_open_age_seconds 60.0",
            "a2a_registry_crawl_visits_due 0",
            "a2a_registry_holds{hold=\"operator\"} 2",
            "a2a_registry_holds{hold=\"other\"} 0",
            "a2a_registry_agents_by_endpoint{endpoint=\"answers\"} 5",
            "a2a_registry_approvals_ending{within_days=\"30\"} 4",
            "a2a_registry_hooks_failing 2",
            "a2a_registry_hook_deliveries_waiting 6",
            "a2a_registry_hook_deliveries_dead 7",
            "a2a_registry_database_read_only 1",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}: {text}");
        }
    }
}
