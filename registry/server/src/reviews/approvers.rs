//! Who may decide a review: an account that may be used, decides reviews, and is no party where four-eyes is on.

use std::collections::BTreeSet;

use a2a_registry_domain::review::ReviewKind;
use a2a_registry_domain::role::Permission;
use a2a_registry_store::entity::{account, agent, review, review_approval};
use a2a_registry_store::{Handle, accounts, coverage, domains, terms};
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

/// The accounts that may not decide a review: the parties, and who broke the glass that it confirms.
pub(crate) async fn excluded(
    on: &impl Handle,
    config: &Config,
    agent: &agent::Model,
    question: &review::Model,
) -> Result<BTreeSet<Uuid>, AppError> {
    let mut excluded = parties(on, config, agent).await?;
    if question.kind == ReviewKind::BreakGlass {
        let broken = terms::break_glass_of(on, question.id).await?;
        excluded.extend(broken.map(|broken| broken.account_id));
    }
    Ok(excluded)
}

/// Refuses an account that is excluded.
pub(crate) fn refuse_party(account: Uuid, parties: &BTreeSet<Uuid>) -> Result<(), AppError> {
    if !parties.contains(&account) {
        return Ok(());
    }
    Err(AppError::new(
        ErrorKind::Forbidden,
        "Under four-eyes neither the owner of an agent nor who registered it decides its reviews, and nobody confirms a glass \
         that they broke; ask another curator.",
    ))
}

/// Whether an account may decide now. One with a role that only a later build knows may not.
pub(crate) fn may_decide(account: &account::Model, parties: &BTreeSet<Uuid>) -> bool {
    let decides = account
        .roles()
        .is_ok_and(|roles| roles.iter().any(|role| role.may(Permission::Approve)));
    account.disabled_at.is_none() && decides && !parties.contains(&account.id)
}

/// Whether an account may break the glass now: it decides reviews and is an admin.
pub(crate) fn may_break_glass(account: &account::Model) -> bool {
    let Ok(roles) = account.roles() else {
        return false;
    };
    let may = |permission| roles.iter().any(|role| role.may(permission));
    account.disabled_at.is_none() && may(Permission::Approve) && may(Permission::Administer)
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
