//! Spans for traces: which spans are exported, and how counts are written in them.

/// The target of the spans that are exported as traces, and of nothing else. Their fields hold no secret, no text of a
/// card and no query.
pub const TRACE_TARGET: &str = "otlp";

/// A count as an attribute of a span: the exporter writes signed numbers as numbers, and others as text.
pub fn count_attribute(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
