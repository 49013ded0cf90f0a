//! The registry as an ARD registry and publisher (Agentic Resource Discovery 0.91, AI Catalog 1.0).
//!
//! Every response is derived from the results of `/v1/agents` for the same caller, in the same order. It has only
//! agents with a catalog identifier, which agents of proved domains have, and those of vouched hosts under the
//! company's authority.

pub mod catalog_document;
pub mod explore;
pub mod federated_search;
pub mod filter_terms;
pub mod list;
pub mod query_examples;
pub mod result_rendering;
pub mod routes;
pub mod search;
pub mod well_known;
pub mod without_urn;

use std::collections::HashMap;

use a2a_registry_api::ard::Entry;
use a2a_registry_api::limits::MAX_PAGE_SIZE;
use a2a_registry_core::agents::catalog_entry::{self, any_catalog_entry_filter};
use a2a_registry_core::agents::records::load_agent_records;
use a2a_registry_core::context::AppContext;
use a2a_registry_core::error::{AppError, Result};
use a2a_registry_core::search::collection_scope::{COLLECTION_POINTER, CollectionScope};
use a2a_registry_core::search::engine::SurfaceQuery;
use a2a_registry_core::search_pool::run_search;
use a2a_registry_core::visibility::caller::Caller;
use a2a_registry_search::{
    AgentListRequest, AgentListRow, AgentProperty, ExactFilter, ListSortValue,
};
use a2a_registry_store::agents::agents_by_ids;
use serde::Deserialize;
use serde_json::from_slice;
use uuid::Uuid;

use crate::ard::query_examples::representative_queries;

/// The name of this interface in page tokens.
const SURFACE: &str = "ard";

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ArdScope {
    /// Name of a collection; `None` for the whole registry.
    pub(crate) collection: Option<String>,
}

impl ArdScope {
    fn collection_names(&self) -> Vec<String> {
        self.collection.iter().cloned().collect()
    }

    async fn load_collection_scope(
        &self,
        context: &AppContext,
        caller: &Caller,
    ) -> Result<CollectionScope> {
        let within = CollectionScope::load(context, caller, &self.collection_names()).await;
        within.map_err(map_collection_error)
    }

    /// Base URL of this scope, to which clients append `/search`.
    fn base_url(&self, context: &AppContext) -> String {
        let base = ard_base_url(context);
        match &self.collection {
            None => base,
            Some(name) => format!("{base}/c/{name}"),
        }
    }
}

/// Returns the error of an unknown path unless ARD is enabled.
fn require_ard_enabled(context: &AppContext) -> Result<()> {
    match context.config().ard.enabled {
        true => Ok(()),
        false => Err(AppError::no_resource()),
    }
}

/// Maps an error of the search core. The path names the collection, so a collection that does not exist or that the
/// caller may not see is an unknown path.
fn map_collection_error(error: AppError) -> AppError {
    let names = |(pointer, _): &(String, String)| pointer == COLLECTION_POINTER;
    match error.members.iter().any(names) {
        true => AppError::not_found("Collection not found."),
        false => error,
    }
}

pub(crate) fn ard_base_url(context: &AppContext) -> String {
    catalog_entry::ard_base_url(&context.config())
}

/// Additional filters for the search core: entries only, with these conditions.
fn entries_only_query(exact: Vec<ExactFilter>) -> SurfaceQuery {
    let mut filters = vec![any_catalog_entry_filter()];
    filters.extend(exact);
    SurfaceQuery {
        surface: SURFACE,
        exact_filters: filters,
        shows_catalog_entries: true,
    }
}

/// Rendered entries with these identifiers that the caller may see, by identifier.
pub(crate) async fn visible_entries(
    context: &AppContext,
    caller: &Caller,
    mut identifiers: Vec<String>,
) -> Result<HashMap<String, Vec<u8>>> {
    identifiers.sort_unstable();
    identifiers.dedup();
    let labels = caller.labels(&context.policy_sets.enforced_set());
    let mut entries = HashMap::new();
    for chunk in identifiers.chunks(MAX_PAGE_SIZE as usize) {
        let mut request = AgentListRequest {
            visible_to: labels.clone(),
            limit: chunk.len(),
            ..AgentListRequest::default()
        };
        request.filters.exact.push(ExactFilter {
            property: AgentProperty::Identifier,
            values: chunk.to_vec(),
        });
        let page = run_search(context, caller, move |index| index.list_agents(&request)).await?;
        let rows = page.rows.into_iter();
        entries.extend(rows.filter_map(|row| match row.position.last() {
            Some(ListSortValue::Text(identifier)) => Some((identifier.clone(), row.entry)),
            _ => None,
        }));
    }
    Ok(entries)
}

#[derive(Deserialize)]
struct HitId {
    id: Uuid,
}

/// Complete entries, with representative queries if the cards have examples for them, or if they may be derived.
async fn load_complete_entries(context: &AppContext, rows: &[AgentListRow]) -> Result<Vec<Entry>> {
    let parsed: Vec<(Uuid, Entry)> = rows
        .iter()
        .filter_map(|row| {
            let hit: HitId = from_slice(&row.hit).ok()?;
            Some((hit.id, from_slice(&row.entry).ok()?))
        })
        .collect();
    let ids: Vec<Uuid> = parsed.iter().map(|(id, _)| *id).collect();
    let rows = agents_by_ids(&context.store, &ids).await?;
    let records = load_agent_records(&context.store, rows).await?;
    let mut cards: HashMap<Uuid, (String, Vec<String>)> = records
        .into_iter()
        .map(|record| {
            let derives = context.config().ard.derive_queries || record.agent.derived_queries;
            let queries = representative_queries(&record.card, derives);
            (record.agent.id, (record.version.digest, queries))
        })
        .collect();
    let entries = parsed.into_iter().map(|(id, mut entry)| {
        let card = cards.remove(&id);
        // The database may be ahead of the index and have a card that is not approved.
        let same = card.filter(|(digest, _)| Some(digest) == entry.digest.as_ref());
        if let Some((_, queries)) = same {
            entry.representative_queries = queries;
        }
        entry
    });
    Ok(entries.collect())
}
