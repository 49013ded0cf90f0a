//! `POST /search` (ARD section 5.3.1).

use a2a_registry_api::ard::{Federation, SearchRequest};
use a2a_registry_api::limits::MAX_PAGE;
use a2a_registry_core::context::Context;
use a2a_registry_core::error::{AppError, Result};
use a2a_registry_core::federation::{has_peers, referrals};
use a2a_registry_core::search::find::{Extra, Found, found};
use a2a_registry_core::search::query::SearchQuery;
use a2a_registry_core::visibility::caller::Caller;
use a2a_registry_search::ExactFilter;

use crate::ard::federated::{Federated, federated};
use crate::ard::left_out::agents_without_urn;
use crate::ard::result::{HIGHEST, response};
use crate::ard::terms::conditions;
use crate::ard::{Part, demand_ard, extra, without_collection};

const DEFAULT_RESULTS: u32 = 10;

pub(super) struct Asking<'a> {
    pub(super) part: &'a Part,
    text: &'a str,
    conditions: Vec<ExactFilter>,
    pub(super) size: u32,
}

impl<'a> Asking<'a> {
    fn read(part: &'a Part, request: &'a SearchRequest) -> Result<Self> {
        let text = request.query.text.as_deref().map(str::trim);
        let Some(text) = text.filter(|text| !text.is_empty()) else {
            return Err(AppError::invalid("/query/text", "a search has a text"));
        };
        Ok(Self {
            part,
            text,
            conditions: conditions(&request.query)?,
            size: page_size(request.page_size, DEFAULT_RESULTS)?,
        })
    }

    fn query(&self, size: u32, token: Option<String>) -> SearchQuery {
        SearchQuery {
            q: Some(self.text.to_owned()),
            collection: self.part.names(),
            page_size: Some(size),
            page_token: token,
            ..SearchQuery::default()
        }
    }

    /// What it asks beside that.
    fn extra(&self) -> Extra {
        extra(self.conditions.clone())
    }
}

pub(crate) async fn search(
    context: &Context,
    caller: &Caller,
    part: &Part,
    request: &SearchRequest,
) -> Result<Federated> {
    demand_ard(context)?;
    let asking = Asking::read(part, request)?;
    let mut answer = answer_to(context, caller, &asking, request).await?;
    if request.page_token.is_none() {
        let (query, extra) = (asking.query(asking.size, None), asking.extra());
        let counted = agents_without_urn(context, caller, &query, &extra).await;
        answer.without_urn = counted.map_err(without_collection)?;
    }
    Ok(answer)
}

async fn answer_to(
    context: &Context,
    caller: &Caller,
    asking: &Asking<'_>,
    request: &SearchRequest,
) -> Result<Federated> {
    let part = asking.part;
    // A collection belongs to this registry: its peers know nothing of it. A caller who may find nothing here is not
    // shown others' agents either.
    let finds_any = !caller.labels(&context.policies.in_force()).is_empty();
    let asks_peers = part.collection.is_none() && finds_any && has_peers(context);
    if request.federation == Federation::Auto && asks_peers {
        return federated(context, caller, asking, request).await;
    }
    let token = request.page_token.clone();
    let found = own_page(context, caller, asking, asking.size, token).await?;
    let referred = (request.federation == Federation::Referrals).then(|| match part.collection {
        None => referrals(context),
        Some(_) => Vec::new(),
    });
    let source = part.base(context);
    let next = found.next.as_deref();
    let hits = &found.answer.hits;
    Ok(Federated {
        response: response(hits, &source, HIGHEST, referred.as_deref(), next),
        ..Federated::default()
    })
}

pub(super) async fn own_page(
    context: &Context,
    caller: &Caller,
    asking: &Asking<'_>,
    size: u32,
    token: Option<String>,
) -> Result<Found> {
    let (query, extra) = (asking.query(size, token), asking.extra());
    let found = found(context, caller, &query, &extra).await;
    found.map_err(without_collection)
}

/// A page of this registry's own results for another interface, and with the first page the number of agents that are left
/// out because they have no URN.
pub(crate) async fn own_results(
    context: &Context,
    caller: &Caller,
    request: &SearchRequest,
    door: &'static str,
) -> Result<(Found, u64)> {
    let part = Part::default();
    let asking = Asking::read(&part, request)?;
    let query = asking.query(asking.size, request.page_token.clone());
    let extra = Extra {
        door,
        ..asking.extra()
    };
    let found = found(context, caller, &query, &extra).await?;
    let without_urn = match request.page_token {
        None => agents_without_urn(context, caller, &query, &extra).await?,
        Some(_) => 0,
    };
    Ok((found, without_urn))
}

/// A page size of more than 100 is taken as 100.
pub(super) fn page_size(asked: Option<i64>, usual: u32) -> Result<u32> {
    match asked {
        None => Ok(usual),
        Some(..1) => Err(AppError::invalid("/pageSize", "pageSize is at least 1")),
        Some(size) => Ok(u32::try_from(size).unwrap_or(MAX_PAGE).min(MAX_PAGE)),
    }
}
