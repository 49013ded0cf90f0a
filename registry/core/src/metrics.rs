//! Metrics in the Prometheus format. No label names a domain or an agent, so that the number of series does not depend
//! on the data.

pub mod database_gauges;
mod process_collector;
pub mod span_counters;
pub mod state_metrics;

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::{Duration, Instant};

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::{encode, encode_registry};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Metric, Registry, Unit};

use database_gauges::DatabaseGauges;
use process_collector::ProcessCollector;
use span_counters::SpanCounters;
use state_metrics::{StateMetrics, StateValues};

/// The beginning of all names but those of the process, which Prometheus has named.
const METRIC_PREFIX: &str = "a2a_registry";

type SecondsGauge = Gauge<f64, AtomicU64>;

/// Upper bounds of the latency buckets, in seconds.
const LATENCY_BUCKETS: [f64; 12] = [
    0.000_1, 0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.1, 0.5, 1.0, 5.0,
];

/// Maximum number of fetch outcomes that have their own series.
const MAX_OUTCOMES: usize = 64;

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RequestLabels {
    route: &'static str,
    method: &'static str,
    status: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RouteLabels {
    route: &'static str,
    method: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct SignInRefusalLabels {
    reason: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct CrawlOutcomeLabels {
    outcome: String,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GaugeValues {
    /// Monotonic time of the scrape.
    pub now: Duration,
    /// The last event that the index has applied.
    pub applied_seq: i64,
    /// How many events the index is behind.
    pub index_lag: i64,
    /// `None` if they could not be counted in time: the last number stays.
    pub agents: Option<i64>,
    pub streams: i64,
    pub breaker_open: bool,
    /// Stored cards that were found damaged.
    pub damaged_cards: i64,
    pub states: StateValues,
}

#[derive(Debug)]
pub struct Metrics {
    /// Public metrics: those of the process itself.
    process_registry: Registry,
    /// Restricted metrics, which reveal the load and size of the registry. Those of the operating system are among
    /// them: from processor time and memory anyone could tell what a request has read.
    restricted_registry: Registry,
    system_registry: Registry,
    /// Gauges that are read from the database; restricted too.
    pub database: DatabaseGauges,
    state: StateMetrics,
    requests: Family<RequestLabels, Counter>,
    latency: Family<RouteLabels, Histogram, fn() -> Histogram>,
    outcomes: Family<CrawlOutcomeLabels, Counter>,
    outcome_names: std::sync::Mutex<Vec<String>>,
    applied_seq: Gauge,
    index_lag: Gauge,
    agents: Gauge,
    streams: Gauge,
    breaker_open: Gauge,
    damaged_cards: Gauge,
    in_flight: Gauge<i64>,
    malformed_requests: Counter,
    refused_connections: Counter,
    timed_out_connections: Counter,
    sign_in_refusals: Family<SignInRefusalLabels, Counter>,
    cards_delivered: Counter<u64, AtomicU64>,
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

/// Creates a metric in a metrics registry.
fn register_metric<M: Metric + Clone + Default>(
    registry: &mut Registry,
    name: &str,
    help: &str,
) -> M {
    let metric = M::default();
    registry.register(name, help, metric.clone());
    metric
}

/// Creates a gauge of seconds in a metrics registry.
fn register_seconds(registry: &mut Registry, name: &str, help: &str) -> SecondsGauge {
    let gauge = SecondsGauge::default();
    registry.register_with_unit(name, help, Unit::Seconds, gauge.clone());
    gauge
}

/// Creates the latency histogram of requests in a metrics registry.
fn register_latency_histogram(
    registry: &mut Registry,
) -> Family<RouteLabels, Histogram, fn() -> Histogram> {
    let latency =
        Family::new_with_constructor((|| Histogram::new(LATENCY_BUCKETS)) as fn() -> Histogram);
    let help = "Time from the head of a request to the head of its response";
    registry.register_with_unit(
        "http_request_duration",
        help,
        Unit::Seconds,
        latency.clone(),
    );
    latency
}

/// Creates the registry of the figures that the operating system has of this process.
fn create_system_registry() -> Registry {
    let mut registry = Registry::default();
    registry.register_collector(Box::new(ProcessCollector));
    registry
}

impl Metrics {
    pub fn new() -> Self {
        Self::with_span_counters(&SpanCounters::default())
    }

    /// Metrics with these counts of spans, which are counted elsewhere.
    pub fn with_span_counters(spans: &SpanCounters) -> Self {
        let mut process_registry = Registry::with_prefix(METRIC_PREFIX);
        let mut restricted_registry = Registry::with_prefix(METRIC_PREFIX);
        let (own, all) = (&mut process_registry, &mut restricted_registry);
        spans.register(all);
        Self {
            in_flight: register_metric(own, "http_requests_in_flight", "Requests in progress"),
            malformed_requests: register_metric(
                own,
                "http_malformed_requests",
                "Requests that are not valid HTTP/1.1",
            ),
            refused_connections: register_metric(
                own,
                "http_connections_refused",
                "Connections refused because of the total limit or the limit of their address",
            ),
            timed_out_connections: register_metric(
                own,
                "http_connections_cut_off",
                "Connections ended because their client was idle for too long",
            ),
            streams: register_metric(own, "event_streams", "Open event streams"),
            requests: register_metric(all, "http_requests", "Requests answered"),
            latency: register_latency_histogram(all),
            sign_in_refusals: register_metric(
                all,
                "sign_in_refusals",
                "Tokens and sign-ins that were refused, by reason",
            ),
            outcomes: register_metric(all, "crawl_outcomes", "Attempts at a source, by outcome"),
            cards_delivered: register_metric(all, "crawl_cards", "Cards fetched, changed or not"),
            breaker_open: register_metric(
                all,
                "crawl_braked",
                "1 while the circuit breaker is open because many fetches are failing, else 0",
            ),
            applied_seq: register_metric(
                all,
                "index_applied_seq",
                "The last event the index has applied",
            ),
            index_lag: register_metric(
                all,
                "index_lag_events",
                "Events the index has not applied yet",
            ),
            agents: register_metric(all, "index_agents", "Public agents in the index"),
            damaged_cards: register_metric(
                all,
                "damaged_cards",
                "Stored cards whose bytes do not match their digest",
            ),
            outcome_names: std::sync::Mutex::default(),
            database: DatabaseGauges::new(),
            state: StateMetrics::new(all),
            system_registry: create_system_registry(),
            process_registry,
            restricted_registry,
        }
    }

    /// The number of requests without a response.
    pub fn requests_in_flight(&self) -> i64 {
        self.in_flight.get()
    }

    pub fn count_malformed_request(&self) {
        self.malformed_requests.inc();
    }

    pub fn count_refused_connection(&self) {
        self.refused_connections.inc();
    }

    pub fn count_timed_out_connection(&self) {
        self.timed_out_connections.inc();
    }

    pub fn count_refused_sign_in(&self, reason: &'static str) {
        self.sign_in_refusals
            .get_or_create(&SignInRefusalLabels { reason })
            .inc();
    }

    /// Counts the outcome of an attempt at a source: `card`, `not_modified`, `timeout`, …
    ///
    /// Beyond 64 different outcomes all others count as `other`.
    pub fn count_crawl_outcome(&self, outcome: &str) {
        if matches!(outcome, "card" | "not_modified") {
            self.cards_delivered.inc();
        }
        let outcome = if self.reserve_outcome_series(outcome) {
            outcome
        } else {
            "other"
        };
        self.outcomes
            .get_or_create(&CrawlOutcomeLabels {
                outcome: outcome.to_owned(),
            })
            .inc();
    }

    fn reserve_outcome_series(&self, outcome: &str) -> bool {
        let names = self.outcome_names.lock();
        let mut names = names.unwrap_or_else(std::sync::PoisonError::into_inner);
        if names.iter().any(|name| name == outcome) {
            return true;
        }
        let room = names.len() < MAX_OUTCOMES;
        if room {
            names.push(outcome.to_owned());
        }
        room
    }

    /// Encodes all metrics in the `OpenMetrics` text format, with these gauge values.
    pub fn encode_all(&self, gauges: &GaugeValues) -> Result<String, std::fmt::Error> {
        self.applied_seq.set(gauges.applied_seq);
        self.index_lag.set(gauges.index_lag);
        if let Some(agents) = gauges.agents {
            self.agents.set(agents);
        }
        self.streams.set(gauges.streams);
        self.breaker_open.set(gauges.breaker_open.into());
        self.damaged_cards.set(gauges.damaged_cards);
        self.state.set_values(&gauges.states);
        let mut text = String::new();
        encode_registry(&mut text, &self.process_registry)?;
        encode_registry(&mut text, &self.system_registry)?;
        self.database.encode(&mut text, gauges.now)?;
        encode(&mut text, &self.restricted_registry)?;
        Ok(text)
    }

    /// Encodes only the metrics of the process, in the same format, with the number of open streams.
    pub fn encode_process_metrics(&self, streams: i64) -> Result<String, std::fmt::Error> {
        self.streams.set(streams);
        let mut text = String::new();
        encode(&mut text, &self.process_registry)?;
        Ok(text)
    }
}

/// The request counters of one worker. Each worker looks up a series only once, because a look-up per request would
/// make workers wait for each other.
#[derive(Debug)]
pub struct WorkerRequestMetrics {
    metrics: Arc<Metrics>,
    /// The series, at most one for each combination of route, method and status class.
    series: RefCell<HashMap<RequestLabels, (Counter, Histogram)>>,
}

impl WorkerRequestMetrics {
    pub fn new(metrics: Arc<Metrics>) -> Self {
        Self {
            metrics,
            series: RefCell::default(),
        }
    }

    pub fn count_started_request(&self) {
        self.metrics.in_flight.inc();
    }

    pub fn count_finished_request(&self) {
        self.metrics.in_flight.dec();
    }

    /// Records a request and how long its response took.
    ///
    /// `route` is the route pattern, never the path; `status` is the response's status code.
    pub fn record_request(
        &self,
        route: &'static str,
        method: &'static str,
        status: u16,
        stopwatch: &Stopwatch,
    ) {
        let class = match status {
            100..=199 => "1xx",
            200..=299 => "2xx",
            300..=399 => "3xx",
            400..=499 => "4xx",
            _ => "5xx",
        };
        let labels = RequestLabels {
            route,
            method,
            status: class,
        };
        let mut series = self.series.borrow_mut();
        let (requests, latency) = series.entry(labels).or_insert_with_key(|labels| {
            let route_labels = RouteLabels { route, method };
            let requests = self.metrics.requests.get_or_create(labels);
            let latency = self.metrics.latency.get_or_create(&route_labels);
            ((*requests).clone(), (*latency).clone())
        });
        requests.inc();
        latency.observe(stopwatch.elapsed_seconds());
    }
}

/// Measures durations. Decisions that depend on time use the `Clock` instead.
#[derive(Debug, Clone, Copy)]
pub struct Stopwatch(Instant);

impl Stopwatch {
    pub fn start() -> Self {
        Self(Instant::now())
    }

    /// Seconds since the start.
    pub fn elapsed_seconds(&self) -> f64 {
        self.0.elapsed().as_secs_f64()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    /// The lines without those of the operating system, which change meanwhile.
    fn without_system(text: &str) -> Vec<&str> {
        text.lines()
            .filter(|line| !line.starts_with("process_"))
            .collect()
    }

    #[test]
    fn counts_what_it_is_told() {
        let metrics = Arc::new(Metrics::new());
        let watch = Stopwatch::start();
        let workers = [(); 2].map(|()| WorkerRequestMetrics::new(Arc::clone(&metrics)));
        for worker in &workers {
            worker.record_request("/v1/agents", "GET", 200, &watch);
            worker.record_request("/v1/agents", "GET", 204, &watch);
            worker.count_started_request();
        }
        workers[1].record_request("/v1/agents", "GET", 304, &watch);
        workers[1].count_finished_request();
        metrics.count_crawl_outcome("card");
        let gauges = GaugeValues {
            applied_seq: 7,
            index_lag: 2,
            agents: Some(3),
            streams: 1,
            breaker_open: true,
            damaged_cards: 4,
            states: StateValues {
                encodings_waiting: 5,
                policy_switches: 6,
                provider_errors: vec![("corp".into(), 8)],
                database_silence: Duration::from_millis(1500),
                ..StateValues::default()
            },
            ..GaugeValues::default()
        };
        let text = metrics.encode_all(&gauges).unwrap();
        let uncounted = GaugeValues {
            agents: None,
            ..gauges
        };
        assert_eq!(
            without_system(&text),
            without_system(&metrics.encode_all(&uncounted).unwrap())
        );
        for line in [
            "a2a_registry_http_requests_total{route=\"/v1/agents\",method=\"GET\",status=\"2xx\"} 4",
            "a2a_registry_http_requests_total{route=\"/v1/agents\",method=\"GET\",status=\"3xx\"} 1",
            "a2a_registry_http_request_duration_seconds_count{route=\"/v1/agents\",method=\"GET\"} 5",
            "a2a_registry_http_requests_in_flight 1",
            "a2a_registry_crawl_outcomes_total{outcome=\"card\"} 1",
            "a2a_registry_index_applied_seq 7",
            "a2a_registry_index_lag_events 2",
            "a2a_registry_index_agents 3",
            "a2a_registry_crawl_braked 1",
            "a2a_registry_damaged_cards 4",
            concat!(
                "a2a_registry_build_info{version=\"",
                env!("CARGO_PKG_VERSION"),
                "\"} 1"
            ),
            "a2a_registry_searches_waiting{waiting_for=\"thread\"} 0",
            "a2a_registry_searches_waiting{waiting_for=\"encoder\"} 5",
            "a2a_registry_policy_switches_total 6",
            "a2a_registry_identity_provider_errors_total{provider=\"corp\"} 8",
            "a2a_registry_database_silence_seconds 1.5",
        ] {
            assert!(
                text.lines().any(|found| found == line),
                "{line} is missing in:\n{text}"
            );
        }
    }

    #[test]
    fn the_number_of_outcomes_is_bounded() {
        let metrics = Metrics::new();
        for number in 0..MAX_OUTCOMES + 10 {
            metrics.count_crawl_outcome(&format!("outcome-{number}"));
        }
        let text = metrics.encode_all(&GaugeValues::default()).unwrap();
        let series = text
            .lines()
            .filter(|line| line.contains("crawl_outcomes_total{"))
            .count();
        assert_eq!(series, MAX_OUTCOMES + 1);
        assert!(text.contains("outcome=\"other\"} 10"));
    }
}
