//! `POST /search` (ARD section 5.3.1).

use a2a_registry_api::ard::{Federation, SearchRequest, SearchResponse};
use a2a_registry_api::limits::MAX_PAGE;

use crate::ard::result::result;
use crate::ard::terms::conditions;
use crate::ard::{Part, extra};
use crate::caller::Caller;
use crate::context::Context;
use crate::error::AppError;
use crate::search::find::found;
use crate::search::query::SearchQuery;

/// Results on a page by default.
const DEFAULT_RESULTS: u32 = 10;

/// A page of results.
///
/// # Errors
/// `Invalid` for what the request may not have; `NotFound` for a collection that the caller may not see; as
/// [`found`].
pub(crate) async fn search(
    context: &Context,
    caller: &Caller,
    part: &Part,
    request: &SearchRequest,
) -> Result<SearchResponse, AppError> {
    let text = request.query.text.as_deref().map(str::trim);
    let Some(text) = text.filter(|text| !text.is_empty()) else {
        return Err(AppError::invalid("/query/text", "a search has a text"));
    };
    let query = SearchQuery {
        q: Some(text.to_owned()),
        collection: part.names(),
        page_size: Some(page_size(request.page_size, DEFAULT_RESULTS)?),
        page_token: request.page_token.clone(),
        ..SearchQuery::default()
    };
    let extra = extra(conditions(&request.query)?);
    part.within(context, caller).await?;
    let found = found(context, caller, &query, &extra).await?;
    let source = part.base(context);
    let rows = found.answer.hits.iter();
    Ok(SearchResponse {
        results: rows.filter_map(|row| result(row, &source)).collect(),
        referrals: (request.federation == Federation::Referrals).then(Vec::new),
        page_token: found.next,
    })
}

/// The page size asked for: more than 100 is taken as 100.
///
/// # Errors
/// `Invalid` for 0.
pub(super) fn page_size(asked: Option<u32>, usual: u32) -> Result<u32, AppError> {
    match asked {
        None => Ok(usual),
        Some(0) => Err(AppError::invalid("/pageSize", "pageSize is at least 1")),
        Some(size) => Ok(size.min(MAX_PAGE)),
    }
}
