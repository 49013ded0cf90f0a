//! Domains held while they are changed, with those that follow them.

use a2a_registry_store::entity::domain;
use a2a_registry_store::{Write, coverage, domains};

use crate::context::Context;
use crate::error::AppError;

/// A domain as it stands now, held until the write ends: before its agents, in the order in which
/// ingest takes them, so that no card comes in half-way and nobody waits in a circle.
pub(crate) async fn domain_locked(
    write: &Write,
    seen: &domain::Model,
) -> Result<domain::Model, AppError> {
    domains::domain_by_name(write, &seen.name)
        .await?
        .filter(|row| row.id == seen.id)
        .ok_or_else(|| AppError::no_domain(&seen.name))
}

/// A write that holds a domain as [`domain_locked`] does, with the other domains of which a redirect to this one
/// has brought something: what that stands for follows from whose this one is. All are taken in one order and before
/// anything is appended, so that nobody waits in a circle.
pub(crate) async fn write_with_followers(
    context: &Context,
    seen: &domain::Model,
) -> Result<(Write, domain::Model, Vec<domain::Model>), AppError> {
    let origin = format!("{}://{}", seen.scheme, seen.name);
    loop {
        let write = context.store.write().await?;
        let mut ids = coverage::domains_answered_by(&write, &origin).await?;
        ids.push(seen.id);
        let mut followers = coverage::domains_locked(&write, &ids).await?;
        let place = followers.iter().position(|row| row.id == seen.id);
        let place = place.ok_or_else(|| AppError::no_domain(&seen.name))?;
        // Ingest holds a domain while it takes in what a redirect to it has brought, so that none comes from here on.
        // One that came while this waited would now be taken out of turn.
        let now = coverage::domains_answered_by(&write, &origin).await?;
        if now.iter().all(|id| ids.contains(id)) {
            let row = followers.remove(place);
            return Ok((write, row, followers));
        }
    }
}
