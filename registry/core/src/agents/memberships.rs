//! Memberships: the collections that hold an agent, read from its rows and never from the index.

use a2a_registry_policy::Collections;
use a2a_registry_store::collections;

use crate::agents::policy_facts::listed_facts;
use crate::agents::records::AgentRecord;
use crate::agents::views::record_visible;
use crate::collection_filters::CollectionFilters;
use crate::collection_filters::collection_rows::sees_collection;
use crate::context::Context;
use crate::error::Result;
use crate::visibility::caller::Caller;

/// The names of the collections that hold an agent, as far as the caller may see both.
pub async fn agent_collections(
    context: &Context,
    caller: &Caller,
    agent: &str,
) -> Result<Vec<String>> {
    let record = record_visible(context, caller, agent).await?;
    collections_holding(context, caller, &record).await
}

/// As [`agent_collections`], for an agent that the caller may see.
pub async fn collections_holding(
    context: &Context,
    caller: &Caller,
    record: &AgentRecord,
) -> Result<Vec<String>> {
    let mut rows = collections::collections(&context.store).await?;
    rows.retain(|row| sees_collection(caller, row));
    Ok(CollectionFilters::of(&rows).holding(&listed_facts(context, record)))
}
