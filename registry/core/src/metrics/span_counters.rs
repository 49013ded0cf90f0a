//! Counts of the spans that are sent to a collector, or lost.

use std::sync::atomic::AtomicU64;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct SpanLabels {
    outcome: &'static str,
}

/// What became of the spans of this process. Clones count together.
#[derive(Debug, Clone, Default)]
pub struct SpanCounters(Family<SpanLabels, Counter<u64, AtomicU64>>);

impl SpanCounters {
    pub fn count_sent(&self, spans: usize) {
        self.count("sent", spans);
    }

    /// Counts spans that the collector did not accept.
    pub fn count_failed(&self, spans: usize) {
        self.count("failed", spans);
    }

    /// Counts a span for which the queue had no room.
    pub fn count_dropped(&self) {
        self.count("dropped", 1);
    }

    fn count(&self, outcome: &'static str, spans: usize) {
        let counter = self.0.get_or_create(&SpanLabels { outcome });
        counter.inc_by(u64::try_from(spans).unwrap_or(u64::MAX));
    }

    pub(super) fn register(&self, registry: &mut Registry) {
        registry.register(
            "trace_spans",
            "Spans sent to the collector, not accepted by it (failed), and dropped because too many waited",
            self.0.clone(),
        );
    }
}
