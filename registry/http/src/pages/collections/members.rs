//! Agents that the filter of a collection finds, saved or not: the filter is a search, and its first hits are shown.

use a2a_registry_api::Hit;
use a2a_registry_api::search_query::SearchQuery;
use a2a_registry_core::collection_filters::collection_rows::{
    parse_collection_filter, parse_filter_terms,
};
use a2a_registry_core::context::AppContext;
use a2a_registry_core::error::{AppError, Result};
use a2a_registry_core::text;
use a2a_registry_core::visibility::caller::Caller;

use crate::pages::search::search_agent_list;

/// Maximum number of agents on the page; a link leads to all.
const SHOWN: u32 = 10;

pub(super) struct MembersView {
    /// Number of agents that the visitor finds, such as `12 agents`.
    pub count: String,
    /// The search that finds them.
    pub link: String,
    pub agents: Vec<Hit>,
}

impl MembersView {
    pub async fn load(context: &AppContext, caller: &Caller, filter: &str) -> Result<Self> {
        parse_collection_filter(filter)?;
        let unreadable = |error: String| AppError::invalid("/filter", error);
        let pairs = serde_html_form::to_string(parse_filter_terms(filter)?)
            .map_err(|error| unreadable(error.to_string()))?;
        let query: SearchQuery =
            serde_html_form::from_str(&pairs).map_err(|error| unreadable(error.to_string()))?;
        let query = SearchQuery {
            page_size: Some(SHOWN),
            ..query
        };
        let list = search_agent_list(context, caller, &query).await?;
        Ok(Self {
            count: text::number_with_noun(&list.total, "agent", "agents"),
            link: format!("/?{pairs}"),
            agents: list.agents,
        })
    }
}
