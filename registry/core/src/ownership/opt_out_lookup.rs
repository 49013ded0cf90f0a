//! The look-up of a domain's opt-out record, before the first request to its host.

use std::time::Duration;

use a2a_crawler::challenge::ChallengeResult;
use a2a_registry_domain::ownership::OptOut;
use a2a_registry_domain::timestamp::{MINUTE, Timestamp};
use a2a_registry_store::StoreError;
use a2a_registry_store::entity::{domain, source};
use futures::future::join_all;

use crate::commit::change_set::ChangeSet;
use crate::commit::decision_maker::SYSTEM_ACTOR;
use crate::commit::locks::lock_domain_with_dependents;
use crate::commit::publish::commit_changes;
use crate::context::AppContext;
use crate::error::Result;
use crate::ownership::apply_check::update_domain_ownership;
use crate::ownership::challenges::registry_host;
use crate::ownership::domain_check::opt_out_from_result;
use crate::sources::domain_host;
use crate::visits::leases::release_visits;

/// How long after its registration, or after an agent has named it first, a failing lookup of the opt-out record
/// prevents visits of a host. A failed lookup is no permission, but a name server that never responds must not exclude
/// a host forever.
const FIRST_CHECK_TIMEOUT: i64 = 15 * MINUTE;
/// Timeout of the lookup: the visit holds one of the crawler's slots for that time.
const LOOKUP_TIMEOUT: Duration = Duration::from_secs(1);
/// The delay before a failed lookup is repeated.
const LOOKUP_RETRY_DELAY: Duration = Duration::from_secs(60);

/// A leased visit: the domain, and its sources that are due.
pub type LeasedVisit = (domain::Model, Vec<source::Model>);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OptOutLookupResult {
    /// The host may be visited.
    MayVisit,
    /// The host has opted out.
    OptedOut,
    /// The lookup failed and will be repeated.
    Unknown,
}

/// Whether a domain was registered so long ago that a failed lookup of its opt-out no longer delays its visits.
pub fn is_opt_out_wait_over(row: &domain::Model, now: Timestamp) -> bool {
    is_wait_over(row.created_at, now)
}

const fn is_wait_over(known_since: i64, now: Timestamp) -> bool {
    now.0.saturating_sub(known_since) >= FIRST_CHECK_TIMEOUT
}

/// Whether a visit is the first one of these sources, so that its domain is checked first.
pub fn is_first_visit(due: &[source::Model]) -> bool {
    due.iter().all(|source| source.attempts == 0)
}

/// Returns the leased visits that may be made. For a domain that was never visited the opt-out record is looked up
/// first. If the record exists, visits end; if the lookup fails, the visit is delayed.
pub async fn permitted_visits(
    context: &AppContext,
    leased: Vec<LeasedVisit>,
) -> Result<Vec<LeasedVisit>, StoreError> {
    let checks = leased.iter().map(|visit| look_up_opt_out(context, visit));
    let checks = join_all(checks).await;
    let mut permitted = Vec::with_capacity(leased.len());
    let mut delayed = Vec::new();
    for (visit, outcome) in leased.into_iter().zip(checks) {
        let row = &visit.0;
        let stored = match outcome {
            OptOutLookupResult::MayVisit => {
                permitted.push(visit);
                continue;
            }
            OptOutLookupResult::OptedOut => store_opt_out(context, row).await,
            OptOutLookupResult::Unknown => Ok(()),
        };
        if let Err(error) = &stored {
            let error = error.internal.as_ref().unwrap_or(&error.public);
            tracing::warn!(
                error,
                domain = row.name,
                "cannot store an opt-out; the visit is delayed"
            );
        }
        if outcome == OptOutLookupResult::OptedOut && stored.is_ok() {
            context.store.stop_domain_visits(row.id).await?;
        } else {
            delayed.extend(row.lease.map(|lease| (row.id, lease)));
        }
    }
    if !delayed.is_empty() {
        release_visits(context, &delayed, LOOKUP_RETRY_DELAY).await?;
    }
    Ok(permitted)
}

async fn look_up_opt_out(context: &AppContext, (row, due): &LeasedVisit) -> OptOutLookupResult {
    if !is_first_visit(due) {
        return OptOutLookupResult::MayVisit;
    }
    match domain_host(&row.name) {
        Some(host) => look_up_host_opt_out(context, host, row.created_at).await,
        None => OptOutLookupResult::MayVisit,
    }
}

/// Looks up the opt-out record of a host that has been known since this time, microseconds.
pub async fn look_up_host_opt_out(
    context: &AppContext,
    host: &str,
    known_since: i64,
) -> OptOutLookupResult {
    let (fetcher, registry) = (&context.network.fetcher, registry_host(context));
    let outcome = fetcher.check_dns_persistent(host, &registry, None, context.clock.now());
    let verdict = tokio::time::timeout(LOOKUP_TIMEOUT, outcome)
        .await
        .map_or(ChallengeResult::Failed, |check| check.result);
    match opt_out_from_result(verdict) {
        Some(true) => OptOutLookupResult::OptedOut,
        Some(false) => OptOutLookupResult::MayVisit,
        // The guard will always refuse this lookup.
        None if verdict == ChallengeResult::RejectedByGuard => OptOutLookupResult::MayVisit,
        None if is_wait_over(known_since, context.now()) => OptOutLookupResult::MayVisit,
        None => OptOutLookupResult::Unknown,
    }
}

async fn store_opt_out(context: &AppContext, visited: &domain::Model) -> Result<()> {
    let (write, mut row, followers) = lock_domain_with_dependents(context, visited).await?;
    row.opted_out_by.get_or_insert(OptOut::Record.into());
    let mut change_set = ChangeSet::new(context.now(), context.entropy.as_ref());
    update_domain_ownership(
        context,
        &write,
        &mut change_set,
        &mut row,
        &followers,
        SYSTEM_ACTOR,
    )
    .await?;
    commit_changes(context, write, change_set).await
}
