//! The collections to whose audience a restricted agent is shown: named by its owner or a curator, and followed when
//! their audience changes.

use std::collections::BTreeSet;

use a2a_registry_api::limits::{
    MAX_AGENTS_OF_COLLECTION, MAX_COLLECTION_NAME, MAX_COLLECTIONS_OF_AGENT,
};
use a2a_registry_domain::event::EventKind;
use a2a_registry_store::agents::agents_naming_collection;
use a2a_registry_store::collections::{collections_by_ids, collections_by_names};
use a2a_registry_store::entity::{agent, collection};
use a2a_registry_store::{Handle, StoreError, Write};
use serde_json::json;
use uuid::Uuid;

use crate::collection_filters::collection_rows::sees_collection;
use crate::commit::ledger::Ledger;
use crate::commit::state::state_of;
use crate::error::{AppError, Result};
use crate::visibility::audience::{groups_in, kept};
use crate::visibility::caller::Caller;

pub(super) fn check_collections(names: &[String]) -> Result<()> {
    let fits = |name: &String| (1..=MAX_COLLECTION_NAME).contains(&name.len());
    if names.len() <= MAX_COLLECTIONS_OF_AGENT && names.iter().all(fits) {
        return Ok(());
    }
    let detail = format!(
        "at most {MAX_COLLECTIONS_OF_AGENT} collections, each with 1 to {MAX_COLLECTION_NAME} characters"
    );
    Err(AppError::invalid("/collections", detail))
}

/// Sets the collections to whose audience an agent is shown; returns whether one is new. The caller holds the lock of
/// collections. A collection that the caller may not see is refused like one that does not exist.
pub(super) async fn set_collections(
    write: &Write,
    caller: &Caller,
    agent: &mut agent::Model,
    names: &[String],
) -> Result<bool> {
    let present: BTreeSet<Uuid> = groups_in(agent.collections.as_deref())
        .into_iter()
        .collect();
    let found = collections_by_names(write, names).await?;
    let mut named: Vec<&collection::Model> = Vec::with_capacity(names.len());
    for name in names {
        let row = found.iter().find(|row| row.name == *name);
        let row = row.filter(|row| sees_collection(caller, row) || present.contains(&row.id));
        let row = row.ok_or_else(|| {
            let name: String = name.chars().take(MAX_COLLECTION_NAME).collect();
            let text = format!("There is no collection {name} that you may name.");
            AppError::conflict(text)
        })?;
        if row.audience.is_none() {
            return Err(AppError::conflict(format!(
                "Everybody sees the collection {name}: it has no audience to show an agent to."
            )));
        }
        named.push(row);
    }
    let ids: BTreeSet<Uuid> = named.iter().map(|row| row.id).collect();
    for id in ids.difference(&present) {
        let limit = MAX_AGENTS_OF_COLLECTION as u64;
        if agents_naming_collection(write, *id, limit).await?.len() >= MAX_AGENTS_OF_COLLECTION {
            return Err(AppError::limit_reached(format!(
                "A collection is named by {MAX_AGENTS_OF_COLLECTION} agents at most."
            )));
        }
    }
    let is_wider = !ids.is_subset(&present);
    keep(agent, &ids, named);
    Ok(is_wider)
}

fn keep<'a>(
    agent: &mut agent::Model,
    ids: &BTreeSet<Uuid>,
    rows: impl IntoIterator<Item = &'a collection::Model>,
) {
    let groups = rows
        .into_iter()
        .flat_map(|row| groups_in(row.audience.as_deref()));
    let groups: BTreeSet<Uuid> = groups.collect();
    let list = |ids: &BTreeSet<Uuid>| kept(&ids.iter().copied().collect::<Vec<_>>());
    let is_any = !ids.is_empty();
    agent.collections = is_any.then(|| list(ids));
    agent.collection_audience = is_any.then(|| list(&groups));
}

/// Updates the agents that name a collection after its audience was changed, or it was deleted, in this write.
pub async fn follow_audience(
    write: &Write,
    ledger: &mut Ledger<'_>,
    collection: Uuid,
    name: &str,
    by: &str,
) -> Result<()> {
    let limit = MAX_AGENTS_OF_COLLECTION as u64 + 1;
    for row in agents_naming_collection(write, collection, limit).await? {
        let mut state = state_of(write, row.id).await?;
        let ids = groups_in(state.agent.collections.as_deref());
        let rows = collections_by_ids(write, &ids).await?;
        let ids: BTreeSet<Uuid> = rows.iter().map(|row| row.id).collect();
        let before = state.agent.clone();
        keep(&mut state.agent, &ids, &rows);
        if state.agent == before {
            continue;
        }
        ledger.touch(&mut state);
        let data = json!({"collection": name});
        ledger.agent_event(EventKind::AgentUpdated, row.id, by, data);
    }
    Ok(())
}

pub(super) async fn collections_of(
    on: &impl Handle,
    agent: &agent::Model,
) -> Result<Vec<String>, StoreError> {
    let ids = groups_in(agent.collections.as_deref());
    let rows = collections_by_ids(on, &ids).await?;
    let mut names: Vec<String> = rows.into_iter().map(|row| row.name).collect();
    names.sort_unstable();
    Ok(names)
}
