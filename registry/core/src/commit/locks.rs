//! Locks of domains during a change, together with their followers.

use a2a_registry_store::entity::domain;
use a2a_registry_store::{WriteTransaction, domains, owner_vouches, registrants};

use crate::context::AppContext;
use crate::error::AppError;

/// Locks a domain until the write ends, and reads it. Domains are locked before their agents, in the order of ingest,
/// so that no card is half ingested and deadlocks are impossible.
pub async fn lock_domain(
    write: &WriteTransaction,
    known_domain: &domain::Model,
) -> Result<domain::Model, AppError> {
    domains::domain_by_name(write, &known_domain.name)
        .await?
        .filter(|row| row.id == known_domain.id)
        .ok_or_else(|| AppError::no_domain(&known_domain.name))
}

/// Begins a write that locks a domain and its followers: domains with a source whose response came from this one by a
/// redirect, whose coverage depends on the owner of this one, and hosts whose owner vouch may end by a proof of this
/// one. All are locked in one order and before any event is appended, so that deadlocks are impossible.
pub async fn lock_domain_with_dependents(
    context: &AppContext,
    known_domain: &domain::Model,
) -> Result<(WriteTransaction, domain::Model, Vec<domain::Model>), AppError> {
    // A proof makes a host that was registered over plain http one of port 443.
    let mut origins = vec![known_domain.domain_origin()];
    if known_domain.scheme != "https" {
        origins.push(format!("https://{}", known_domain.name));
    }
    loop {
        let write = context.store.begin_write().await?;
        let mut ids = dependent_domain_ids(&write, &origins, known_domain).await?;
        ids.push(known_domain.id);
        let mut followers = registrants::lock_domains(&write, &ids).await?;
        let position = followers.iter().position(|row| row.id == known_domain.id);
        let position = position.ok_or_else(|| AppError::no_domain(&known_domain.name))?;
        // Ingest locks the domain that a redirect leads to, so no follower can be added after this. One that was added
        // during the wait would be locked out of order.
        let now = dependent_domain_ids(&write, &origins, known_domain).await?;
        if now.iter().all(|id| ids.contains(id)) {
            let row = followers.remove(position);
            return Ok((write, row, followers));
        }
    }
}

async fn dependent_domain_ids(
    write: &WriteTransaction,
    origins: &[String],
    known_domain: &domain::Model,
) -> Result<Vec<i64>, AppError> {
    let mut ids = Vec::new();
    for origin in origins {
        ids.extend(registrants::domain_ids_by_answering_origin(write, origin).await?);
    }
    ids.extend(owner_vouches::related_vouched_domain_ids(write, &known_domain.name).await?);
    Ok(ids)
}
