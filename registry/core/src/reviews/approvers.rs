//! Who may decide a review: an enabled account with the permission, which must not be a party while four-eyes is on.

use std::collections::{BTreeSet, HashMap};

use a2a_registry_domain::review::ReviewKind;
use a2a_registry_domain::role::Permission;
use a2a_registry_store::entity::{account, agent, review, review_approval};
use a2a_registry_store::{Executor, accounts, approval_terms, domains, registrants};
use uuid::Uuid;

use crate::config::Config;
use crate::error::{AppError, Result};

/// The accounts that may not decide on an agent because they have an interest in it: its owner, its submitter and the
/// registrants of its sources. Empty while four-eyes is off.
pub async fn conflicted_accounts(
    db: &impl Executor,
    config: &Config,
    agent: &agent::Model,
) -> Result<BTreeSet<Uuid>> {
    let mut by_agent =
        conflicted_accounts_by_agent(db, config, std::slice::from_ref(agent)).await?;
    Ok(by_agent.remove(&agent.id).unwrap_or_default())
}

/// The interested accounts of several agents, by agent.
pub async fn conflicted_accounts_by_agent(
    db: &impl Executor,
    config: &Config,
    agents: &[agent::Model],
) -> Result<HashMap<Uuid, BTreeSet<Uuid>>> {
    if !config.governance.four_eyes {
        return Ok(HashMap::new());
    }
    let domains: BTreeSet<i64> = agents.iter().map(|agent| agent.domain_id).collect();
    let domains: Vec<i64> = domains.into_iter().collect();
    let sources = domains::live_sources_by_domain(db, &domains).await?;
    let mut interested_by_agent: HashMap<Uuid, BTreeSet<Uuid>> = HashMap::new();
    for agent in agents {
        let named = [agent.owner_id, agent.submitter, agent.claimed_by];
        interested_by_agent.insert(agent.id, named.into_iter().flatten().collect());
    }
    let agent_of: HashMap<i64, Uuid> = sources
        .iter()
        .filter_map(|source| Some((source.id, source.agent_id?)))
        .filter(|(_, agent)| interested_by_agent.contains_key(agent))
        .collect();
    let source_ids: Vec<i64> = agent_of.keys().copied().collect();
    for registrant in registrants::registrants_of_sources(db, &source_ids).await? {
        let agent = agent_of.get(&registrant.source_id);
        let of_it = agent.and_then(|agent| interested_by_agent.get_mut(agent));
        if let (Some(of_it), Some(account)) = (of_it, registrant.account_id) {
            of_it.insert(account);
        }
    }
    Ok(interested_by_agent)
}

/// The accounts that may not decide a review: the interested ones, and the account whose break-glass it confirms.
pub async fn excluded_deciders(
    db: &impl Executor,
    config: &Config,
    agent: &agent::Model,
    review: &review::Model,
) -> Result<BTreeSet<Uuid>> {
    let (agents, questions) = (std::slice::from_ref(agent), std::slice::from_ref(review));
    let mut excluded = excluded_deciders_by_review(db, config, agents, questions).await?;
    Ok(excluded.remove(&review.id).unwrap_or_default())
}

/// The excluded accounts of several reviews of these agents, by review; reviews of other agents are left out.
pub async fn excluded_deciders_by_review(
    db: &impl Executor,
    config: &Config,
    agents: &[agent::Model],
    reviews: &[review::Model],
) -> Result<HashMap<Uuid, BTreeSet<Uuid>>> {
    let interested = conflicted_accounts_by_agent(db, config, agents).await?;
    let mut excluded = HashMap::new();
    for review in reviews {
        if !agents.iter().any(|agent| agent.id == review.agent_id) {
            continue;
        }
        let of_agent = interested.get(&review.agent_id).cloned();
        let mut excluded_accounts: BTreeSet<Uuid> = of_agent.unwrap_or_default();
        if review.kind == ReviewKind::BreakGlass {
            let break_glass = approval_terms::break_glass_by_review(db, review.id).await?;
            excluded_accounts.extend(break_glass.map(|broken| broken.account_id));
        }
        excluded.insert(review.id, excluded_accounts);
    }
    Ok(excluded)
}

pub fn reject_excluded_decider(account: Uuid, excluded: &BTreeSet<Uuid>) -> Result<()> {
    if !excluded.contains(&account) {
        return Ok(());
    }
    Err(AppError::forbidden(
        "Under four-eyes neither the owner of an agent nor its registrants may decide its reviews, and an account \
         cannot confirm its own break-glass. Ask another curator.",
    ))
}

/// Whether an account may decide now. An account with a role that only a later build knows may not.
pub fn may_decide_review(account: &account::Model, excluded: &BTreeSet<Uuid>) -> bool {
    let decides = account.account_roles().is_ok_and(|roles| {
        roles
            .iter()
            .any(|role| role.has_permission(Permission::Approve))
    });
    account.is_account_active() && decides && !excluded.contains(&account.id)
}

/// Whether an account may use break-glass now: it decides reviews and is an admin.
pub fn may_break_glass(account: &account::Model) -> bool {
    let Ok(roles) = account.account_roles() else {
        return false;
    };
    let may = |permission| roles.iter().any(|role| role.has_permission(permission));
    account.is_account_active() && may(Permission::Approve) && may(Permission::Administer)
}

/// The accounts of these approvals that may decide now. Only their approvals count.
pub async fn eligible_approvers(
    db: &impl Executor,
    approvals: &[review_approval::Model],
    excluded: &BTreeSet<Uuid>,
) -> Result<BTreeSet<Uuid>> {
    let ids: Vec<Uuid> = approvals.iter().map(|one| one.account_id).collect();
    let approvers = accounts::accounts_by_ids(db, &ids).await?;
    let counting = approvers
        .iter()
        .filter(|one| may_decide_review(one, excluded));
    Ok(counting.map(|one| one.id).collect())
}
