//! `POST /explore` (ARD section 5.3.2): counts over all matches.

use std::collections::BTreeMap;

use a2a_registry_api::ard::{Bucket, ExploreRequest, ExploreResponse, Facet, FacetRequest};
use a2a_registry_core::context::Context;
use a2a_registry_core::error::{AppError, Result};
use a2a_registry_core::search::find::counted;
use a2a_registry_core::search::query::SearchQuery;
use a2a_registry_core::visibility::caller::Caller;
use a2a_registry_search::{MAX_COUNTED, Property, ValueCount};

use crate::ard::terms::{Terms, conditions};
use crate::ard::{Part, demand_ard, extra, without_collection};

const DEFAULT_VALUES: u32 = 20;
const MAX_VALUES: u32 = 1000;
const FACETS: &str = "/resultType/facets";

pub(crate) async fn explore(
    context: &Context,
    caller: &Caller,
    part: &Part,
    request: &ExploreRequest,
) -> Result<ExploreResponse> {
    demand_ard(context)?;
    let asked = &request.result_type.facets;
    if asked.is_empty() || asked.len() > MAX_COUNTED {
        let detail = format!("1 to {MAX_COUNTED} facets are counted at once");
        return Err(AppError::invalid(FACETS, detail));
    }
    let terms = Terms::of(&request.query)?;
    let facets = asked
        .iter()
        .enumerate()
        .map(|(place, facet)| value_count(&terms, &format!("{FACETS}/{place}"), facet))
        .collect::<Result<Vec<_>, _>>()?;
    let text = request.query.text.as_deref().map(str::trim);
    let query = SearchQuery {
        q: text.filter(|text| !text.is_empty()).map(str::to_owned),
        collection: part.names(),
        ..SearchQuery::default()
    };
    let extra = extra(conditions(&request.query)?);
    let counts = counted(context, caller, &query, &extra, facets).await;
    let counts = counts.map_err(without_collection)?;
    let counts = asked.iter().zip(counts).map(|(facet, counts)| {
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

fn value_count(terms: &Terms, pointer: &str, facet: &FacetRequest) -> Result<ValueCount> {
    let property = terms.property(&format!("{pointer}/field"), &facet.field)?;
    let unique = property == Property::Identifier;
    if unique {
        let detail = "every entry has another identifier: list them instead";
        return Err(AppError::invalid(&format!("{pointer}/field"), detail));
    }
    let limit = facet.limit.unwrap_or(DEFAULT_VALUES);
    if !(1..=MAX_VALUES).contains(&limit) {
        let detail = format!("limit is 1 to {MAX_VALUES}");
        return Err(AppError::invalid(&format!("{pointer}/limit"), detail));
    }
    let least = match facet.min_count {
        Some(..1) => {
            let detail = "minCount is at least 1";
            return Err(AppError::invalid(&format!("{pointer}/minCount"), detail));
        }
        least => least
            .and_then(|least| u64::try_from(least).ok())
            .unwrap_or(1),
    };
    Ok(ValueCount {
        property,
        limit: limit as usize,
        least,
    })
}
