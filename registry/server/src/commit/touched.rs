//! What a write touched, as caches, the search index and the log are told of it.

use std::collections::BTreeMap;

use a2a_registry_domain::event::EventKind;
use a2a_registry_search::ChangedAgent;
use a2a_registry_store::agents::{agents_by_ids, holds_of};
use a2a_registry_store::entity::hold;
use a2a_registry_store::events::NewEvent;
use a2a_registry_store::{Handle, Write};
use uuid::Uuid;

use crate::commit::ledger::{CRAWLER, POLICY, SYSTEM};
use crate::error::AppError;
use crate::visibility::{Openness, is_listed, visible_to};

/// What a written ledger touched.
#[derive(Debug, Clone, Default)]
pub struct Touched {
    /// Agents whose kept answers are no longer to be believed.
    pub agents: Vec<Uuid>,
    /// The same, with who may see them since.
    pub changed: Vec<ChangedAgent>,
    /// The highest event appended.
    pub seq: Option<i64>,
    /// What was done and decided, for the log.
    acts: Vec<Act>,
}

/// Something that somebody did or decided.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Act {
    kind: EventKind,
    subject: String,
    actor: String,
}

impl Act {
    fn of(event: &NewEvent) -> Option<Self> {
        // What an agent is shown with changes by itself too; by somebody's hand it is an act.
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
    /// Appends these events, and notes what they touch: the agents, as the write leaves them.
    pub(crate) async fn by(
        write: &Write,
        agents: Vec<Uuid>,
        events: Vec<NewEvent>,
    ) -> Result<Self, AppError> {
        let changed = changed_agents(write, &agents).await?;
        let acts = events.iter().filter_map(Act::of).collect();
        let seq = write.events_append(events).await?;
        Ok(Self {
            agents,
            changed,
            seq,
            acts,
        })
    }

    /// Logs one line for each act, once it is kept. Which request it came with, the span says.
    pub(crate) fn log(&self) {
        for Act {
            kind,
            subject,
            actor,
        } in &self.acts
        {
            tracing::info!(act = kind.as_str(), subject, actor, "done");
        }
    }
}

/// Who may see these agents, as the rows are; inside a write, as it leaves them.
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
    let changed = rows.iter().map(|row| {
        let is_known = row.lifecycle.known().is_some() && row.visibility.known().is_some();
        if row.retired_at.is_some() || !is_known {
            return ChangedAgent::forbidden(row.id);
        }
        let listed = is_listed(row, held(&row.id));
        ChangedAgent {
            id: row.id,
            // Further registrants of an unlisted agent wait for the index: never more is shown than may be.
            visible_to: visible_to(row, Openness::of(listed, !held(&row.id).is_empty()), &[]),
            listed,
        }
    });
    let gone = missing.into_iter().map(ChangedAgent::forbidden);
    Ok(changed.chain(gone).collect())
}
