//! A domain that two accounts have proved equally well: nothing of it changes, and each of them is told why.

use a2a_registry_domain::ownership::DomainState;
use a2a_registry_domain::role::Permission;
use a2a_registry_store::entity::{domain, proof};
use a2a_registry_store::{Handle, StoreError, agents, domains};
use uuid::Uuid;

use crate::caller::{Account, Caller};
use crate::context::Context;
use crate::error::{AppError, ErrorKind};

/// The caller, where it has proved a domain or curates. A disputed domain is nobody's to change but curators'.
///
/// # Errors
/// `Unauthenticated`; `Conflict` for whoever has a part in its dispute; `Forbidden` for everybody else.
pub(crate) async fn may_keep<'a>(
    context: &Context,
    caller: &'a Caller,
    row: &domain::Model,
) -> Result<&'a Account, AppError> {
    may_keep_on(&context.store, caller, row).await
}

/// As [`may_keep`], inside a write that decides on it.
///
/// # Errors
/// The same.
pub(crate) async fn may_keep_on<'a>(
    on: &impl Handle,
    caller: &'a Caller,
    row: &domain::Model,
) -> Result<&'a Account, AppError> {
    let account = caller.demand(Permission::Register)?;
    if caller.may(Permission::Curate) || row.owner_id == Some(account.id) {
        return Ok(account);
    }
    let registered = is_disputed(row)? && row.account_id == Some(account.id);
    if registered || has_part_on(on, caller, row).await? {
        return Err(disputed(row));
    }
    Err(AppError::new(
        ErrorKind::Forbidden,
        format!(
            "This needs a proof that {} is yours: `a2a-registry domain verify {0}`.",
            row.name
        ),
    ))
}

/// Whether the caller has a part in a domain's dispute.
pub(crate) async fn has_part(
    context: &Context,
    caller: &Caller,
    row: &domain::Model,
) -> Result<bool, AppError> {
    has_part_on(&context.store, caller, row).await
}

/// What the caller is told instead of doing something to an agent, where it has a part in the dispute of the
/// agent's domain.
pub(crate) async fn dispute_over(
    context: &Context,
    caller: &Caller,
    agent: &str,
) -> Result<Option<AppError>, AppError> {
    let agent = match agent.parse::<Uuid>() {
        Ok(id) => agents::agents_by_ids(&context.store, &[id]).await?.pop(),
        Err(_) => agents::agent_by_urn(&context.store, agent).await?,
    };
    let domain: Vec<i64> = agent.iter().map(|row| row.domain_id).collect();
    let domain = domains::domains_by_ids(&context.store, &domain)
        .await?
        .pop();
    match domain {
        Some(row) if has_part(context, caller, &row).await? => Ok(Some(disputed(&row))),
        _ => Ok(None),
    }
}

async fn has_part_on(
    on: &impl Handle,
    caller: &Caller,
    row: &domain::Model,
) -> Result<bool, AppError> {
    let Some(account) = &caller.account else {
        return Ok(false);
    };
    let proofs = domains::proofs_of(on, &[row.id]).await?;
    Ok(is_party(row, &proofs, account.id))
}

/// Whether a domain is disputed now.
///
/// # Errors
/// Where its state is not known.
pub(crate) fn is_disputed(row: &domain::Model) -> Result<bool, StoreError> {
    Ok(row.state()? == DomainState::Disputed)
}

/// Whether an account has a part in a domain's dispute: a proof of its own stands, and no account's proof is the
/// strongest. That goes on while the domain has opted out. `proofs` may be of other domains too.
pub(crate) fn is_party(row: &domain::Model, proofs: &[proof::Model], account: Uuid) -> bool {
    let own = |proof: &proof::Model| proof.domain_id == row.id && proof.account_id == Some(account);
    row.owner_id.is_none() && proofs.iter().any(own)
}

/// Says that nothing of a domain changes while it is disputed, and what ends that.
pub(crate) fn disputed(row: &domain::Model) -> AppError {
    AppError::new(
        ErrorKind::Conflict,
        format!(
            "{} is disputed: more than one account has proved it, so nothing of it changes. That ends when all but \
             one of them have removed their record or file and it was missing for three days, or when an admin \
             decides whose the domain is.",
            row.name
        ),
    )
}
