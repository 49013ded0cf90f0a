//! The state of a source after a fetch: freshness, failures, and its next fetch.

use a2a_crawler::liveness::{self, Cause, History, Liveness};
use a2a_crawler::schedule::{self, FetchResult};
use a2a_crawler::{AttemptOutcome, Freshness, SourceVerdict, VisitOutcome};
use a2a_registry_domain::lifecycle::LivenessState;
use a2a_registry_domain::source::SourceState;
use a2a_registry_domain::timestamp::{DAY, Timestamp};
use a2a_registry_store::entity::source;
use time::{Duration, OffsetDateTime};
use uuid::Uuid;

use crate::crawl::ingest::group::Group;
use crate::memory::stream::VisitStream;

/// The fetch interval for a catalog that does not exist.
pub const CATALOG_REST: i64 = 7 * DAY;

/// Whether an agent gone since that time is retired now.
pub fn retires(gone_since: i64, now: Timestamp) -> bool {
    liveness::is_retired(Timestamp(gone_since).into(), now.into())
}

/// The liveness of an agent, combined from its sources.
pub struct CombinedLiveness {
    pub state: LivenessState,
    pub reason: Option<String>,
    pub last_seen_at: Option<i64>,
}

/// The random jitter for the sources of one visit: one number for all, so that sources fetched together stay together.
pub struct JitterPlacement<'a> {
    stream: &'a VisitStream,
    seed: f64,
    chosen: Option<f64>,
}

impl<'a> JitterPlacement<'a> {
    /// `seed` is a random number in 0..1.
    pub const fn new(stream: &'a VisitStream, seed: f64) -> Self {
        Self {
            stream,
            seed,
            chosen: None,
        }
    }

    /// The random number to plan with; `moment` gives the time that each number would lead to.
    fn choose(&mut self, moment: impl Fn(f64) -> OffsetDateTime) -> f64 {
        let least = || self.stream.planned().least(self.seed, moment);
        *self.chosen.get_or_insert_with(least)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FetchedContent {
    /// In full, with new content.
    Changed,
    /// In full, with the same content.
    Same,
    NotModified,
}

impl FetchedContent {
    pub const fn of_whole(changed: bool) -> Self {
        if changed { Self::Changed } else { Self::Same }
    }
}

impl Group {
    pub fn succeeded(
        &mut self,
        source: i64,
        freshness: &Freshness,
        success: FetchedContent,
        now: Timestamp,
        placement: &mut JitterPlacement<'_>,
    ) {
        let Some(row) = self.sources.get_mut(&source) else {
            return;
        };
        let full = success != FetchedContent::NotModified;
        let look = match success {
            _ if row.last_success_at.is_none() => {
                let domain = self.domains.get(&row.domain_id);
                let phase = domain.map_or(0, |domain| schedule::phase(&domain.name));
                FetchResult::First { phase }
            }
            FetchedContent::Changed => FetchResult::Changed,
            FetchedContent::Same | FetchedContent::NotModified => FetchResult::Unchanged,
        };
        if let Some(validators) = &freshness.validators {
            row.validator_url = Some(validators.url.clone());
            row.etag.clone_from(&validators.etag);
            row.last_modified.clone_from(&validators.last_modified);
        } else if full {
            row.etag = None;
            row.last_modified = None;
        }
        row.last_success_at = Some(now.0);
        if full {
            row.last_full_at = Some(now.0);
            row.full_wanted = false;
        }
        remember(row, History::default(), 0);
        row.liveness = SourceState::Fresh.into();
        row.liveness_reason = None;
        plan(row, look, freshness.max_age, now, placement);
    }

    /// Records a failed fetch of a card. While the circuit breaker is open the state does not change, and the fetch is
    /// repeated soon.
    pub fn failed(
        &mut self,
        source: i64,
        outcome: AttemptOutcome,
        retry_after: Option<u32>,
        now: Timestamp,
        placement: &mut JitterPlacement<'_>,
    ) {
        let breaker_open = self.breaker_open;
        let Some(row) = self.sources.get_mut(&source) else {
            return;
        };
        row.failures = row.failures.saturating_add(1);
        if !breaker_open {
            conclude(row, outcome, now);
        }
        let look = FetchResult::Failed {
            failures: u32::try_from(row.failures).unwrap_or(1),
            retry_after,
            breaker_open,
            timed_out: outcome == AttemptOutcome::Timeout,
        };
        plan(row, look, None, now, placement);
    }

    /// Records a failed fetch of a catalog. A catalog that does not exist is no error, and is fetched rarely; one that
    /// never existed and fails now counts as missing too.
    pub fn catalog_failed(
        &mut self,
        source: i64,
        outcome: AttemptOutcome,
        retry_after: Option<u32>,
        now: Timestamp,
        placement: &mut JitterPlacement<'_>,
    ) {
        self.failed(source, outcome, retry_after, now, placement);
        let Some(row) = self.sources.get_mut(&source) else {
            return;
        };
        let rests = says_absent(outcome);
        if rests || row.last_success_at.is_none() {
            let failures = if rests { 0 } else { row.failures };
            remember(row, History::default(), failures);
            row.liveness = SourceState::Absent.into();
            row.liveness_reason = None;
            row.full_wanted = false;
            row.validator_url = None;
        }
        if rests {
            row.next_due_at = now.plus(CATALOG_REST).0;
        }
    }

    /// Whether a source of a visit has just begun to time out. Its host may start on demand, so the next
    /// visit comes sooner than the usual spacing.
    pub fn is_retried_soon(&self, outcome: &VisitOutcome) -> bool {
        outcome.sources.iter().any(|result| {
            let row = self.sources.get(&result.source_key);
            let failures = row.and_then(|row| u32::try_from(row.failures).ok());
            let timed_out = matches!(
                &result.verdict,
                SourceVerdict::Failed {
                    outcome: AttemptOutcome::Timeout,
                    ..
                }
            );
            schedule::is_retried_soon(failures.unwrap_or(0), timed_out, self.breaker_open)
        })
    }

    /// The best liveness of an agent's sources. An agent without a source is gone: no catalog names it.
    pub fn liveness_of(&self, agent: Uuid) -> Option<CombinedLiveness> {
        // A source that was not fetched yet, or is in a state that only a later build knows, does not count.
        let state = |source: &source::Model| match source.liveness.known() {
            Some(SourceState::Fresh) => LivenessState::Fresh,
            Some(SourceState::Gone) => LivenessState::Gone,
            Some(
                SourceState::New | SourceState::Recorded | SourceState::Stale | SourceState::Absent,
            )
            | None => LivenessState::Stale,
        };
        let domain = self.agents.get(&agent)?.agent.domain_id;
        let fed = || {
            self.of_domain(domain)
                .filter(|source| source.agent_id == Some(agent))
        };
        let Some(best) = fed().min_by_key(|source| state(source)) else {
            return Some(CombinedLiveness {
                state: LivenessState::Gone,
                reason: Some("the domain's catalog does not name it any more".into()),
                last_seen_at: None,
            });
        };
        Some(CombinedLiveness {
            state: state(best),
            reason: best.liveness_reason.clone(),
            last_seen_at: fed().filter_map(|source| source.last_success_at).max(),
        })
    }
}

/// Whether a response means that there is no catalog, so that an early retry is useless.
const fn says_absent(outcome: AttemptOutcome) -> bool {
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
fn conclude(row: &mut source::Model, outcome: AttemptOutcome, now: Timestamp) {
    let history = history_of(row).after(outcome, now.into());
    let (state, reason) = history.judge(now.into());
    remember(row, history, row.failures);
    row.liveness = match state {
        Liveness::Fresh => SourceState::Fresh,
        Liveness::Stale => SourceState::Stale,
        Liveness::Gone => SourceState::Gone,
    }
    .into();
    row.liveness_reason = reason;
    if outcome == AttemptOutcome::TlsInvalid {
        // The card is no longer trusted, and a 304 would not show that it came over valid TLS.
        row.full_wanted = true;
    }
}

/// Sets the next fetch of a source and its interval. A requested fetch does not replace the planned one: that one is
/// made as well.
fn plan(
    row: &mut source::Model,
    look: FetchResult,
    max_age: Option<u32>,
    now: Timestamp,
    placement: &mut JitterPlacement<'_>,
) {
    let interval = (row.interval_us > 0).then(|| Duration::microseconds(row.interval_us));
    let next = |random| schedule::next_due(now.into(), look, interval, max_age, random);
    let next = next(placement.choose(|random| next(random).at));
    let planned = row.planned_at.take().filter(|planned| *planned > now.0);
    let next_due_at = Timestamp::from(next.at).0;
    row.next_due_at = planned.map_or(next_due_at, |planned| planned.min(next_due_at));
    row.interval_us = i64::try_from(next.interval.whole_microseconds()).unwrap_or(i64::MAX);
}

fn history_of(row: &source::Model) -> History {
    let moment = |at: i64| OffsetDateTime::from(Timestamp(at));
    let outcome = row
        .failing_as
        .as_deref()
        .and_then(AttemptOutcome::from_name);
    let cause = match (outcome, row.cause_since, row.cause_latest) {
        (Some(outcome), Some(since), Some(latest)) => Some(Cause {
            outcome,
            since: moment(since),
            latest: moment(latest),
            fetches: u32::try_from(row.cause_looks).unwrap_or(0),
        }),
        _ => None,
    };
    History {
        failing_since: row.failing_since.map(moment),
        cause,
    }
}

fn remember(row: &mut source::Model, history: History, failures: i32) {
    let micros = |at: OffsetDateTime| Timestamp::from(at).0;
    row.failures = failures;
    row.failing_since = history.failing_since.map(micros);
    row.failing_as = history.cause.map(|cause| cause.outcome.as_str().into());
    row.cause_since = history.cause.map(|cause| micros(cause.since));
    row.cause_latest = history.cause.map(|cause| micros(cause.latest));
    row.cause_looks = history
        .cause
        .map_or(0, |cause| i32::try_from(cause.fetches).unwrap_or(i32::MAX));
}
