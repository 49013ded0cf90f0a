//! The agents and acts that a write touched, for caches, search index and log.

use std::collections::{HashMap, HashSet};

use a2a_registry_domain::event::EventKind;
use a2a_registry_search::ChangedAgent;
use a2a_registry_store::WriteTransaction;
use a2a_registry_store::agents::agents_by_ids;
use a2a_registry_store::domains::domains_by_ids;
use a2a_registry_store::entity::agent;
use a2a_registry_store::events::NewEvent;
use uuid::Uuid;

use crate::commit::agent_rows::{load_holds_by_agent, to_changed_agents};
use crate::commit::decision_maker::{CRAWLER_ACTOR, POLICY_ACTOR, SYSTEM_ACTOR};
use crate::error::AppError;

/// The agents and acts that a written ledger touched.
#[derive(Debug, Clone, Default)]
#[must_use = "what is written must be committed and published, as `commit_written` does"]
pub struct CommittedChanges {
    /// Agents whose cached responses are stale.
    pub changed_ids: Vec<Uuid>,
    /// The same agents, with the labels that may see them now.
    pub changed_agents: Vec<ChangedAgent>,
    /// The highest event appended.
    pub last_seq: Option<i64>,
    /// The acts and decisions, for the log.
    audit_lines: Vec<AuditLogLine>,
}

/// What a write knows without reading it of the agents that it touches.
#[derive(Debug)]
pub struct WrittenRows {
    pub agents: Vec<agent::Model>,
    /// The account that first registered a domain, by the domain.
    pub first_registrants: HashMap<i64, Option<Uuid>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct AuditLogLine {
    kind: EventKind,
    subject: String,
    actor: String,
}

impl AuditLogLine {
    fn from_event(event: &NewEvent) -> Option<Self> {
        // An agent is also updated without an act; an update by an account is one.
        let is_account_update = event.kind == EventKind::AgentUpdated
            && ![POLICY_ACTOR, CRAWLER_ACTOR, SYSTEM_ACTOR].contains(&event.actor.as_str());
        (event.kind.is_action() || is_account_update).then(|| Self {
            kind: event.kind,
            subject: event.subject.clone(),
            actor: event.actor.clone(),
        })
    }
}

impl CommittedChanges {
    /// Reads what is not known of these agents, as the write leaves them; the events are not appended yet.
    pub async fn load(
        write: &WriteTransaction,
        agents: Vec<Uuid>,
        written_rows: WrittenRows,
        events: &[NewEvent],
    ) -> Result<Self, AppError> {
        let WrittenRows {
            agents: mut rows,
            mut first_registrants,
        } = written_rows;
        let known: HashSet<Uuid> = rows.iter().map(|row| row.id).collect();
        let missing_ids = agents.iter().filter(|id| !known.contains(*id));
        let missing_ids: Vec<Uuid> = missing_ids.copied().collect();
        rows.extend(agents_by_ids(write, &missing_ids).await?);
        let domains = rows.iter().map(|row| row.domain_id);
        let missing_domains = domains.filter(|id| !first_registrants.contains_key(id));
        let missing_domains: Vec<i64> = missing_domains.collect();
        for row in domains_by_ids(write, &missing_domains).await? {
            first_registrants.insert(row.id, row.account_id);
        }
        let holds = load_holds_by_agent(write, &agents).await?;
        let first = |domain: i64| first_registrants.get(&domain).copied().flatten();
        let changed = to_changed_agents(&agents, &rows, &holds, first);
        let audit_lines = events.iter().filter_map(AuditLogLine::from_event).collect();
        Ok(Self {
            changed_ids: agents,
            changed_agents: changed,
            last_seq: None,
            audit_lines,
        })
    }

    /// Logs one line for each act, after the commit. The span names the request.
    pub fn log_actions(&self) {
        for AuditLogLine {
            kind,
            subject,
            actor,
        } in &self.audit_lines
        {
            tracing::info!(act = kind.as_str(), subject, actor, "done");
        }
    }
}
