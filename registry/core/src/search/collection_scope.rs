//! The collections that a search names: the filters of those that the caller may see.

use a2a_registry_domain::facet::{Facet, FacetMap};
use a2a_registry_search::{Filters, MAX_ANY_OF_FILTERS};
use a2a_registry_store::collections::collections_by_names;

use crate::collection_filters::collection_rows::can_see_collection;
use crate::collection_filters::parse_stored_filter;
use crate::context::AppContext;
use crate::error::{AppError, Result};
use crate::visibility::caller::Caller;

pub const COLLECTION_POINTER: &str = "/collection";

/// The filters, of which an agent must pass at least one.
#[derive(Debug, Clone, Default)]
pub struct CollectionScope {
    pub filters: Vec<Filters>,
    /// The filters as text: responses and page tokens belong to the filters, not only to the names.
    pub canonical_text: String,
}

impl CollectionScope {
    /// Loads the filters of the collections with these names. A hidden collection is refused like one that does not
    /// exist.
    pub async fn load(context: &AppContext, caller: &Caller, names: &[String]) -> Result<Self> {
        let mut scope = Self::default();
        if names.is_empty() {
            return Ok(scope);
        }
        if names.len() > MAX_ANY_OF_FILTERS {
            let detail = format!("at most {MAX_ANY_OF_FILTERS} collections in one search");
            return Err(AppError::invalid(COLLECTION_POINTER, detail));
        }
        let rows = collections_by_names(&context.store, names).await?;
        for name in names {
            let row = rows.iter().find(|row| row.name == *name);
            let row = row.filter(|row| can_see_collection(caller, row));
            let row = row.ok_or_else(|| collection_not_found_error(name))?;
            scope
                .canonical_text
                .push_str(&format!(" [{} {}]", row.name, row.filter));
            scope
                .filters
                .extend(parse_stored_filter(&row.name, &row.filter));
        }
        if scope.filters.is_empty() {
            // No filter is understood, so no agent is in the collections.
            scope.filters.push(match_none_filter());
        }
        Ok(scope)
    }
}

/// Makes a filter that no agent passes: no label is empty.
fn match_none_filter() -> Filters {
    Filters {
        values: FacetMap::from([(Facet::Label, vec![String::new()])]),
        ..Filters::default()
    }
}

fn collection_not_found_error(name: &str) -> AppError {
    let name: String = name.chars().take(100).collect();
    AppError::invalid(
        COLLECTION_POINTER,
        format!(
            "There is no collection {name} that you may see. `GET /v1/collections` lists the visible ones."
        ),
    )
}
