//! Agents and actions changed by a write, for caches, search index and log.

use std::collections::{HashMap, HashSet};

use a2a_registry_search::ChangedAgent;
use a2a_registry_store::WriteTransaction;
use a2a_registry_store::agents::agents_by_ids;
use a2a_registry_store::domains::domains_by_ids;
use a2a_registry_store::entity::agent;
use uuid::Uuid;

use crate::commit::agent_rows::{load_holds_by_agent, to_changed_agents};
use crate::commit::audit_log::{AuditLogLine, add_current_cards};
use crate::error::AppError;

/// The agents and actions that a written change set has changed.
#[derive(Debug, Clone, Default)]
#[must_use = "the write must be committed and published, as `commit_and_publish` does"]
pub struct CommittedChanges {
    /// Agents whose cached responses are stale.
    pub changed_ids: Vec<Uuid>,
    /// The same agents, with the labels of callers who may see them now.
    pub changed_agents: Vec<ChangedAgent>,
    /// The number of the last event that was appended.
    pub last_seq: Option<i64>,
    /// Whether callers may have changed.
    pub changes_callers: bool,
    /// Actions and decisions, for the log.
    audit_lines: Vec<AuditLogLine>,
}

/// The rows that a write already has of the agents that it changes.
#[derive(Debug)]
pub struct WrittenAgentRows {
    pub agents: Vec<agent::Model>,
    /// The account that first registered a domain, by domain.
    pub first_registrants: HashMap<i64, Option<Uuid>>,
    /// The log lines of its actions, with the names that the write knows.
    pub audit_lines: Vec<AuditLogLine>,
}

impl CommittedChanges {
    /// Loads the missing rows of these agents, as the write leaves them; the events are not appended yet.
    pub async fn load(
        write: &WriteTransaction,
        agents: Vec<Uuid>,
        written_rows: WrittenAgentRows,
    ) -> Result<Self, AppError> {
        let WrittenAgentRows {
            agents: mut rows,
            mut first_registrants,
            mut audit_lines,
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
        add_current_cards(write, &mut audit_lines).await?;
        Ok(Self {
            changed_ids: agents,
            changed_agents: changed,
            last_seq: None,
            changes_callers: false,
            audit_lines,
        })
    }

    /// Logs one line for each action, after the commit. The span names the request.
    pub fn log_actions(&self) {
        for line in &self.audit_lines {
            line.log();
        }
    }
}
