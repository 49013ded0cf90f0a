//! Memberships of agents in collections, read from the agents' rows and never from the index.

use a2a_registry_policy::CollectionMembership;
use a2a_registry_store::collections;

use crate::agents::policy_attributes::listed_agent_attributes;
use crate::agents::records::AgentRecord;
use crate::agents::views::require_visible_agent_record;
use crate::collection_filters::CollectionFilters;
use crate::collection_filters::collection_rows::can_see_collection;
use crate::context::AppContext;
use crate::error::Result;
use crate::visibility::caller::Caller;

/// The names of the collections that contain an agent, if the caller may see both.
pub async fn agent_collections(
    context: &AppContext,
    caller: &Caller,
    agent: &str,
) -> Result<Vec<String>> {
    let record = require_visible_agent_record(context, caller, agent).await?;
    containing_collections(context, caller, &record).await
}

/// Like [`agent_collections`], for an agent that the caller is known to see.
pub async fn containing_collections(
    context: &AppContext,
    caller: &Caller,
    record: &AgentRecord,
) -> Result<Vec<String>> {
    let mut rows = collections::all_collections(&context.store).await?;
    rows.retain(|row| can_see_collection(caller, row));
    Ok(CollectionFilters::from_rows(&rows)
        .collections_containing(&listed_agent_attributes(context, record)))
}
