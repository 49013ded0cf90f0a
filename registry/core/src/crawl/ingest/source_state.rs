//! The state of a source after a fetch: freshness, failures, and its next fetch.

use a2a_crawler::liveness::{self, FailureCause, FailureHistory, Liveness};
use a2a_crawler::schedule::{self, LastFetch};
use a2a_crawler::{AttemptOutcome, Freshness, SourceResult, VisitOutcome};
use a2a_registry_domain::lifecycle::LivenessState;
use a2a_registry_domain::source::SourceState;
use a2a_registry_domain::timestamp::{DAY, Timestamp};
use a2a_registry_store::entity::source;
use time::{Duration, OffsetDateTime};
use uuid::Uuid;

use crate::crawl::ingest::batch::IngestBatch;
use crate::process_state::crawl_state::CrawlState;

/// The fetch interval for a catalog that does not exist.
pub const ABSENT_CATALOG_INTERVAL: i64 = 7 * DAY;

/// Whether an agent that has been gone since `gone_since` is due for retirement.
pub fn is_retirement_due(gone_since: i64, now: Timestamp) -> bool {
    liveness::is_due_for_retirement(Timestamp(gone_since).into(), now.into())
}

/// The liveness of an agent, combined from its sources.
pub struct CombinedLiveness {
    pub state: LivenessState,
    pub reason: Option<String>,
    pub last_seen_at: Option<i64>,
}

/// The random jitter for the sources of one visit. All of them use the same number, so that sources that were fetched
/// together remain due together.
pub struct JitterPicker<'a> {
    stream: &'a CrawlState,
    seed: f64,
    chosen: Option<f64>,
}

impl<'a> JitterPicker<'a> {
    /// Creates a picker; `seed` is a random number in 0..1.
    pub const fn new(stream: &'a CrawlState, seed: f64) -> Self {
        Self {
            stream,
            seed,
            chosen: None,
        }
    }

    /// Chooses the number on the first call, and returns the same number on later calls. `time_for` returns the due
    /// time that results from a number.
    fn choose(&mut self, time_for: impl Fn(f64) -> OffsetDateTime) -> f64 {
        let least = || {
            self.stream
                .lock_visit_calendar()
                .least_busy_jitter(self.seed, time_for)
        };
        *self.chosen.get_or_insert_with(least)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ContentChange {
    /// A full response with new content.
    Changed,
    /// A full response with the same content.
    Same,
    NotModified,
}

impl ContentChange {
    pub const fn from_full_fetch(changed: bool) -> Self {
        if changed { Self::Changed } else { Self::Same }
    }
}

impl IngestBatch {
    pub fn record_success(
        &mut self,
        source: i64,
        freshness: &Freshness,
        content_change: ContentChange,
        now: Timestamp,
        jitter: &mut JitterPicker<'_>,
    ) {
        let Some(row) = self.sources.get_mut(&source) else {
            return;
        };
        let is_full = content_change != ContentChange::NotModified;
        let fetch_result = match content_change {
            _ if row.last_success_at.is_none() => {
                let domain = self.domains.get(&row.domain_id);
                let phase = domain.map_or(0, |domain| schedule::host_interval_phase(&domain.name));
                LastFetch::First { phase }
            }
            ContentChange::Changed => LastFetch::Changed,
            ContentChange::Same | ContentChange::NotModified => LastFetch::Unchanged,
        };
        if let Some(validators) = &freshness.validators {
            row.validator_url = Some(validators.url.clone());
            row.etag.clone_from(&validators.etag);
            row.last_modified.clone_from(&validators.last_modified);
        } else if is_full {
            row.etag = None;
            row.last_modified = None;
        }
        row.last_success_at = Some(now.0);
        if is_full {
            row.last_full_at = Some(now.0);
            row.full_wanted = false;
        }
        store_failure_history(row, FailureHistory::default(), 0);
        row.liveness = SourceState::Fresh.into();
        row.liveness_reason = None;
        schedule_next_fetch(row, fetch_result, freshness.max_age, now, jitter);
    }

    /// Records a failed fetch of a card. While the circuit breaker is open, the liveness of the source does not
    /// change, and the fetch is retried soon.
    pub fn record_failure(
        &mut self,
        source: i64,
        outcome: AttemptOutcome,
        retry_after: Option<u32>,
        now: Timestamp,
        jitter: &mut JitterPicker<'_>,
    ) {
        let breaker_open = self.breaker_open;
        let Some(row) = self.sources.get_mut(&source) else {
            return;
        };
        row.failures = row.failures.saturating_add(1);
        if !breaker_open {
            set_liveness_after_failure(row, outcome, now);
        }
        let fetch_result = LastFetch::Failed {
            failures: u32::try_from(row.failures).unwrap_or(1),
            retry_after,
            breaker_open,
            timed_out: outcome == AttemptOutcome::Timeout,
        };
        schedule_next_fetch(row, fetch_result, None, now, jitter);
    }

    /// Records a failed fetch of a catalog. A missing catalog is not an error, and is fetched rarely. A catalog
    /// that was never fetched successfully counts as missing too.
    pub fn record_catalog_failure(
        &mut self,
        source: i64,
        outcome: AttemptOutcome,
        retry_after: Option<u32>,
        now: Timestamp,
        jitter: &mut JitterPicker<'_>,
    ) {
        self.record_failure(source, outcome, retry_after, now, jitter);
        let Some(row) = self.sources.get_mut(&source) else {
            return;
        };
        let is_absent = indicates_missing_catalog(outcome);
        if is_absent || row.last_success_at.is_none() {
            let failures = if is_absent { 0 } else { row.failures };
            store_failure_history(row, FailureHistory::default(), failures);
            row.liveness = SourceState::Absent.into();
            row.liveness_reason = None;
            row.full_wanted = false;
            row.validator_url = None;
        }
        if is_absent {
            row.next_due_at = now.plus_micros(ABSENT_CATALOG_INTERVAL).0;
        }
    }

    /// Whether a source of a visit has just begun to time out. The cause may be a server that starts on demand, so the
    /// next visit is due before the usual spacing has passed.
    pub fn has_begun_timing_out(&self, outcome: &VisitOutcome) -> bool {
        outcome.sources.iter().any(|result| {
            let row = self.sources.get(&result.source_key);
            let failures = row.and_then(|row| u32::try_from(row.failures).ok());
            let timed_out = matches!(
                &result.result,
                SourceResult::Failed {
                    outcome: AttemptOutcome::Timeout,
                    ..
                }
            );
            schedule::is_retried_soon(failures.unwrap_or(0), timed_out, self.breaker_open)
        })
    }

    /// The best liveness of an agent's sources. An agent without a source is gone: no catalog lists it.
    pub fn agent_liveness(&self, agent: Uuid) -> Option<CombinedLiveness> {
        // A source that has not been fetched yet, or is in a state that only a later build knows, counts as stale.
        let state = |source: &source::Model| match source.liveness.known_value() {
            Some(SourceState::Fresh) => LivenessState::Fresh,
            Some(SourceState::Gone) => LivenessState::Gone,
            Some(
                SourceState::New | SourceState::Recorded | SourceState::Stale | SourceState::Absent,
            )
            | None => LivenessState::Stale,
        };
        let domain = self.agents.get(&agent)?.agent.domain_id;
        let agent_sources = || {
            self.live_domain_sources(domain)
                .filter(|source| source.agent_id == Some(agent))
        };
        let Some(best) = agent_sources().min_by_key(|source| state(source)) else {
            return Some(CombinedLiveness {
                state: LivenessState::Gone,
                reason: Some("the domain's catalog no longer lists it".into()),
                last_seen_at: None,
            });
        };
        Some(CombinedLiveness {
            state: state(best),
            reason: best.liveness_reason.clone(),
            last_seen_at: agent_sources()
                .filter_map(|source| source.last_success_at)
                .max(),
        })
    }
}

/// Whether a response means that there is no catalog, so that an early retry is pointless.
const fn indicates_missing_catalog(outcome: AttemptOutcome) -> bool {
    matches!(
        outcome,
        AttemptOutcome::NotFound
            | AttemptOutcome::Gone
            | AttemptOutcome::Forbidden
            | AttemptOutcome::NotACatalog
            | AttemptOutcome::BadRedirect
    )
}

/// Sets the liveness of a source after a failure.
fn set_liveness_after_failure(row: &mut source::Model, outcome: AttemptOutcome, now: Timestamp) {
    let history = failure_history(row).with_fetch(outcome, now.into());
    let (state, reason) = history.liveness_at(now.into());
    store_failure_history(row, history, row.failures);
    row.liveness = match state {
        Liveness::Fresh => SourceState::Fresh,
        Liveness::Stale => SourceState::Stale,
        Liveness::Gone => SourceState::Gone,
    }
    .into();
    row.liveness_reason = reason;
    if outcome == AttemptOutcome::TlsInvalid {
        // The stored card is no longer trusted. The next response must contain the card, because a 304 would not show
        // whether the card itself came over valid TLS.
        row.full_wanted = true;
    }
}

/// Schedules the next fetch of a source and sets its interval. A requested fetch does not replace the planned one:
/// both are made.
fn schedule_next_fetch(
    row: &mut source::Model,
    fetch_result: LastFetch,
    max_age: Option<u32>,
    now: Timestamp,
    jitter: &mut JitterPicker<'_>,
) {
    let interval = (row.interval_us > 0).then(|| Duration::microseconds(row.interval_us));
    let next = |random| schedule::next_due(now.into(), fetch_result, interval, max_age, random);
    let next = next(jitter.choose(|random| next(random).due_at));
    let planned = row.planned_at.take().filter(|planned| *planned > now.0);
    let next_due_at = Timestamp::from(next.due_at).0;
    row.next_due_at = planned.map_or(next_due_at, |planned| planned.min(next_due_at));
    row.interval_us = i64::try_from(next.interval.whole_microseconds()).unwrap_or(i64::MAX);
}

fn failure_history(row: &source::Model) -> FailureHistory {
    let moment = |at: i64| OffsetDateTime::from(Timestamp(at));
    let outcome = row
        .failing_as
        .as_deref()
        .and_then(AttemptOutcome::from_name);
    let cause = match (outcome, row.cause_since, row.cause_latest) {
        (Some(outcome), Some(since), Some(latest)) => Some(FailureCause {
            outcome,
            since: moment(since),
            latest_at: moment(latest),
            fetch_count: u32::try_from(row.cause_looks).unwrap_or(0),
        }),
        _ => None,
    };
    FailureHistory {
        failing_since: row.failing_since.map(moment),
        cause,
    }
}

fn store_failure_history(row: &mut source::Model, history: FailureHistory, failures: i32) {
    let micros = |at: OffsetDateTime| Timestamp::from(at).0;
    row.failures = failures;
    row.failing_since = history.failing_since.map(micros);
    row.failing_as = history.cause.map(|cause| cause.outcome.as_str().into());
    row.cause_since = history.cause.map(|cause| micros(cause.since));
    row.cause_latest = history.cause.map(|cause| micros(cause.latest_at));
    row.cause_looks = history.cause.map_or(0, |cause| {
        i32::try_from(cause.fetch_count).unwrap_or(i32::MAX)
    });
}
