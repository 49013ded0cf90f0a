//! Who may decide a review: an account that may be used, decides reviews, and is no party where four-eyes is on.

use std::collections::BTreeSet;

use a2a_registry_domain::role::Permission;
use a2a_registry_store::entity::{account, agent, review_approval};
use a2a_registry_store::{Handle, accounts, coverage, domains};
use uuid::Uuid;

use crate::config::Config;
use crate::error::{AppError, ErrorKind};

/// The accounts that may not decide on an agent because it is their own: its owner, its submitter and everybody who has
/// registered a source of it. None while four-eyes is off.
pub(crate) async fn parties(
    on: &impl Handle,
    config: &Config,
    agent: &agent::Model,
) -> Result<BTreeSet<Uuid>, AppError> {
    if !config.governance.four_eyes {
        return Ok(BTreeSet::new());
    }
    let sources = domains::sources_of(on, &[agent.domain_id]).await?;
    let own = sources
        .iter()
        .filter(|source| source.agent_id == Some(agent.id));
    let own: Vec<i64> = own.map(|source| source.id).collect();
    let registrants = coverage::registrants_of(on, &own).await?;
    let registrants = registrants.into_iter().map(|one| one.account_id);
    let named = [agent.owner_id, agent.submitter, agent.claimed_by];
    Ok(named.into_iter().chain(registrants).flatten().collect())
}

/// Refuses a party.
pub(crate) fn refuse_party(account: Uuid, parties: &BTreeSet<Uuid>) -> Result<(), AppError> {
    if !parties.contains(&account) {
        return Ok(());
    }
    Err(AppError::new(
        ErrorKind::Forbidden,
        "Under four-eyes neither the owner of an agent nor who registered it decides its reviews; ask another curator.",
    ))
}

/// Whether an account may decide now. One with a role that only a later build knows may not.
pub(crate) fn may_decide(account: &account::Model, parties: &BTreeSet<Uuid>) -> bool {
    let decides = account
        .roles()
        .is_ok_and(|roles| roles.iter().any(|role| role.may(Permission::Approve)));
    account.disabled_at.is_none() && decides && !parties.contains(&account.id)
}

/// The accounts of these approvals that may decide now: only their approvals count.
pub(crate) async fn counting(
    on: &impl Handle,
    approvals: &[review_approval::Model],
    parties: &BTreeSet<Uuid>,
) -> Result<BTreeSet<Uuid>, AppError> {
    let ids: Vec<Uuid> = approvals.iter().map(|one| one.account_id).collect();
    let found = accounts::accounts_by_ids(on, &ids).await?;
    let counting = found.iter().filter(|one| may_decide(one, parties));
    Ok(counting.map(|one| one.id).collect())
}
