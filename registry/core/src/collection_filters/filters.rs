//! Filters of agents for searches and collections, validated and in the form that the index compares.

use a2a_registry_domain::facet::FacetMap;
use a2a_registry_search::Filters;

use crate::error::{AppError, Result};

/// Builds filters from values of facets, in the form that the index compares. A value that does not exist is
/// `Invalid`; the error names the filter.
pub fn build_filters(mut values: FacetMap<Vec<String>>) -> Result<Filters> {
    for (facet, values) in values.entries_mut() {
        let parsed = facet.resolve_filter_values(std::mem::take(values));
        *values = parsed.map_err(|detail| AppError::invalid(&format!("/{facet}"), detail))?;
    }
    Ok(Filters {
        values,
        ..Filters::default()
    })
}
