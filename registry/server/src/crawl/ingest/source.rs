//! How a source fares: freshness, failures, when it is asked next.

use a2a_crawler::liveness::{self, Cause, History, Liveness};
use a2a_crawler::schedule::{self, FetchResult};
use a2a_crawler::{AttemptOutcome, Freshness};
use a2a_registry_domain::lifecycle::LivenessState;
use a2a_registry_domain::source::SourceState;
use a2a_registry_domain::timestamp::{DAY, Timestamp};
use a2a_registry_store::entity::source;
use time::{Duration, OffsetDateTime};
use uuid::Uuid;

use crate::crawl::ingest::group::Group;
use crate::memory::stream::Stream;

/// How long a catalog that is not there is left alone.
pub(crate) const CATALOG_REST: i64 = 7 * DAY;

/// Whether an agent gone since that moment ends now.
pub(crate) fn retires(gone_since: i64, now: Timestamp) -> bool {
    liveness::is_retired(Timestamp(gone_since).into(), now.into())
}

/// What an agent's sources say together.
pub(crate) struct Seen {
    pub(crate) state: LivenessState,
    pub(crate) reason: Option<String>,
    pub(crate) last_seen_at: Option<i64>,
}

/// Where within the jitter the sources of one visit are placed: all at the same place, so that what was asked
/// together is asked together again.
pub(crate) struct Placement<'a> {
    stream: &'a Stream,
    seed: f64,
    chosen: Option<f64>,
}

impl<'a> Placement<'a> {
    /// `seed` is a random number in 0..1.
    pub(crate) const fn new(stream: &'a Stream, seed: f64) -> Self {
        Self {
            stream,
            seed,
            chosen: None,
        }
    }

    /// The random number to plan with, where each would lead to that moment.
    fn choose(&mut self, moment: impl Fn(f64) -> OffsetDateTime) -> f64 {
        let least = || self.stream.planned().least(self.seed, moment);
        *self.chosen.get_or_insert_with(least)
    }
}

/// What a success was: the card in full, or word that it is what it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Success {
    /// In full, with content that was not there before.
    Changed,
    /// In full, with the content there was before.
    Same,
    /// 304.
    NotModified,
}

impl Success {
    /// An answer in full, whose content was new or not.
    pub(crate) const fn of_whole(changed: bool) -> Self {
        if changed { Self::Changed } else { Self::Same }
    }
}

impl Group {
    /// The card was there.
    pub(crate) fn succeeded(
        &mut self,
        source: i64,
        freshness: &Freshness,
        success: Success,
        now: Timestamp,
        placement: &mut Placement<'_>,
    ) {
        let Some(row) = self.sources.get_mut(&source) else {
            return;
        };
        let full = success != Success::NotModified;
        let look = match success {
            _ if row.last_success_at.is_none() => {
                let domain = self.domains.get(&row.domain_id);
                let phase = domain.map_or(0, |domain| schedule::phase(&domain.name));
                FetchResult::First { phase }
            }
            Success::Changed => FetchResult::Changed,
            Success::Same | Success::NotModified => FetchResult::Unchanged,
        };
        if let Some(validators) = &freshness.validators {
            row.validator_url = Some(validators.url.clone());
            row.etag.clone_from(&validators.etag);
            row.last_modified.clone_from(&validators.last_modified);
        } else if full {
            row.validator_url = None;
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

    /// The card was not there. While so many fail that the fault is likely ours nothing is concluded from
    /// that, and it is tried again soon.
    pub(crate) fn failed(
        &mut self,
        source: i64,
        outcome: AttemptOutcome,
        retry_after: Option<u32>,
        now: Timestamp,
        placement: &mut Placement<'_>,
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
        };
        plan(row, look, None, now, placement);
    }

    /// The catalog could not be read. One that is not there is no fault, and rests; one that never was there
    /// and fails for now is not missed either.
    pub(crate) fn catalog_failed(
        &mut self,
        source: i64,
        outcome: AttemptOutcome,
        retry_after: Option<u32>,
        now: Timestamp,
        placement: &mut Placement<'_>,
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

    /// The best that any of an agent's sources says. One that has none left is gone: no catalog names it.
    pub(crate) fn liveness_of(&self, agent: Uuid) -> Option<Seen> {
        // What was not asked yet, or fares as only a later build knows, is neither there nor missed for long.
        let state = |source: &source::Model| match source.liveness.known() {
            Some(SourceState::Fresh) => LivenessState::Fresh,
            Some(SourceState::Gone) => LivenessState::Gone,
            Some(SourceState::New | SourceState::Stale | SourceState::Absent) | None => {
                LivenessState::Stale
            }
        };
        let fed = || {
            self.sources
                .values()
                .filter(|source| source.agent_id == Some(agent) && source.ended_at.is_none())
        };
        let Some(best) = fed().min_by_key(|source| state(source)) else {
            return Some(Seen {
                state: LivenessState::Gone,
                reason: Some("the domain's catalog does not name it any more".into()),
                last_seen_at: None,
            });
        };
        Some(Seen {
            state: state(best),
            reason: best.liveness_reason.clone(),
            last_seen_at: fed().filter_map(|source| source.last_success_at).max(),
        })
    }
}

/// Whether an answer says that there is no catalog: asking again soon would be of no use.
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

/// Sets what a failure means for the card.
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
        // What was trusted is not any more, and a 304 would not say what came over valid TLS.
        row.full_wanted = true;
    }
}

/// Sets when the source is asked next, and what its interval has become. A look that somebody asked for takes the
/// place of none that was planned: that one is made as well.
fn plan(
    row: &mut source::Model,
    look: FetchResult,
    max_age: Option<u32>,
    now: Timestamp,
    placement: &mut Placement<'_>,
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
