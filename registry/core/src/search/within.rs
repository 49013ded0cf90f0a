//! The collections that a search names: their filters, as far as the caller may see them.

use a2a_registry_domain::facet::{Facet, FacetMap};
use a2a_registry_search::{Filters, MAX_WITHIN};
use a2a_registry_store::collections::collections_by_names;

use crate::collection_filters::collection_rows::sees_collection;
use crate::collection_filters::understood;
use crate::context::Context;
use crate::error::{AppError, Result};
use crate::visibility::caller::Caller;

pub const COLLECTION: &str = "/collection";

/// Filters of which an agent must pass at least one.
#[derive(Debug, Clone, Default)]
pub struct Within {
    pub filters: Vec<Filters>,
    /// The same as text: an answer and a page token belong to the filters, not only to the names.
    pub written: String,
}

impl Within {
    /// The filters of the collections with these names. A collection that the caller may not see is refused like one
    /// that does not exist.
    pub async fn load(context: &Context, caller: &Caller, names: &[String]) -> Result<Self> {
        let mut within = Self::default();
        if names.is_empty() {
            return Ok(within);
        }
        if names.len() > MAX_WITHIN {
            let detail = format!("at most {MAX_WITHIN} collections in one search");
            return Err(AppError::invalid(COLLECTION, detail));
        }
        let rows = collections_by_names(&context.store, names).await?;
        for name in names {
            let row = rows.iter().find(|row| row.name == *name);
            let row = row.filter(|row| sees_collection(caller, row));
            let row = row.ok_or_else(|| no_collection(name))?;
            within
                .written
                .push_str(&format!(" [{} {}]", row.name, row.filter));
            within.filters.extend(understood(&row.name, &row.filter));
        }
        if within.filters.is_empty() {
            // None of them is understood, so no agent is in them.
            within.filters.push(nothing());
        }
        Ok(within)
    }
}

/// A filter that no agent passes: no label is empty.
fn nothing() -> Filters {
    Filters {
        values: FacetMap::from([(Facet::Label, vec![String::new()])]),
        ..Filters::default()
    }
}

fn no_collection(name: &str) -> AppError {
    let name: String = name.chars().take(100).collect();
    AppError::invalid(
        COLLECTION,
        format!(
            "There is no collection {name} that you may see; `GET /v1/collections` lists those that you do."
        ),
    )
}
