//! Loads the rows that are needed to show domains to a caller.

use std::collections::{HashMap, HashSet};

use a2a_registry_domain::role::Permission;
use a2a_registry_search::sees;
use a2a_registry_store::entity::{
    account, agent, attempt, challenge, domain, enrolled_key, owner_marks, proof, proof_check,
    source,
};
use a2a_registry_store::{accounts, agents, coverage, domains, ownership};
use uuid::Uuid;

use crate::admission::coverage::SourceCoverage;
use crate::agents::policy_facts::{labels_of_all, rows_decide};
use crate::context::Context;
use crate::domains::visible_part::DomainAgents;
use crate::error::Result;
use crate::visibility::caller::Caller;
use crate::visibility::{Openness, is_listed, visible_to};

/// The rows of some domains, in one list each for all domains.
pub struct DomainRows {
    pub sources: Vec<source::Model>,
    /// The ended sources that the caller has registered, with the time of their end.
    pub ended: Vec<(source::Model, i64)>,
    pub standings: SourceCoverage,
    /// By the source, the newest first.
    pub attempts: HashMap<i64, Vec<attempt::Model>>,
    pub proofs: Vec<proof::Model>,
    pub challenges: Vec<challenge::Model>,
    pub checks: Vec<proof_check::Model>,
    pub keys: Vec<enrolled_key::Model>,
    pub marks: Vec<owner_marks::Model>,
    pub owners: Vec<account::Model>,
    pub agents: DomainAgents,
}

impl DomainRows {
    pub async fn load(context: &Context, caller: &Caller, rows: &[domain::Model]) -> Result<Self> {
        let store = &context.store;
        let ids: Vec<i64> = rows.iter().map(|row| row.id).collect();
        let sources = domains::sources_of(store, &ids).await?;
        let now = context.now();
        let owners: Vec<Uuid> = rows.iter().filter_map(|row| row.owner_at(now)).collect();
        let account = caller.account.as_ref();
        let ended = match account.filter(|_| !caller.may(Permission::SeeAll)) {
            Some(account) => coverage::ended_registrations(store, &ids, account.id).await?,
            None => Vec::new(),
        };
        Ok(Self {
            ended,
            standings: SourceCoverage::load(store, rows, &sources, now).await?,
            attempts: attempts_by_source(context, &sources).await?,
            sources,
            proofs: domains::proofs_of(store, &ids).await?,
            challenges: ownership::challenges_of(store, &ids).await?,
            checks: ownership::checks_of(store, &ids).await?,
            keys: ownership::enrolled_of(store, &ids).await?,
            marks: ownership::owner_marks_of(store, &ids).await?,
            owners: accounts::accounts_by_ids(store, &owners).await?,
            agents: agents_for(context, caller, &ids).await?,
        })
    }
}

async fn attempts_by_source(
    context: &Context,
    sources: &[source::Model],
) -> Result<HashMap<i64, Vec<attempt::Model>>> {
    let ids: Vec<i64> = sources.iter().map(|row| row.id).collect();
    let mut attempts: HashMap<i64, Vec<attempt::Model>> = HashMap::new();
    for row in domains::attempts_of(&context.store, &ids).await? {
        attempts.entry(row.source_id).or_default().push(row);
    }
    Ok(attempts)
}

async fn agents_for(context: &Context, caller: &Caller, ids: &[i64]) -> Result<DomainAgents> {
    let all = agents::agents_of(&context.store, ids).await?;
    let listed = listed_of(context, all.clone(), caller).await?;
    let agent_ids: Vec<Uuid> = all.iter().map(|agent| agent.id).collect();
    Ok(DomainAgents {
        holds: agents::holds_of(&context.store, &agent_ids).await?,
        listed,
        all,
    })
}

/// The agents among these that are listed and visible to the caller.
async fn listed_of(
    context: &Context,
    rows: Vec<agent::Model>,
    caller: &Caller,
) -> Result<Vec<agent::Model>> {
    let ids: Vec<Uuid> = rows.iter().map(|row| row.id).collect();
    let held: HashSet<Uuid> = agents::holds_of(&context.store, &ids)
        .await?
        .into_iter()
        .map(|row| row.agent_id)
        .collect();
    let labels = caller.labels(&context.policies.in_force());
    let listed = rows
        .into_iter()
        .filter(|row| is_listed(row, &[]) && !held.contains(&row.id));
    if rows_decide(context) {
        let seen =
            |row: &agent::Model| sees(&labels, &visible_to(row, Openness::Listed, None, &[]));
        return Ok(listed.filter(seen).collect());
    }
    let listed: Vec<agent::Model> = listed.collect();
    let carried = labels_of_all(context, &context.store, listed.clone()).await?;
    let seen = |row: &agent::Model| carried.get(&row.id).is_some_and(|one| sees(&labels, one));
    Ok(listed.into_iter().filter(seen).collect())
}
