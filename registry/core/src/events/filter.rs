//! Filters of events: the conditions of hooks, on the kinds of events.

use std::collections::{HashMap, HashSet};

use a2a_registry_api::HookFilter;
use a2a_registry_domain::event::EventKind;
use a2a_registry_store::agents::agents_by_ids;
use a2a_registry_store::entity::event;
use serde_json::Value;
use uuid::Uuid;

use crate::context::AppContext;
use crate::error::Result;
use crate::hooks::notices::event_agent;
use crate::hooks::sight::select_agents;
use crate::visibility::caller::Caller;

/// Which events are shown; those of all kinds and about anything by default.
#[derive(Debug, Clone, Default)]
pub struct EventFilter {
    pub kinds: Vec<EventKind>,
    /// The conditions on agents; its kinds are not used.
    pub agents: HookFilter,
}

impl EventFilter {
    /// Leaves the events that pass. Collections and saved searches select agents as the caller finds them now.
    pub async fn retain_matching(
        &self,
        context: &AppContext,
        caller: &Caller,
        rows: &mut Vec<event::Model>,
    ) -> Result<()> {
        let has_kind = |row: &event::Model| self.kinds.iter().any(|kind| row.kind == *kind);
        rows.retain(|row| self.kinds.is_empty() || has_kind(row));
        if self.agents == HookFilter::default() {
            return Ok(());
        }
        let subjects: HashMap<i64, Uuid> = rows
            .iter()
            .filter_map(|row| Some((row.seq, subject_agent(row)?)))
            .collect();
        let ids: HashSet<Uuid> = subjects.values().copied().collect();
        let ids: Vec<Uuid> = ids.into_iter().collect();
        let agents = agents_by_ids(&context.store, &ids).await?;
        let domains: HashMap<Uuid, String> =
            agents.into_iter().map(|row| (row.id, row.domain)).collect();
        let is_searched = self.agents.search.is_some() || !self.agents.collections.is_empty();
        let selected = match is_searched {
            true => {
                let filter = HookFilter {
                    domains: Vec::new(),
                    agents: Vec::new(),
                    ..self.agents.clone()
                };
                select_agents(context, caller, &filter, Some(&ids), ids.len()).await?
            }
            false => ids.into_iter().collect(),
        };
        rows.retain(|row| {
            let agent = subjects.get(&row.seq);
            let named = &self.agents.agents;
            let is_named = named.is_empty() || agent.is_some_and(|agent| named.contains(agent));
            let domain = agent.and_then(|agent| domains.get(agent));
            let own = &self.agents.domains;
            let has_domain = own.is_empty() || own.contains(domain.unwrap_or(&row.subject));
            let is_selected = !is_searched || agent.is_some_and(|agent| selected.contains(agent));
            is_named && has_domain && is_selected
        });
        Ok(())
    }
}

/// The agent of an event, also of one that only has it as its subject.
fn subject_agent(row: &event::Model) -> Option<Uuid> {
    let data: Value = serde_json::from_str(&row.data).unwrap_or_default();
    let reported = || (row.kind == EventKind::AgentReported).then(|| row.subject.parse().ok());
    event_agent(row, &data).or_else(|| reported().flatten())
}
