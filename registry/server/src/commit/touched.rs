//! The agents and acts that a write touched, for caches, search index and log.

use std::collections::BTreeMap;

use a2a_registry_domain::event::EventKind;
use a2a_registry_search::ChangedAgent;
use a2a_registry_store::agents::{agents_by_ids, holds_of};
use a2a_registry_store::domains::domains_by_ids;
use a2a_registry_store::entity::hold;
use a2a_registry_store::events::NewEvent;
use a2a_registry_store::{Handle, Write};
use uuid::Uuid;

use crate::commit::approver::{CRAWLER, POLICY, SYSTEM};
use crate::error::AppError;
use crate::visibility::{Openness, is_listed, visible_to};

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

/// An act or decision, as it is logged.
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
    /// Reads these agents as the write leaves them; the events are not appended yet.
    pub(crate) async fn by(
        write: &Write,
        agents: Vec<Uuid>,
        events: &[NewEvent],
    ) -> Result<Self, AppError> {
        let changed = changed_agents(write, &agents).await?;
        let acts = events.iter().filter_map(LoggedAct::of).collect();
        Ok(Self {
            agents,
            changed,
            seq: None,
            acts,
        })
    }

    /// Logs one line for each act, after the commit. The span names the request.
    pub(crate) fn log(&self) {
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

/// The labels that may see these agents, by their rows; inside a write, as the write leaves them.
pub(crate) async fn changed_agents(
    on: &impl Handle,
    ids: &[Uuid],
) -> Result<Vec<ChangedAgent>, AppError> {
    let rows = agents_by_ids(on, ids).await?;
    let missing = ids
        .iter()
        .filter(|id| rows.iter().all(|row| row.id != **id));
    let missing: Vec<Uuid> = missing.copied().collect();
    let mut holds: BTreeMap<Uuid, Vec<hold::Model>> = BTreeMap::new();
    for row in holds_of(on, ids).await? {
        holds.entry(row.agent_id).or_default().push(row);
    }
    let held = |id: &Uuid| holds.get(id).map(Vec::as_slice).unwrap_or_default();
    let domains: Vec<i64> = rows.iter().map(|row| row.domain_id).collect();
    let domains = domains_by_ids(on, &domains).await?;
    let first: BTreeMap<i64, Option<Uuid>> = domains
        .iter()
        .map(|domain| (domain.id, domain.account_id))
        .collect();
    let changed = rows.iter().map(|row| {
        let is_known = row.lifecycle.known().is_some() && row.visibility.known().is_some();
        if row.retired_at.is_some() || !is_known {
            return ChangedAgent::forbidden(row.id);
        }
        let listed = is_listed(row, held(&row.id));
        ChangedAgent {
            id: row.id,
            // A registrant of an unlisted agent that is not its submitter sees it only once the index has it: never too
            // early.
            visible_to: visible_to(
                row,
                Openness::of(listed, !held(&row.id).is_empty()),
                first.get(&row.domain_id).copied().flatten(),
                &[],
            ),
            listed,
        }
    });
    let gone = missing.into_iter().map(ChangedAgent::forbidden);
    Ok(changed.chain(gone).collect())
}
