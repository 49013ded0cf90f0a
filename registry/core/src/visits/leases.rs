//! Leases of visits for the crawler, and the count of scheduled visits.

use std::net::IpAddr;
use std::sync::atomic::Ordering;
use std::time::Duration;

use a2a_crawler::visit_calendar::VisitCalendar;
use a2a_registry_domain::identifiers::random_u64;
use a2a_registry_domain::source::SourceState;
use a2a_registry_domain::timestamp::{HOUR, Timestamp};
use a2a_registry_store::entity::{domain, source};
use a2a_registry_store::visit_leases::VisitLeaseRequest;
use a2a_registry_store::{StoreError, domains, visit_schedule};
use time::OffsetDateTime;

use crate::context::AppContext;
use crate::visits::VISIT_SPACING;

/// How often scheduled visits are counted again: other processes schedule visits too.
const RECOUNT_INTERVAL: i64 = HOUR;

/// Leases due visits for `lease_us` microseconds, each with its due sources; `reserved` of these slots are for visits
/// that were requested individually. The visits of a domain without a source to fetch end.
pub async fn lease_due_visits(
    context: &AppContext,
    limit: usize,
    reserved: usize,
    lease_us: i64,
) -> Result<Vec<(domain::Model, Vec<source::Model>)>, StoreError> {
    let now = context.now();
    recount_planned_visits(context, now).await?;
    let request = VisitLeaseRequest {
        now: now.0,
        leased_until: now.plus_micros(lease_us).0,
        lease: random_u64(context.entropy.as_ref()).cast_signed(),
        limit: limit as u64,
        reserved: reserved as u64,
        pace: context.crawl_state.pace,
        planned_visits_per_second: context.crawl_state.lock_visit_calendar().steady_rate(),
    };
    let leased = context.store.lease_visits(&request).await?;
    let ids: Vec<i64> = leased.iter().map(|row| row.id).collect();
    let mut sources = domains::live_sources_by_domain(&context.store, &ids).await?;
    sources.retain(is_fetchable_source);
    sources.sort_by_key(|source| (source.domain_id, source.next_due_at > now.0, source.id));
    let mut visits = Vec::with_capacity(leased.len());
    for domain in leased {
        let first = sources.partition_point(|source| source.domain_id < domain.id);
        let mut due: Vec<source::Model> = sources[first..]
            .iter()
            .take_while(|source| source.domain_id == domain.id)
            .cloned()
            .collect();
        // A visit is not made only for catalogs that do not exist, unless a caller waits for it.
        let awaited = domain.visit_interval_us.is_none();
        let nothing = |source: &source::Model| !awaited && source.liveness == SourceState::Absent;
        if due.iter().all(nothing) {
            context.store.stop_domain_visits(domain.id).await?;
            continue;
        }
        // An early visit, for example after a change of spacing, still fetches its earliest source.
        let due_count = due
            .iter()
            .filter(|source| source.next_due_at <= now.0)
            .count()
            .max(1);
        due.truncate(due_count);
        visits.push((domain, due));
    }
    Ok(visits)
}

/// Stores the address blocks of leased domains; gives back the domains beyond the limit of a block and returns their
/// keys. They are due again at once.
pub async fn record_domain_networks(
    context: &AppContext,
    networks: &[(i64, String)],
) -> Result<Vec<i64>, StoreError> {
    if networks.is_empty() {
        return Ok(Vec::new());
    }
    context
        .store
        .record_and_limit_networks(networks, context.now().0)
        .await
}

/// Whether an address is in `allow_networks`, where neither spacing nor the limit of address blocks applies.
pub fn is_exempt_address(context: &AppContext, address: IpAddr) -> bool {
    let networks = &context.config().crawler.allow_networks;
    networks.iter().any(|network| network.contains(&address))
}

/// Gives back leased visits that were not made or were cancelled. They are due again after the pause, but not before
/// the spacing allows.
pub async fn release_visits(
    context: &AppContext,
    leases: &[(i64, i64)],
    pause: Duration,
) -> Result<(), StoreError> {
    let pause = i64::try_from(pause.as_micros()).unwrap_or(i64::MAX);
    let now = context.now();
    let rest = (pause > 0).then(|| now.plus_micros(pause).0);
    let spaced = now.plus_micros(VISIT_SPACING).0;
    context
        .store
        .release_visit_leases(leases, rest, spaced)
        .await
}

pub async fn next_visit_due(context: &AppContext) -> Result<Option<Timestamp>, StoreError> {
    Ok(
        visit_schedule::next_visit_due(&context.store, context.now().0)
            .await?
            .map(Timestamp),
    )
}

pub fn wake_crawler(context: &AppContext) {
    context.signals.visits.notify_one();
}

/// Counts the scheduled visits if the last count is too old, and repairs times that were set while the clock was
/// ahead.
async fn recount_planned_visits(context: &AppContext, now: Timestamp) -> Result<(), StoreError> {
    let counted_at = context.crawl_state.counted_at.load(Ordering::Acquire);
    // If the clock was set back, it was ahead at the last count, and perhaps when visits were scheduled.
    if (counted_at..counted_at.saturating_add(RECOUNT_INTERVAL)).contains(&now.0) {
        return Ok(());
    }
    let repaired = context.store.repair_future_times(now.0).await?;
    if repaired > 0 {
        tracing::warn!(
            repaired,
            "times too far in the future were corrected; the clock has probably jumped"
        );
    }
    let counted = visit_schedule::planned_visit_rates(&context.store, now.0).await?;
    let at = now.into();
    let mut planned = VisitCalendar::new(at);
    for (minute, visits) in counted.visits_by_minute {
        let moment = OffsetDateTime::from_unix_timestamp(minute.saturating_mul(60));
        if let (Ok(moment), Ok(visits)) = (moment, u32::try_from(visits)) {
            planned.add_visits(moment, at, visits);
        }
    }
    planned.set_steady_rate(counted.visits_per_second);
    *context.crawl_state.lock_visit_calendar() = planned;
    context
        .crawl_state
        .counted_at
        .store(now.0, Ordering::Release);
    Ok(())
}

/// Whether this build can fetch a source. A kind that only a later build knows is logged, and not visited.
fn is_fetchable_source(source: &source::Model) -> bool {
    let kind = source.kind.require_known("sources", "kind", source.id);
    kind.inspect_err(|error| tracing::warn!(%error, "a source is not fetched"))
        .is_ok()
}
