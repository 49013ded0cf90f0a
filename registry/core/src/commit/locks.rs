//! Locks of domains while they are changed, together with their followers.

use a2a_registry_store::entity::domain;
use a2a_registry_store::{Write, coverage, domains, owner_vouches};

use crate::context::Context;
use crate::error::AppError;

/// Locks a domain until the write ends, and reads it. Domains are locked before their agents, in the order of ingest:
/// so no card is ingested half-way, and there is no deadlock.
pub async fn domain_locked(write: &Write, seen: &domain::Model) -> Result<domain::Model, AppError> {
    domains::domain_by_name(write, &seen.name)
        .await?
        .filter(|row| row.id == seen.id)
        .ok_or_else(|| AppError::no_domain(&seen.name))
}

/// Begins a write that locks a domain and its followers: domains with a source that a redirect to this one has
/// answered, whose coverage depends on the owner of this one, and hosts whose owner vouch may end by a proof of this
/// one. All are locked in one order and before any event is appended, which rules out a deadlock.
pub async fn write_with_followers(
    context: &Context,
    seen: &domain::Model,
) -> Result<(Write, domain::Model, Vec<domain::Model>), AppError> {
    let origin = seen.origin();
    loop {
        let write = context.store.write().await?;
        let mut ids = followers_of(&write, &origin, seen).await?;
        ids.push(seen.id);
        let mut followers = coverage::domains_locked(&write, &ids).await?;
        let place = followers.iter().position(|row| row.id == seen.id);
        let place = place.ok_or_else(|| AppError::no_domain(&seen.name))?;
        // Ingest locks the domain that a redirect leads to, so no follower is added from here on. One that was added
        // during the wait would now be locked out of order.
        let now = followers_of(&write, &origin, seen).await?;
        if now.iter().all(|id| ids.contains(id)) {
            let row = followers.remove(place);
            return Ok((write, row, followers));
        }
    }
}

async fn followers_of(
    write: &Write,
    origin: &str,
    seen: &domain::Model,
) -> Result<Vec<i64>, AppError> {
    let mut ids = coverage::domains_answered_by(write, origin).await?;
    ids.extend(owner_vouches::hosts_with_owner_vouch_near(write, &seen.name).await?);
    Ok(ids)
}
