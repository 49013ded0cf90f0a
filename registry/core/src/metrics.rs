//! Metrics in the Prometheus format. No label names a domain or an agent, so that the number of series does not depend
//! on the data.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Instant;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::{encode, encode_registry};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Metric, Registry, Unit};

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

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct GaugeValues {
    /// The last event that the index has applied.
    pub applied_seq: i64,
    /// How many events the index is behind.
    pub index_lag: i64,
    pub agents: i64,
    pub streams: i64,
    pub breaker_open: bool,
    /// Stored cards that were found damaged.
    pub damaged_cards: i64,
}

#[derive(Debug)]
pub struct Metrics {
    /// Public metrics: those of the process itself.
    process_registry: Registry,
    /// Restricted metrics, which reveal the load and size of the registry.
    restricted_registry: Registry,
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

impl Metrics {
    pub fn new() -> Self {
        let mut process_registry = Registry::with_prefix("a2a_registry");
        let mut restricted_registry = Registry::with_prefix("a2a_registry");
        let (own, all) = (&mut process_registry, &mut restricted_registry);
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
    pub fn encode_all(&self, gauges: GaugeValues) -> Result<String, std::fmt::Error> {
        self.applied_seq.set(gauges.applied_seq);
        self.index_lag.set(gauges.index_lag);
        self.agents.set(gauges.agents);
        self.streams.set(gauges.streams);
        self.breaker_open.set(gauges.breaker_open.into());
        self.damaged_cards.set(gauges.damaged_cards);
        let mut text = String::new();
        encode_registry(&mut text, &self.process_registry)?;
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
            agents: 3,
            streams: 1,
            breaker_open: true,
            damaged_cards: 4,
        };
        let text = metrics.encode_all(gauges).unwrap();
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
        let text = metrics.encode_all(GaugeValues::default()).unwrap();
        let series = text
            .lines()
            .filter(|line| line.contains("crawl_outcomes_total{"))
            .count();
        assert_eq!(series, MAX_OUTCOMES + 1);
        assert!(text.contains("outcome=\"other\"} 10"));
    }
}
