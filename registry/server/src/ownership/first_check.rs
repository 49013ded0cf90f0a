//! The first look at a domain: whether it wants to be left alone is asked before anything is asked of its host.

use std::time::Duration;

use a2a_crawler::challenge::CheckVerdict;
use a2a_crawler::fetch::Fetcher;
use a2a_registry_domain::ownership::OptOut;
use a2a_registry_domain::timestamp::{MINUTE, Timestamp};
use a2a_registry_store::StoreError;
use a2a_registry_store::entity::{domain, source};
use futures::future::join_all;

use crate::commit::ledger::{Ledger, SYSTEM};
use crate::commit::locks::write_with_followers;
use crate::commit::publish::after_write;
use crate::context::Context;
use crate::error::AppError;
use crate::ownership::apply_check::follow_proofs;
use crate::ownership::challenges::registry_host;
use crate::ownership::domain_check::opted_out;
use crate::sources::host_of;
use crate::visits::leasing::visits_give_back;

/// For this long after its registration a domain whose name server does not say whether it has opted out is left
/// alone. Silence is no permission, but a server that never answers this question would keep a domain out for good.
const PATIENCE: i64 = 15 * MINUTE;
/// How long a name server may take: other visits wait meanwhile.
const LOOKUP: Duration = Duration::from_secs(1);
/// A look that has told nothing is repeated after this.
const AGAIN: Duration = Duration::from_secs(60);

/// A leased visit: the domain, and what is due of it.
type Leased = (domain::Model, Vec<source::Model>);

/// What the first look at a domain has come to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FirstLook {
    /// It may be visited.
    Free,
    /// It wants to be left alone.
    OptedOut,
    /// Nobody could tell yet.
    Open,
}

/// Whether a domain was registered so long ago that no answer about its opt-out is waited for any more.
pub(crate) fn is_patience_over(row: &domain::Model, now: Timestamp) -> bool {
    now.0.saturating_sub(row.created_at) >= PATIENCE
}

/// Of leased visits those that may be made. A domain that was never asked for anything is first looked up for an
/// opt-out: where there is one its visits end, where nobody could tell the visit is put off. Where this process
/// reaches nothing outside there is nobody to visit either, and all may be made.
pub(crate) async fn visits_permitted(
    context: &Context,
    leased: Vec<Leased>,
) -> Result<Vec<Leased>, StoreError> {
    let Some(fetcher) = context.fetcher.get() else {
        return Ok(leased);
    };
    let looks = leased
        .iter()
        .map(|visit| first_look_before(context, fetcher, visit));
    let looks = join_all(looks).await;
    let mut permitted = Vec::with_capacity(leased.len());
    let mut later = Vec::new();
    for (visit, look) in leased.into_iter().zip(looks) {
        let row = &visit.0;
        let kept = match look {
            FirstLook::Free => {
                permitted.push(visit);
                continue;
            }
            FirstLook::OptedOut => leave_alone(context, row).await,
            FirstLook::Open => Ok(()),
        };
        if let Err(error) = &kept {
            let error = error.internal.as_ref().unwrap_or(&error.public);
            tracing::warn!(error, domain = row.name, "an opt-out could not be kept");
        }
        if look == FirstLook::OptedOut && kept.is_ok() {
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

async fn first_look_before(context: &Context, fetcher: &Fetcher, (row, due): &Leased) -> FirstLook {
    if due.iter().any(|source| source.attempts > 0) {
        return FirstLook::Free;
    }
    let Some(host) = host_of(&row.name) else {
        return FirstLook::Free;
    };
    let registry = registry_host(context);
    let look = fetcher.check_dns_standing(host, &registry, None, context.clock.now());
    let verdict = tokio::time::timeout(LOOKUP, look)
        .await
        .map_or(CheckVerdict::Failed, |check| check.verdict);
    match opted_out(verdict) {
        Some(true) => FirstLook::OptedOut,
        Some(false) => FirstLook::Free,
        // What the guard lets nobody look up is never known.
        None if verdict == CheckVerdict::Refused => FirstLook::Free,
        None if is_patience_over(row, context.now()) => FirstLook::Free,
        None => FirstLook::Open,
    }
}

/// Keeps that a domain wants to be left alone.
async fn leave_alone(context: &Context, seen: &domain::Model) -> Result<(), AppError> {
    let (write, mut row, followers) = write_with_followers(context, seen).await?;
    row.opted_out_by.get_or_insert(OptOut::Record.into());
    let mut ledger = Ledger::new(context.now(), context.entropy.as_ref());
    follow_proofs(context, &write, &mut ledger, &mut row, &followers, SYSTEM).await?;
    let touched = ledger.write(&write).await?;
    write.commit().await?;
    after_write(context, &touched);
    Ok(())
}
