//! Who may decide a review: an enabled account that decides reviews, and is no party while four-eyes is on.

use std::collections::{BTreeSet, HashMap};

use a2a_registry_domain::review::ReviewKind;
use a2a_registry_domain::role::Permission;
use a2a_registry_store::entity::{account, agent, review, review_approval};
use a2a_registry_store::{Handle, accounts, coverage, domains, terms};
use uuid::Uuid;

use crate::config::Config;
use crate::error::{AppError, Result};

/// The accounts that may not decide on an agent because it is their own: its owner, its submitter and everyone who has
/// registered a source of it. Empty while four-eyes is off.
pub async fn parties(
    on: &impl Handle,
    config: &Config,
    agent: &agent::Model,
) -> Result<BTreeSet<Uuid>> {
    let mut parties = parties_of(on, config, std::slice::from_ref(agent)).await?;
    Ok(parties.remove(&agent.id).unwrap_or_default())
}

/// The same for several agents, by agent.
pub async fn parties_of(
    on: &impl Handle,
    config: &Config,
    agents: &[agent::Model],
) -> Result<HashMap<Uuid, BTreeSet<Uuid>>> {
    if !config.governance.four_eyes {
        return Ok(HashMap::new());
    }
    let domains: BTreeSet<i64> = agents.iter().map(|agent| agent.domain_id).collect();
    let domains: Vec<i64> = domains.into_iter().collect();
    let sources = domains::sources_of(on, &domains).await?;
    let mut parties: HashMap<Uuid, BTreeSet<Uuid>> = HashMap::new();
    for agent in agents {
        let named = [agent.owner_id, agent.submitter, agent.claimed_by];
        parties.insert(agent.id, named.into_iter().flatten().collect());
    }
    let agent_of: HashMap<i64, Uuid> = sources
        .iter()
        .filter_map(|source| Some((source.id, source.agent_id?)))
        .filter(|(_, agent)| parties.contains_key(agent))
        .collect();
    let fed: Vec<i64> = agent_of.keys().copied().collect();
    for registrant in coverage::registrants_of(on, &fed).await? {
        let agent = agent_of.get(&registrant.source_id);
        let of_it = agent.and_then(|agent| parties.get_mut(agent));
        if let (Some(of_it), Some(account)) = (of_it, registrant.account_id) {
            of_it.insert(account);
        }
    }
    Ok(parties)
}

/// The accounts that may not decide a review: the parties, and the account whose break-glass it confirms.
pub async fn excluded(
    on: &impl Handle,
    config: &Config,
    agent: &agent::Model,
    question: &review::Model,
) -> Result<BTreeSet<Uuid>> {
    let (agents, questions) = (std::slice::from_ref(agent), std::slice::from_ref(question));
    let mut excluded = excluded_of(on, config, agents, questions).await?;
    Ok(excluded.remove(&question.id).unwrap_or_default())
}

/// The same for several reviews of these agents, by review; those of other agents are left out.
pub async fn excluded_of(
    on: &impl Handle,
    config: &Config,
    agents: &[agent::Model],
    questions: &[review::Model],
) -> Result<HashMap<Uuid, BTreeSet<Uuid>>> {
    let parties = parties_of(on, config, agents).await?;
    let mut excluded = HashMap::new();
    for question in questions {
        if !agents.iter().any(|agent| agent.id == question.agent_id) {
            continue;
        }
        let of_agent = parties.get(&question.agent_id).cloned();
        let mut of_it: BTreeSet<Uuid> = of_agent.unwrap_or_default();
        if question.kind == ReviewKind::BreakGlass {
            let broken = terms::break_glass_of(on, question.id).await?;
            of_it.extend(broken.map(|broken| broken.account_id));
        }
        excluded.insert(question.id, of_it);
    }
    Ok(excluded)
}

pub fn refuse_party(account: Uuid, parties: &BTreeSet<Uuid>) -> Result<()> {
    if !parties.contains(&account) {
        return Ok(());
    }
    Err(AppError::forbidden(
        "Under four-eyes neither the owner of an agent nor who registered it decides its reviews, and nobody confirms a glass \
         that they broke; ask another curator.",
    ))
}

/// Whether an account may decide now. One with a role that only a later build knows may not.
pub fn may_decide(account: &account::Model, parties: &BTreeSet<Uuid>) -> bool {
    let decides = account
        .roles()
        .is_ok_and(|roles| roles.iter().any(|role| role.may(Permission::Approve)));
    account.may_be_used() && decides && !parties.contains(&account.id)
}

/// Whether an account may use break-glass now: it decides reviews and is an admin.
pub fn may_break_glass(account: &account::Model) -> bool {
    let Ok(roles) = account.roles() else {
        return false;
    };
    let may = |permission| roles.iter().any(|role| role.may(permission));
    account.may_be_used() && may(Permission::Approve) && may(Permission::Administer)
}

/// The accounts of these approvals that may decide now: only their approvals count.
pub async fn counting(
    on: &impl Handle,
    approvals: &[review_approval::Model],
    parties: &BTreeSet<Uuid>,
) -> Result<BTreeSet<Uuid>> {
    let ids: Vec<Uuid> = approvals.iter().map(|one| one.account_id).collect();
    let found = accounts::accounts_by_ids(on, &ids).await?;
    let counting = found.iter().filter(|one| may_decide(one, parties));
    Ok(counting.map(|one| one.id).collect())
}
