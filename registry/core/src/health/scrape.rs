//! Scrapes: the metrics with their current values, of which some are read from the database.

use std::fmt;
use std::time::Duration;

use a2a_registry_domain::endpoint::EndpointState;
use a2a_registry_domain::lifecycle::Hold;
use a2a_registry_domain::timestamp::{DAY, MINUTE, Timestamp};
use a2a_registry_store::{StoreErrorKind, events, operating_counts};

use crate::context::AppContext;
use crate::database_health::database_silence;
use crate::error::{AppError, Result};
use crate::health::database_writes::check_database_writes;
use crate::metrics::database_gauges::DatabaseReadings;
use crate::metrics::state_metrics::StateValues;
use crate::metrics::{GaugeValues, Metrics};
use crate::search::count_public_agents;
use crate::visits::outage::breaker_open_since;

/// Time limit for reading the index, and for reading the database. Both are read at once, after the caller was
/// authenticated, and a scrape takes at most two seconds.
const READ_TIMEOUT: Duration = Duration::from_secs(1);

/// A visit is overdue when it has been due for longer.
const OVERDUE_AFTER: i64 = 15 * MINUTE;

/// Maximum number of rows of each kind that one statement counts.
const MAX_COUNTED: u64 = 100_000;

/// Encodes all metrics in the `OpenMetrics` text format, with the number of open streams. What cannot be read in time
/// keeps its last value.
pub async fn encode_current_metrics(
    context: &AppContext,
    metrics: &Metrics,
    streams: i64,
) -> Result<String, fmt::Error> {
    let (agents, ()) = tokio::join!(
        tokio::time::timeout(READ_TIMEOUT, count_public_agents(context)),
        refresh_database_readings(context, metrics)
    );
    let applied_seq = context.index.applied_seq();
    let appended = *context.event_signal().borrow();
    metrics.encode_all(&GaugeValues {
        now: context.monotonic_time(),
        applied_seq,
        index_lag: appended.saturating_sub(applied_seq).max(0),
        agents: agents.ok(),
        streams,
        breaker_open: breaker_open_since(context).is_some(),
        damaged_cards: i64::try_from(context.damaged_card_count()).unwrap_or(i64::MAX),
        states: state_values(context),
    })
}

fn state_values(context: &AppContext) -> StateValues {
    let policies = &context.policy_sets;
    let count = |waiting: usize| i64::try_from(waiting).unwrap_or(i64::MAX);
    StateValues {
        searches_waiting: count(context.search_cache.permits.count_waiting()),
        encodings_waiting: count(context.semantic_search.permits.count_waiting()),
        policy_set: i64::try_from(policies.enforced_set().number()).unwrap_or(i64::MAX),
        policy_switches: policies.switch_count(),
        policy_activation_failed: policies.has_activation_failed(),
        provider_errors: context.providers.error_counts(),
        database_silence: database_silence(context),
        hook_deliveries: context.delivery_counts.by_result(),
    }
}

/// Reads the database for the metrics, unless that was tried a short time ago.
async fn refresh_database_readings(context: &AppContext, metrics: &Metrics) {
    let now = context.monotonic_time();
    if !metrics.database.begin_reading(now) {
        return;
    }
    match tokio::time::timeout(READ_TIMEOUT, read_database(context)).await {
        Ok(Ok(readings)) => metrics.database.store_readings(now, readings),
        Ok(Err(error)) => {
            let error = error.log_message();
            tracing::warn!(error, "the database cannot be read for the metrics");
        }
        Err(_) => tracing::warn!("the database cannot be read for the metrics in time"),
    }
}

async fn read_database(context: &AppContext) -> Result<DatabaseReadings> {
    let now = context.now();
    let is_read_only = match check_database_writes(context).await {
        Ok(()) => false,
        Err(StoreErrorKind::ReadOnly | StoreErrorKind::StorageFull) => true,
        Err(_) => return Err(AppError::unavailable("The database does not respond.", 5)),
    };
    let read = context.store.begin_read().await?;
    let overdue_by = now.0.saturating_sub(OVERDUE_AFTER);
    let visits = operating_counts::count_due_visits(&read, now.0, overdue_by, MAX_COUNTED).await?;
    let reviews = operating_counts::count_open_reviews(&read, MAX_COUNTED).await?;
    let holds = operating_counts::count_holds_by_kind(&read, MAX_COUNTED).await?;
    let endpoints = operating_counts::count_agents_by_endpoint(&read, MAX_COUNTED).await?;
    let approvals = match context.config().governance.approval_term() {
        Some(term) => {
            let ends = [7, 30].map(|days| now.0.saturating_add(days * DAY));
            operating_counts::count_ending_approvals(&read, term, now.0, ends, MAX_COUNTED).await?
        }
        None => operating_counts::EndingApprovals::default(),
    };
    let hooks = operating_counts::count_hooks(&read, MAX_COUNTED).await?;
    let unapplied = events::events_after(&read, context.index.applied_seq(), 1).await?;
    Ok(DatabaseReadings {
        visits_due: visits.due,
        visits_overdue: visits.overdue,
        oldest_due_visit_age: age(now, visits.oldest),
        open_reviews: reviews.open,
        oldest_open_review_age: age(now, reviews.oldest),
        holds: holds_of_known_kinds(&holds),
        endpoints: endpoints_by_state(&endpoints),
        approvals_ending: [("7", approvals.sooner), ("30", approvals.later)],
        hooks,
        index_lag: age(now, unapplied.first().map(|event| event.at)),
        is_read_only,
    })
}

/// The time since `at`; zero if there is none, or if it is in the future.
fn age(now: Timestamp, at: Option<i64>) -> Duration {
    let age = at.map_or(0, |at| now.0.saturating_sub(at));
    Duration::from_micros(u64::try_from(age).unwrap_or(0))
}

/// The number of agents by every result of an endpoint check, so that each has a series from the start.
fn endpoints_by_state(counts: &[(String, i64)]) -> Vec<(&'static str, i64)> {
    let count = |state: &str| counts.iter().find(|(known, _)| known == state);
    let states = EndpointState::ALL.iter().map(|state| {
        let state = state.as_str();
        (state, count(state).map_or(0, |(_, agents)| *agents))
    });
    states.collect()
}

/// The number of holds of every kind, so that each has a series from the start; kinds that this program does not know
/// are counted together.
fn holds_of_known_kinds(counts: &[(String, i64)]) -> Vec<(&'static str, i64)> {
    let count = |kind: &str| counts.iter().find(|(hold, _)| hold == kind);
    let known = Hold::ALL.iter().map(|hold| {
        let kind = hold.as_str();
        (kind, count(kind).map_or(0, |(_, agents)| *agents))
    });
    let mut holds: Vec<(&'static str, i64)> = known.collect();
    let all: i64 = counts.iter().map(|(_, agents)| agents).sum();
    let known: i64 = holds.iter().map(|(_, agents)| agents).sum();
    holds.push(("other", all - known));
    holds
}
