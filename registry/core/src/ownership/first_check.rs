//! The first check of a domain: its opt-out record is looked up before the first request to its host.

use std::time::Duration;

use a2a_crawler::challenge::CheckVerdict;
use a2a_registry_domain::ownership::OptOut;
use a2a_registry_domain::timestamp::{MINUTE, Timestamp};
use a2a_registry_store::StoreError;
use a2a_registry_store::entity::{domain, source};
use futures::future::join_all;

use crate::commit::approver::SYSTEM;
use crate::commit::ledger::Ledger;
use crate::commit::locks::write_with_followers;
use crate::commit::publish::commit_ledger;
use crate::context::Context;
use crate::error::Result;
use crate::ownership::apply_check::follow_proofs;
use crate::ownership::challenges::registry_host;
use crate::ownership::domain_check::opted_out;
use crate::sources::host_of;
use crate::visits::leasing::visits_give_back;

/// How long after its registration a domain is not visited while the lookup of its opt-out record fails. A failed
/// lookup is no permission, but a name server that never answers would otherwise exclude a domain forever.
const PATIENCE: i64 = 15 * MINUTE;
/// Timeout of the lookup: the visit holds one of the crawler's slots for that time.
const LOOKUP: Duration = Duration::from_secs(1);
/// A failed lookup is repeated after this.
const AGAIN: Duration = Duration::from_secs(60);

/// A leased visit: the domain, and its sources that are due.
pub type Leased = (domain::Model, Vec<source::Model>);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FirstCheckResult {
    /// It may be visited.
    Free,
    /// It has opted out.
    OptedOut,
    /// The lookup failed, and is repeated.
    Unknown,
}

/// Whether a domain was registered so long ago that a failed lookup of its opt-out no longer delays its visits.
pub fn is_patience_over(row: &domain::Model, now: Timestamp) -> bool {
    now.0.saturating_sub(row.created_at) >= PATIENCE
}

/// Whether a visit is the first one of these sources, so that its domain is checked first.
pub fn is_first_visit(due: &[source::Model]) -> bool {
    due.iter().all(|source| source.attempts == 0)
}

/// The leased visits that may be made. For a domain that was never visited the opt-out record is looked up first: if
/// there is one its visits end, if the lookup fails the visit is delayed.
pub async fn visits_permitted(
    context: &Context,
    leased: Vec<Leased>,
) -> Result<Vec<Leased>, StoreError> {
    let registry = registry_host(context);
    let checks = leased
        .iter()
        .map(|visit| check_first(context, &registry, visit));
    let checks = join_all(checks).await;
    let mut permitted = Vec::with_capacity(leased.len());
    let mut later = Vec::new();
    for (visit, outcome) in leased.into_iter().zip(checks) {
        let row = &visit.0;
        let stored = match outcome {
            FirstCheckResult::Free => {
                permitted.push(visit);
                continue;
            }
            FirstCheckResult::OptedOut => store_opt_out(context, row).await,
            FirstCheckResult::Unknown => Ok(()),
        };
        if let Err(error) = &stored {
            let error = error.internal.as_ref().unwrap_or(&error.public);
            tracing::warn!(
                error,
                domain = row.name,
                "an opt-out could not be stored; the visit is delayed"
            );
        }
        if outcome == FirstCheckResult::OptedOut && stored.is_ok() {
            context.store.visits_end(row.id).await?;
        } else {
            later.extend(row.lease.map(|lease| (row.id, lease)));
        }
    }
    if !later.is_empty() {
        visits_give_back(context, &later, AGAIN).await?;
    }
    Ok(permitted)
}

async fn check_first(context: &Context, registry: &str, (row, due): &Leased) -> FirstCheckResult {
    if !is_first_visit(due) {
        return FirstCheckResult::Free;
    }
    let Some(host) = host_of(&row.name) else {
        return FirstCheckResult::Free;
    };
    let fetcher = &context.network.fetcher;
    let outcome = fetcher.check_dns_standing(host, registry, None, context.clock.now());
    let verdict = tokio::time::timeout(LOOKUP, outcome)
        .await
        .map_or(CheckVerdict::Failed, |check| check.verdict);
    match opted_out(verdict) {
        Some(true) => FirstCheckResult::OptedOut,
        Some(false) => FirstCheckResult::Free,
        // The guard refuses this lookup, now and later.
        None if verdict == CheckVerdict::Refused => FirstCheckResult::Free,
        None if is_patience_over(row, context.now()) => FirstCheckResult::Free,
        None => FirstCheckResult::Unknown,
    }
}

async fn store_opt_out(context: &Context, visited: &domain::Model) -> Result<()> {
    let (write, mut row, followers) = write_with_followers(context, visited).await?;
    row.opted_out_by.get_or_insert(OptOut::Record.into());
    let mut ledger = Ledger::new(context.now(), context.entropy.as_ref());
    follow_proofs(context, &write, &mut ledger, &mut row, &followers, SYSTEM).await?;
    commit_ledger(context, write, ledger).await
}
