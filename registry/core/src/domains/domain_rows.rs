//! Loads the rows that show domains to a caller.

use std::collections::{BTreeMap, HashMap, HashSet};

use a2a_registry_domain::role::Permission;
use a2a_registry_search::is_visible_to;
use a2a_registry_store::entity::{
    account, agent, challenge, domain, endpoint_permission, enrolled_key, fetch_attempt,
    owner_fingerprint, proof, proof_check, source, source_credential,
};
use a2a_registry_store::source_credentials::source_credentials_by_domain;
use a2a_registry_store::{
    Executor, accounts, agents, domains, endpoint_checks, ownership, registrants,
};
use uuid::Uuid;

use crate::admission::coverage::CoverageEvidence;
use crate::agents::policy_attributes::{is_visibility_policy_free, visibility_labels_by_agent};
use crate::context::AppContext;
use crate::domains::visible_contents::DomainAgents;
use crate::error::Result;
use crate::visibility::caller::Caller;
use crate::visibility::{ListingState, is_listed, visibility_labels};

/// The rows of several domains, with one list per table for all of them.
pub struct DomainRows {
    pub sources: Vec<source::Model>,
    /// The ended sources that the caller has registered, with the time of their end.
    pub ended_sources: Vec<(source::Model, i64)>,
    pub coverage_evidence: CoverageEvidence,
    /// The attempts by source, newest first.
    pub attempts: HashMap<i64, Vec<fetch_attempt::Model>>,
    pub proofs: Vec<proof::Model>,
    pub challenges: Vec<challenge::Model>,
    pub checks: Vec<proof_check::Model>,
    pub enrolled_keys: Vec<enrolled_key::Model>,
    pub credentials: Vec<source_credential::Model>,
    pub fingerprints: Vec<owner_fingerprint::Model>,
    pub owners: Vec<account::Model>,
    /// What was said about checks of endpoints, by domain.
    pub endpoint_permissions: BTreeMap<i64, endpoint_permission::Model>,
    pub agents: DomainAgents,
}

impl DomainRows {
    pub async fn load(
        context: &AppContext,
        caller: &Caller,
        rows: &[domain::Model],
    ) -> Result<Self> {
        let store = &context.store;
        let ids: Vec<i64> = rows.iter().map(|row| row.id).collect();
        // An attempt that found a catalog is not shown without the sources that the catalog brought.
        let snapshot = store.begin_snapshot().await?;
        let sources = domains::live_sources_by_domain(&snapshot, &ids).await?;
        let attempts = attempts_by_source(&snapshot, &sources).await?;
        drop(snapshot);
        let now = context.now();
        let owners: Vec<Uuid> = rows
            .iter()
            .filter_map(|row| row.domain_owner_at(now))
            .collect();
        let account = caller.account.as_ref();
        let ended_sources = match account.filter(|_| !caller.has_permission(Permission::SeeAll)) {
            Some(account) => registrants::registered_ended_sources(store, &ids, account.id).await?,
            None => Vec::new(),
        };
        Ok(Self {
            ended_sources,
            coverage_evidence: CoverageEvidence::load(store, rows, &sources, now).await?,
            attempts,
            sources,
            proofs: domains::valid_proofs_by_domain(store, &ids).await?,
            challenges: ownership::challenges_by_domain(store, &ids).await?,
            checks: ownership::proof_checks_by_domain(store, &ids).await?,
            enrolled_keys: ownership::enrolled_keys_by_domain(store, &ids).await?,
            credentials: source_credentials_by_domain(store, &ids).await?,
            fingerprints: ownership::owner_fingerprints_by_domain(store, &ids).await?,
            owners: accounts::accounts_by_ids(store, &owners).await?,
            endpoint_permissions: endpoint_checks::endpoint_permissions_by_domain(store, &ids)
                .await?,
            agents: load_domain_agents(context, caller, &ids).await?,
        })
    }
}

async fn attempts_by_source(
    db: &impl Executor,
    sources: &[source::Model],
) -> Result<HashMap<i64, Vec<fetch_attempt::Model>>> {
    let ids: Vec<i64> = sources.iter().map(|row| row.id).collect();
    let mut attempts: HashMap<i64, Vec<fetch_attempt::Model>> = HashMap::new();
    for row in domains::fetch_attempts_of_sources(db, &ids).await? {
        attempts.entry(row.source_id).or_default().push(row);
    }
    Ok(attempts)
}

async fn load_domain_agents(
    context: &AppContext,
    caller: &Caller,
    ids: &[i64],
) -> Result<DomainAgents> {
    let live_agents = agents::live_agents_by_domain(&context.store, ids).await?;
    let listed = filter_visible_listed_agents(context, live_agents.clone(), caller).await?;
    let agent_ids: Vec<Uuid> = live_agents.iter().map(|agent| agent.id).collect();
    Ok(DomainAgents {
        holds: agents::holds_of_agents(&context.store, &agent_ids).await?,
        listed,
        all: live_agents,
    })
}

/// Returns those of these agents that are listed and visible to the caller.
async fn filter_visible_listed_agents(
    context: &AppContext,
    rows: Vec<agent::Model>,
    caller: &Caller,
) -> Result<Vec<agent::Model>> {
    let ids: Vec<Uuid> = rows.iter().map(|row| row.id).collect();
    let held_agents: HashSet<Uuid> = agents::holds_of_agents(&context.store, &ids)
        .await?
        .into_iter()
        .map(|row| row.agent_id)
        .collect();
    let labels = caller.labels(&context.policy_sets.enforced_set());
    let listed = rows
        .into_iter()
        .filter(|row| is_listed(row, &[]) && !held_agents.contains(&row.id));
    if is_visibility_policy_free(context) {
        let is_visible = |row: &agent::Model| {
            is_visible_to(
                &labels,
                &visibility_labels(row, ListingState::Listed, None, &[]),
            )
        };
        return Ok(listed.filter(is_visible).collect());
    }
    let listed: Vec<agent::Model> = listed.collect();
    let carried = visibility_labels_by_agent(context, &context.store, listed.clone()).await?;
    let is_visible = |row: &agent::Model| {
        carried
            .get(&row.id)
            .is_some_and(|one| is_visible_to(&labels, one))
    };
    Ok(listed.into_iter().filter(is_visible).collect())
}
