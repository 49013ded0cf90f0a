//! Memberships: the collections that hold an agent, judged from its rows and never from the index.

use a2a_registry_search::Filters;
use a2a_registry_store::collections;
use a2a_registry_store::entity::collection;

use crate::agents::documents::filtered_part;
use crate::agents::records::AgentRecord;
use crate::agents::views::record_visible;
use crate::caller::Caller;
use crate::collection_rows::{filter_of, sees_collection};
use crate::context::Context;
use crate::error::AppError;

/// The collections of the registry, ready to be judged.
#[derive(Debug, Clone, Default)]
pub(crate) struct Memberships {
    filters: Vec<(String, Filters)>,
}

impl Memberships {
    /// These collections.
    pub(crate) fn of(rows: &[collection::Model]) -> Self {
        let filters = rows
            .iter()
            .filter_map(|row| Some((row.name.clone(), filter_of(row)?)));
        Self {
            filters: filters.collect(),
        }
    }

    /// The names of the collections that hold an agent, whoever may see them.
    pub(crate) fn holding(&self, record: &AgentRecord) -> Vec<String> {
        if self.filters.is_empty() {
            return Vec::new();
        }
        let agent = filtered_part(record);
        let holding = self.filters.iter().filter(|(_, one)| one.hold(&agent));
        holding.map(|(name, _)| name.clone()).collect()
    }
}

/// The names of the collections that hold an agent, both as far as the caller sees them.
///
/// # Errors
/// `NotFound` as for the agent.
pub async fn agent_collections(
    context: &Context,
    caller: &Caller,
    agent: &str,
) -> Result<Vec<String>, AppError> {
    let record = record_visible(context, caller, agent).await?;
    collections_holding(context, caller, &record).await
}

/// As [`agent_collections`], of an agent that the caller may see.
pub(crate) async fn collections_holding(
    context: &Context,
    caller: &Caller,
    record: &AgentRecord,
) -> Result<Vec<String>, AppError> {
    let mut rows = collections::collections(&context.store).await?;
    rows.retain(|row| sees_collection(caller, row));
    Ok(Memberships::of(&rows).holding(record))
}
