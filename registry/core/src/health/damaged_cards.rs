//! Reports stored cards whose bytes do not match their digest: in the log, and as one event for each version.

use a2a_registry_domain::event::EventKind;
use a2a_registry_store::{Handle as _, agents, events, versions};
use serde_json::json;
use uuid::Uuid;

use crate::commit::approver::SYSTEM;
use crate::commit::ledger::Ledger;
use crate::commit::publish::commit_ledger;
use crate::context::Context;
use crate::error::Result;

const DIGESTS: usize = 50;

/// Versions in one transaction.
const VERSIONS: u64 = 200;

/// Reports every damaged body that was noted and not reported yet. A version that any process has reported before gets
/// no second event. If the database fails, the next call continues with what is left.
pub async fn report_damaged_cards(context: &Context) -> Result<()> {
    let damaged = context.store.damaged_bodies();
    loop {
        let digests = damaged.unreported(DIGESTS);
        if digests.is_empty() {
            return Ok(());
        }
        for digest in digests {
            report_body(context, &digest).await?;
            damaged.set_reported(&digest);
        }
    }
}

async fn report_body(context: &Context, digest: &str) -> Result<()> {
    let mut after = Uuid::nil();
    loop {
        let found = versions::versions_with_body(&context.store, digest, after, VERSIONS).await?;
        let Some((last, _)) = found.last() else {
            return Ok(());
        };
        after = *last;
        let write = context.store.write().await?;
        // Locks the agents, so that of several processes that find the damage one writes the event.
        let ids: Vec<Uuid> = found.iter().map(|(_, agent)| *agent).collect();
        agents::agents_by_ids(&write, &ids).await?;
        let mut ledger = Ledger::new(context.now(), context.entropy.as_ref());
        for (version, agent) in found {
            tracing::error!(
                digest,
                %version,
                %agent,
                "the stored bytes of a card have another digest; they are not served"
            );
            let data = json!({"digest": digest, "version": version});
            let kind = EventKind::AgentDamagedCard;
            if !events::agent_has_event(&write, agent, kind, &data).await? {
                ledger.agent_event(kind, agent, SYSTEM, data);
            }
        }
        commit_ledger(context, write, ledger).await?;
    }
}
