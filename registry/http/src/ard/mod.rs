//! The registry as an ARD registry and publisher (Agentic Resource Discovery 0.91, AI Catalog 1.0).
//!
//! Every answer is derived from what `/v1/agents` finds for the same caller: the agents with a catalog identifier,
//! which those of proved domains have, in the same order.

pub mod explore;
pub mod federated;
pub mod left_out;
pub mod list;
pub mod published;
pub mod queries;
pub mod result;
pub mod routes;
pub mod search;
pub mod terms;
pub mod well_known;

use std::collections::HashMap;

use a2a_registry_api::ard::Entry;
use a2a_registry_api::limits::MAX_PAGE;
use a2a_registry_core::agents::catalog_entry::{any_entry, base_of};
use a2a_registry_core::agents::records::records;
use a2a_registry_core::context::Context;
use a2a_registry_core::error::{AppError, Result};
use a2a_registry_core::index_pool::run;
use a2a_registry_core::search::find::Extra;
use a2a_registry_core::search::within::{COLLECTION, Within};
use a2a_registry_core::visibility::caller::Caller;
use a2a_registry_search::{ExactFilter, ListRequest, ListRow, ListValue, Property};
use a2a_registry_store::agents::agents_by_ids;
use serde::Deserialize;
use serde_json::from_slice;
use uuid::Uuid;

use crate::ard::queries::representative_queries;

/// The name of this interface in page tokens.
const DOOR: &str = "ard";

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Part {
    /// A collection; `None` for everything.
    pub(crate) collection: Option<String>,
}

impl Part {
    fn names(&self) -> Vec<String> {
        self.collection.iter().cloned().collect()
    }

    async fn within(&self, context: &Context, caller: &Caller) -> Result<Within> {
        let within = Within::load(context, caller, &self.names()).await;
        within.map_err(without_collection)
    }

    /// The base URL of this part, to which clients append `/search`.
    fn base(&self, context: &Context) -> String {
        let base = base(context);
        match &self.collection {
            None => base,
            Some(name) => format!("{base}/c/{name}"),
        }
    }
}

/// Answers like an address where nothing is, unless ARD is served here.
fn demand_ard(context: &Context) -> Result<()> {
    match context.config.ard.enabled {
        true => Ok(()),
        false => Err(AppError::no_address()),
    }
}

/// An error of the search core. The path names the collection here, so one that does not exist, or that the caller may
/// not see, is an address where nothing is.
fn without_collection(error: AppError) -> AppError {
    let names = |(pointer, _): &(String, String)| pointer == COLLECTION;
    match error.members.iter().any(names) {
        true => AppError::not_found("There is no such collection."),
        false => error,
    }
}

pub(crate) fn base(context: &Context) -> String {
    base_of(&context.config)
}

/// What the search core needs beside a query: entries only, and these conditions.
fn extra(exact: Vec<ExactFilter>) -> Extra {
    let mut all = vec![any_entry()];
    all.extend(exact);
    Extra {
        door: DOOR,
        exact: all,
        entries: true,
    }
}

/// The rendered entries with these identifiers that the caller may see, by identifier.
pub(crate) async fn seen_entries(
    context: &Context,
    caller: &Caller,
    mut identifiers: Vec<String>,
) -> Result<HashMap<String, Vec<u8>>> {
    identifiers.sort_unstable();
    identifiers.dedup();
    let labels = caller.labels(&context.policies.in_force());
    let mut seen = HashMap::new();
    for some in identifiers.chunks(MAX_PAGE as usize) {
        let mut request = ListRequest {
            visible_to: labels.clone(),
            limit: some.len(),
            ..ListRequest::default()
        };
        request.filters.exact.push(ExactFilter {
            property: Property::Identifier,
            values: some.to_vec(),
        });
        let page = run(context, caller, move |index| index.list(&request)).await?;
        let rows = page.rows.into_iter();
        seen.extend(rows.filter_map(|row| match row.place.last() {
            Some(ListValue::Text(identifier)) => Some((identifier.clone(), row.entry)),
            _ => None,
        }));
    }
    Ok(seen)
}

#[derive(Deserialize)]
struct HitId {
    id: Uuid,
}

/// Whole entries, with representative queries if the cards have examples for them, or if they may be derived.
async fn whole_entries(context: &Context, rows: &[ListRow]) -> Result<Vec<Entry>> {
    let read: Vec<(Uuid, Entry)> = rows
        .iter()
        .filter_map(|row| {
            let hit: HitId = from_slice(&row.hit).ok()?;
            Some((hit.id, from_slice(&row.entry).ok()?))
        })
        .collect();
    let ids: Vec<Uuid> = read.iter().map(|(id, _)| *id).collect();
    let rows = agents_by_ids(&context.store, &ids).await?;
    let records = records(&context.store, rows).await?;
    let mut cards: HashMap<Uuid, (String, Vec<String>)> = records
        .into_iter()
        .map(|record| {
            let derives = context.config.ard.derive_queries || record.agent.derived_queries;
            let queries = representative_queries(&record.card, derives);
            (record.agent.id, (record.version.digest, queries))
        })
        .collect();
    let entries = read.into_iter().map(|(id, mut entry)| {
        let card = cards.remove(&id);
        // The database may be ahead of the index, with a card that is not approved.
        let same = card.filter(|(digest, _)| Some(digest) == entry.digest.as_ref());
        if let Some((_, queries)) = same {
            entry.representative_queries = queries;
        }
        entry
    });
    Ok(entries.collect())
}
