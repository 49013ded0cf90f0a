//! `POST /explore` (ARD section 5.3.2): facet counts over all matches.

use std::collections::BTreeMap;

use a2a_registry_api::ard::{Bucket, ExploreRequest, ExploreResponse, Facet, FacetRequest};
use a2a_registry_api::search_query::SearchQuery;
use a2a_registry_core::context::AppContext;
use a2a_registry_core::error::{AppError, Result};
use a2a_registry_core::search::engine::count_values;
use a2a_registry_core::visibility::caller::Caller;
use a2a_registry_search::{AgentProperty, MAX_COUNTED_PROPERTIES, ValueCountRequest};

use crate::ard::filter_terms::{TermContext, parse_filter_conditions};
use crate::ard::{ArdScope, entries_only_query, map_collection_error, require_ard_enabled};

const DEFAULT_VALUE_LIMIT: u32 = 20;
const MAX_VALUE_LIMIT: u32 = 1000;
const FACETS_POINTER: &str = "/resultType/facets";

pub(crate) async fn count_facets(
    context: &AppContext,
    caller: &Caller,
    scope: &ArdScope,
    request: &ExploreRequest,
) -> Result<ExploreResponse> {
    require_ard_enabled(context)?;
    let requested_facets = &request.result_type.facets;
    if requested_facets.is_empty() || requested_facets.len() > MAX_COUNTED_PROPERTIES {
        let detail = format!("the number of facets must be between 1 and {MAX_COUNTED_PROPERTIES}");
        return Err(AppError::invalid(FACETS_POINTER, detail));
    }
    let terms = TermContext::from_query(&request.query)?;
    let facets = requested_facets
        .iter()
        .enumerate()
        .map(|(place, facet)| {
            parse_facet_request(&terms, &format!("{FACETS_POINTER}/{place}"), facet)
        })
        .collect::<Result<Vec<_>, _>>()?;
    let text = request.query.text.as_deref().map(str::trim);
    let query = SearchQuery {
        q: text.filter(|text| !text.is_empty()).map(str::to_owned),
        collection: scope.collection_names(),
        // As in a search.
        understand: Some(false),
        ..SearchQuery::default()
    };
    let extra = entries_only_query(parse_filter_conditions(&request.query)?);
    let counts = count_values(context, caller, &query, &extra, facets).await;
    let counts = counts.map_err(map_collection_error)?;
    let counts = requested_facets.iter().zip(counts).map(|(facet, counts)| {
        let values = counts.values.into_iter();
        let facet_counts = Facet {
            buckets: values
                .map(|(value, count)| Bucket { value, count })
                .collect(),
            other_count: counts.other_count,
        };
        (facet.field.clone(), facet_counts)
    });
    Ok(ExploreResponse {
        result_type: "facets".to_owned(),
        facets: counts.collect::<BTreeMap<_, _>>(),
    })
}

fn parse_facet_request(
    term_context: &TermContext,
    pointer: &str,
    facet: &FacetRequest,
) -> Result<ValueCountRequest> {
    let property = term_context.resolve_property(&format!("{pointer}/field"), &facet.field)?;
    let unique = property == AgentProperty::Identifier;
    if unique {
        let detail =
            "identifier cannot be a facet, because every value is unique: list the entries instead";
        return Err(AppError::invalid(&format!("{pointer}/field"), detail));
    }
    let limit = facet.limit.unwrap_or(DEFAULT_VALUE_LIMIT);
    if !(1..=MAX_VALUE_LIMIT).contains(&limit) {
        let detail = format!("limit must be between 1 and {MAX_VALUE_LIMIT}");
        return Err(AppError::invalid(&format!("{pointer}/limit"), detail));
    }
    let min_count = match facet.min_count {
        Some(..1) => {
            let detail = "minCount must be at least 1";
            return Err(AppError::invalid(&format!("{pointer}/minCount"), detail));
        }
        least => least
            .and_then(|least| u64::try_from(least).ok())
            .unwrap_or(1),
    };
    Ok(ValueCountRequest {
        property,
        limit: limit as usize,
        min_count,
    })
}
