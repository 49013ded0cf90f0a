//! The agents and acts that a write touched, for caches, search index and log.

use std::collections::{HashMap, HashSet};

use a2a_registry_domain::event::EventKind;
use a2a_registry_search::ChangedAgent;
use a2a_registry_store::Write;
use a2a_registry_store::agents::agents_by_ids;
use a2a_registry_store::domains::domains_by_ids;
use a2a_registry_store::entity::agent;
use a2a_registry_store::events::NewEvent;
use uuid::Uuid;

use crate::commit::agent_rows::{changed_agents, holds_by_agent};
use crate::commit::approver::{CRAWLER, POLICY, SYSTEM};
use crate::error::AppError;

/// The agents and acts that a written ledger touched.
#[derive(Debug, Clone, Default)]
#[must_use = "what is written must be committed and published, as `commit_written` does"]
pub struct Touched {
    /// Agents whose cached responses are stale.
    pub agents: Vec<Uuid>,
    /// The same agents, with the labels that may see them now.
    pub changed: Vec<ChangedAgent>,
    /// The highest event appended.
    pub seq: Option<i64>,
    /// The acts and decisions, for the log.
    acts: Vec<LoggedAct>,
}

/// What a write knows without reading it of the agents that it touches.
#[derive(Debug)]
pub struct WrittenRows {
    pub agents: Vec<agent::Model>,
    /// The account that first registered a domain, by the domain.
    pub first_registrants: HashMap<i64, Option<Uuid>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct LoggedAct {
    kind: EventKind,
    subject: String,
    actor: String,
}

impl LoggedAct {
    fn of(event: &NewEvent) -> Option<Self> {
        // An agent is also updated without an act; an update by an account is one.
        let by_hand = event.kind == EventKind::AgentUpdated
            && ![POLICY, CRAWLER, SYSTEM].contains(&event.actor.as_str());
        (event.kind.is_act() || by_hand).then(|| Self {
            kind: event.kind,
            subject: event.subject.clone(),
            actor: event.actor.clone(),
        })
    }
}

impl Touched {
    /// Reads what is not known of these agents, as the write leaves them; the events are not appended yet.
    pub async fn by(
        write: &Write,
        agents: Vec<Uuid>,
        written: WrittenRows,
        events: &[NewEvent],
    ) -> Result<Self, AppError> {
        let WrittenRows {
            agents: mut rows,
            mut first_registrants,
        } = written;
        let known: HashSet<Uuid> = rows.iter().map(|row| row.id).collect();
        let others = agents.iter().filter(|id| !known.contains(*id));
        let others: Vec<Uuid> = others.copied().collect();
        rows.extend(agents_by_ids(write, &others).await?);
        let domains = rows.iter().map(|row| row.domain_id);
        let unknown = domains.filter(|id| !first_registrants.contains_key(id));
        let unknown: Vec<i64> = unknown.collect();
        for row in domains_by_ids(write, &unknown).await? {
            first_registrants.insert(row.id, row.account_id);
        }
        let holds = holds_by_agent(write, &agents).await?;
        let first = |domain: i64| first_registrants.get(&domain).copied().flatten();
        let changed = changed_agents(&agents, &rows, &holds, first);
        let acts = events.iter().filter_map(LoggedAct::of).collect();
        Ok(Self {
            agents,
            changed,
            seq: None,
            acts,
        })
    }

    /// Logs one line for each act, after the commit. The span names the request.
    pub fn log(&self) {
        for LoggedAct {
            kind,
            subject,
            actor,
        } in &self.acts
        {
            tracing::info!(act = kind.as_str(), subject, actor, "done");
        }
    }
}
