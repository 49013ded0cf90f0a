//! Rows that determine who may see agents.

use std::collections::{HashMap, HashSet};

use a2a_registry_search::ChangedAgent;
use a2a_registry_store::agents::{agents_by_ids, holds_of_agents};
use a2a_registry_store::domains::domains_by_ids;
use a2a_registry_store::entity::{agent, domain, hold};
use a2a_registry_store::{Executor, StoreError};
use uuid::Uuid;

use crate::visibility::{ListingState, is_listed, visibility_labels};

/// Agents, their holds by agent, and their domains by key. Every read of agents starts with these.
#[derive(Debug)]
pub struct AgentRows {
    /// In no order.
    pub agents: Vec<agent::Model>,
    pub holds: HashMap<Uuid, Vec<hold::Model>>,
    pub domains: HashMap<i64, domain::Model>,
}

impl AgentRows {
    /// Loads the rows of the agents with these ids; missing ones are left out.
    pub async fn load_by_ids(db: &impl Executor, ids: &[Uuid]) -> Result<Self, StoreError> {
        Self::load_with_holds_and_domains(db, agents_by_ids(db, ids).await?).await
    }

    pub async fn load_with_holds_and_domains(
        db: &impl Executor,
        agents: Vec<agent::Model>,
    ) -> Result<Self, StoreError> {
        let ids: Vec<Uuid> = agents.iter().map(|row| row.id).collect();
        let mut domains: Vec<i64> = agents.iter().map(|row| row.domain_id).collect();
        domains.sort_unstable();
        domains.dedup();
        let domains = domains_by_ids(db, &domains).await?;
        Ok(Self {
            holds: load_holds_by_agent(db, &ids).await?,
            domains: domains.into_iter().map(|row| (row.id, row)).collect(),
            agents,
        })
    }

    /// The labels of callers who may see the agents with these ids.
    pub fn to_changed_agents(&self, ids: &[Uuid]) -> Vec<ChangedAgent> {
        let first = |domain: i64| self.domains.get(&domain)?.account_id;
        to_changed_agents(ids, &self.agents, &self.holds, first)
    }
}

pub async fn load_holds_by_agent(
    db: &impl Executor,
    ids: &[Uuid],
) -> Result<HashMap<Uuid, Vec<hold::Model>>, StoreError> {
    let mut holds: HashMap<Uuid, Vec<hold::Model>> = HashMap::new();
    for row in holds_of_agents(db, ids).await? {
        holds.entry(row.agent_id).or_default().push(row);
    }
    Ok(holds)
}

/// The labels of callers who may see the agents with these ids, by their rows and holds; `first_registrant` gives the
/// account that first registered a domain. An agent without a row is visible to no one.
pub fn to_changed_agents(
    ids: &[Uuid],
    rows: &[agent::Model],
    holds: &HashMap<Uuid, Vec<hold::Model>>,
    first_registrant: impl Fn(i64) -> Option<Uuid>,
) -> Vec<ChangedAgent> {
    let known: HashSet<Uuid> = rows.iter().map(|row| row.id).collect();
    let missing = ids.iter().filter(|id| !known.contains(*id));
    let missing = missing.copied().map(ChangedAgent::hidden);
    let changed = rows.iter().map(|row| {
        let is_known =
            row.lifecycle.known_value().is_some() && row.visibility.known_value().is_some();
        if row.retired_at.is_some() || !is_known {
            return ChangedAgent::hidden(row.id);
        }
        let agent_holds = holds.get(&row.id).map(Vec::as_slice).unwrap_or_default();
        let listed = is_listed(row, agent_holds);
        let openness = ListingState::new(listed, !agent_holds.is_empty());
        ChangedAgent {
            id: row.id,
            // A registrant of an unlisted agent that is not its submitter sees it only once the index has it: never
            // too early.
            visible_to: visibility_labels(row, openness, first_registrant(row.domain_id), &[]),
            listed,
        }
    });
    changed.chain(missing).collect()
}
