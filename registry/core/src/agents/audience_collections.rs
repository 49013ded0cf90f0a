//! The collections whose audience may see a restricted agent: set by its owner or a curator, and applied again when
//! their audience changes.

use std::collections::BTreeSet;

use a2a_registry_api::limits::{
    MAX_AGENTS_PER_COLLECTION, MAX_COLLECTION_NAME, MAX_COLLECTIONS_PER_AGENT,
};
use a2a_registry_domain::event::EventKind;
use a2a_registry_store::agents::agents_shown_to_collection;
use a2a_registry_store::collections::{collections_by_ids, collections_by_names};
use a2a_registry_store::entity::{agent, collection};
use a2a_registry_store::{Executor, StoreError, WriteTransaction};
use serde_json::json;
use uuid::Uuid;

use crate::collection_filters::collection_rows::can_see_collection;
use crate::commit::agent_state::load_agent_state;
use crate::commit::change_set::ChangeSet;
use crate::error::{AppError, Result};
use crate::visibility::audience::{decode_audience, encode_audience};
use crate::visibility::caller::Caller;

pub(super) fn check_collection_names(names: &[String]) -> Result<()> {
    let fits = |name: &String| (1..=MAX_COLLECTION_NAME).contains(&name.len());
    if names.len() <= MAX_COLLECTIONS_PER_AGENT && names.iter().all(fits) {
        return Ok(());
    }
    let detail = format!(
        "at most {MAX_COLLECTIONS_PER_AGENT} collections, each with 1 to {MAX_COLLECTION_NAME} characters"
    );
    Err(AppError::invalid("/collections", detail))
}

/// Sets the collections whose audience may see an agent; returns whether one of them is new. The caller holds the lock
/// of collections. A collection that the caller may not see is rejected like one that does not exist.
pub(super) async fn set_audience_collections(
    write: &WriteTransaction,
    caller: &Caller,
    agent: &mut agent::Model,
    names: &[String],
) -> Result<bool> {
    let current_ids: BTreeSet<Uuid> = decode_audience(agent.collections.as_deref())
        .into_iter()
        .collect();
    let matches = collections_by_names(write, names).await?;
    let mut selected: Vec<&collection::Model> = Vec::with_capacity(names.len());
    for name in names {
        let row = matches.iter().find(|row| row.name == *name);
        let row =
            row.filter(|row| can_see_collection(caller, row) || current_ids.contains(&row.id));
        let row = row.ok_or_else(|| {
            let name: String = name.chars().take(MAX_COLLECTION_NAME).collect();
            let text = format!("The collection {name} does not exist, or you may not name it.");
            AppError::conflict(text)
        })?;
        if row.audience.is_none() {
            return Err(AppError::conflict(format!(
                "The collection {name} is visible to everyone: it has no audience to restrict an agent to."
            )));
        }
        selected.push(row);
    }
    let ids: BTreeSet<Uuid> = selected.iter().map(|row| row.id).collect();
    for id in ids.difference(&current_ids) {
        let limit = MAX_AGENTS_PER_COLLECTION as u64;
        if agents_shown_to_collection(write, *id, limit).await?.len() >= MAX_AGENTS_PER_COLLECTION {
            return Err(AppError::limit_reached(format!(
                "A collection can be named by at most {MAX_AGENTS_PER_COLLECTION} agents."
            )));
        }
    }
    let is_wider = !ids.is_subset(&current_ids);
    apply_audience_collections(agent, &ids, selected);
    Ok(is_wider)
}

fn apply_audience_collections<'a>(
    agent: &mut agent::Model,
    ids: &BTreeSet<Uuid>,
    rows: impl IntoIterator<Item = &'a collection::Model>,
) {
    let groups = rows
        .into_iter()
        .flat_map(|row| decode_audience(row.audience.as_deref()));
    let groups: BTreeSet<Uuid> = groups.collect();
    let encode_ids =
        |ids: &BTreeSet<Uuid>| encode_audience(&ids.iter().copied().collect::<Vec<_>>());
    let has_collections = !ids.is_empty();
    agent.collections = has_collections.then(|| encode_ids(ids));
    agent.collection_audience = has_collections.then(|| encode_ids(&groups));
}

/// Updates the agents that name a collection after this write changed its audience or deleted it.
pub async fn update_agents_naming_collection(
    write: &WriteTransaction,
    change_set: &mut ChangeSet<'_>,
    collection: Uuid,
    name: &str,
    actor: &str,
) -> Result<()> {
    let limit = MAX_AGENTS_PER_COLLECTION as u64 + 1;
    for row in agents_shown_to_collection(write, collection, limit).await? {
        let mut state = load_agent_state(write, row.id).await?;
        let ids = decode_audience(state.agent.collections.as_deref());
        let rows = collections_by_ids(write, &ids).await?;
        let ids: BTreeSet<Uuid> = rows.iter().map(|row| row.id).collect();
        let before = state.agent.clone();
        apply_audience_collections(&mut state.agent, &ids, &rows);
        if state.agent == before {
            continue;
        }
        change_set.mark_agent_changed(&mut state);
        let data = json!({"collection": name});
        change_set.add_agent_event(EventKind::AgentUpdated, row.id, actor, data);
    }
    Ok(())
}

pub(super) async fn audience_collection_names(
    db: &impl Executor,
    agent: &agent::Model,
) -> Result<Vec<String>, StoreError> {
    let ids = decode_audience(agent.collections.as_deref());
    let rows = collections_by_ids(db, &ids).await?;
    let mut names: Vec<String> = rows.into_iter().map(|row| row.name).collect();
    names.sort_unstable();
    Ok(names)
}
