//! The span of a commit in traces: which kinds of events it writes, and for which agents.

use std::collections::BTreeSet;

use a2a_crawler::trace_spans::{TRACE_TARGET, count_attribute};
use tracing::Span;
use tracing::field::Empty;
use uuid::Uuid;

use super::ChangeSet;

/// Maximum number of agents that a span names.
const MAX_NAMED_AGENTS: usize = 8;

impl ChangeSet<'_> {
    /// Starts the span of the commit of these changes.
    pub fn start_commit_span(&self) -> Span {
        let span = tracing::trace_span!(
            target: TRACE_TARGET,
            "commit",
            events = count_attribute(self.events.len()),
            kinds = Empty,
            agents = Empty,
        );
        if span.is_disabled() {
            return span;
        }
        let kinds: BTreeSet<&str> = self
            .events
            .iter()
            .map(|event| event.kind.as_str())
            .collect();
        let kinds: Vec<&str> = kinds.into_iter().collect();
        let agents = self.events.iter().filter_map(|event| event.agent_id);
        let agents: BTreeSet<Uuid> = agents.collect();
        let named = agents.iter().take(MAX_NAMED_AGENTS);
        let named: Vec<String> = named.map(Uuid::to_string).collect();
        span.record("kinds", kinds.join(",").as_str());
        span.record("agents", named.join(",").as_str());
        span
    }
}
