//! Disputes: a domain that two accounts have proved with equal strength cannot be changed, and each account gets the
//! reason.

use a2a_registry_domain::ownership::DomainState;
use a2a_registry_store::entity::{domain, proof};
use a2a_registry_store::{Executor, StoreError, agents, domains};
use uuid::Uuid;

use crate::context::AppContext;
use crate::error::{AppError, Result};
use crate::visibility::caller::Caller;

/// The error for a change of an agent by a party to the dispute over its domain; `None` for other callers.
pub async fn agent_dispute_error(
    context: &AppContext,
    caller: &Caller,
    agent: &str,
) -> Result<Option<AppError>> {
    let agent = match agent.parse::<Uuid>() {
        Ok(id) => agents::agents_by_ids(&context.store, &[id]).await?.pop(),
        Err(_) => agents::agent_by_urn(&context.store, agent).await?,
    };
    // A missing agent takes the same read, with the key 0, which no row has.
    let domain = [agent.map_or(0, |row| row.domain_id)];
    let row = domains::domains_by_ids(&context.store, &domain)
        .await?
        .pop();
    let proofs = domains::valid_proofs_by_domain(&context.store, &domain).await?;
    let row = row.zip(caller.account.as_ref());
    let row = row.filter(|(row, account)| is_dispute_party(row, &proofs, account.id));
    Ok(row.map(|(row, _)| dispute_error(&row)))
}

pub async fn is_caller_dispute_party(
    db: &impl Executor,
    caller: &Caller,
    row: &domain::Model,
) -> Result<bool> {
    let Some(account) = &caller.account else {
        return Ok(false);
    };
    let proofs = domains::valid_proofs_by_domain(db, &[row.id]).await?;
    Ok(is_dispute_party(row, &proofs, account.id))
}

pub fn is_disputed_domain(row: &domain::Model) -> Result<bool, StoreError> {
    Ok(row.state()? == DomainState::Disputed)
}

/// Whether an account is a party to a domain's dispute: it has a proof, and no single account has the strongest one.
/// An opt-out of the domain does not end the dispute. `proofs` may include those of other domains.
pub fn is_dispute_party(row: &domain::Model, proofs: &[proof::Model], account: Uuid) -> bool {
    let own = |proof: &proof::Model| proof.domain_id == row.id && proof.account_id == Some(account);
    row.owner_id.is_none() && proofs.iter().any(own)
}

/// The error for a change of a disputed domain, with the ways to end the dispute.
pub fn dispute_error(row: &domain::Model) -> AppError {
    AppError::conflict(format!(
        "{} is disputed: more than one account has proved it, so it cannot be changed. The dispute ends when all but \
             one of them have removed their record or file for three days, or when an admin decides who owns the \
             domain.",
        row.name
    ))
}
