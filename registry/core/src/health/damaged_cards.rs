//! Reports stored cards whose bytes do not match their digest: in the log, and as one event for each version.

use a2a_registry_domain::event::EventKind;
use a2a_registry_store::{Executor as _, agents, events, versions};
use serde_json::json;
use uuid::Uuid;

use crate::commit::change_set::ChangeSet;
use crate::commit::decision_maker::SYSTEM_ACTOR;
use crate::commit::publish::commit_changes;
use crate::context::AppContext;
use crate::error::Result;

const DIGESTS_PER_BATCH: usize = 50;

/// Versions in one transaction.
const VERSIONS_PER_BATCH: u64 = 200;

/// Reports every damaged card that was recorded but not reported yet. A version that any process has already reported
/// gets no second event. If the database fails, the next call reports the rest.
pub async fn report_damaged_cards(context: &AppContext) -> Result<()> {
    let damaged = context.store.damaged_bodies();
    loop {
        let digests = damaged.unreported_digests(DIGESTS_PER_BATCH);
        if digests.is_empty() {
            return Ok(());
        }
        for digest in digests {
            report_damaged_card(context, &digest).await?;
            damaged.mark_reported(&digest);
        }
    }
}

async fn report_damaged_card(context: &AppContext, digest: &str) -> Result<()> {
    let mut after = Uuid::nil();
    loop {
        let affected =
            versions::versions_with_body(&context.store, digest, after, VERSIONS_PER_BATCH).await?;
        let Some((last, _)) = affected.last() else {
            return Ok(());
        };
        after = *last;
        let write = context.store.begin_write().await?;
        // Locks the agents, so that only one of several processes that find the damage writes the event.
        let ids: Vec<Uuid> = affected.iter().map(|(_, agent)| *agent).collect();
        agents::agents_by_ids(&write, &ids).await?;
        let mut change_set = ChangeSet::new(context.now(), context.entropy.as_ref());
        for (version, agent) in affected {
            tracing::error!(
                digest,
                %version,
                %agent,
                "the stored bytes of a card do not match its digest; they are not served"
            );
            let data = json!({"digest": digest, "version": version});
            let kind = EventKind::AgentDamagedCard;
            if !events::agent_has_event(&write, agent, kind, &data).await? {
                change_set.add_agent_event(kind, agent, SYSTEM_ACTOR, data);
            }
        }
        commit_changes(context, write, change_set).await?;
    }
}
