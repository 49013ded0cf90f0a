//! What an account sees of the agents that a hook's filter selects, and how that differs from what its receiver knows.
//!
//! A filter is a search of the account: its visibility, its collections and its policies apply, and "matching" means
//! that the filters hold and the agent is not a weak match of the words. The search compares words only, because
//! vectors come later than the agents and differ from process to process.

use std::collections::{HashMap, HashSet};

use a2a_registry_api::HookFilter;
use a2a_registry_api::search_query::{SearchMode, SearchQuery};
use a2a_registry_domain::facet::Facet;
use a2a_registry_domain::hook::NoticeKind;
use a2a_registry_search::{AgentProperty, ExactFilter, MAX_HITS, RequestedHitParts, SearchRequest};
use a2a_registry_store::agents::agents_by_ids;
use a2a_registry_store::entity::hook_agent;
use a2a_registry_store::hooks::watched_agents;
use a2a_registry_store::saved_searches::saved_searches_by_account;
use data_encoding::HEXLOWER;
use ring::digest::{SHA256, digest};
use uuid::Uuid;

use crate::agents::policy_attributes::listed_agent_attributes;
use crate::agents::records::{AgentRecord, load_agent_records};
use crate::context::AppContext;
use crate::error::{AppError, ErrorKind, Result};
use crate::search::engine::{PreparedSearch, SurfaceQuery};
use crate::search_pool::run_search;
use crate::visibility::caller::Caller;

/// Agents that one search tests, within the number of values that a search may have.
const TESTED_AGENTS: usize = 100;
/// Agents whose facts are read at once: a card can have a megabyte.
const FACTS_PER_READ: usize = 50;
/// Bytes of the hash of facts.
const FACTS_HASH_BYTES: usize = 16;

/// What notices are made of: only what searches show to everybody who sees the agent.
#[derive(Debug, Clone)]
pub struct AgentFacts {
    pub name: String,
    pub domain: String,
    pub card_digest: String,
    /// A hash of the facts by which searches filter.
    pub facts: String,
    pub responsible: Option<Uuid>,
}

impl AgentFacts {
    fn from_record(context: &AppContext, record: &AgentRecord) -> Self {
        let attributes = listed_agent_attributes(context, record);
        let facets = Facet::ALL
            .iter()
            .map(|facet| (facet.as_str(), attributes.facet_values(*facet)));
        let facets: Vec<(&str, Vec<String>)> = facets.collect();
        let text = serde_json::to_vec(&facets).unwrap_or_default();
        let hash = digest(&SHA256, &text);
        Self {
            name: record.card.name.clone(),
            domain: record.agent.domain.clone(),
            card_digest: record.version.digest.clone(),
            facts: HEXLOWER.encode(&hash.as_ref()[..FACTS_HASH_BYTES]),
            responsible: record.responsible_account(),
        }
    }

    /// What the receiver of a hook knows after a notice.
    pub fn to_known(&self, hook: Uuid, agent: Uuid) -> hook_agent::Model {
        hook_agent::Model {
            hook_id: hook,
            agent_id: agent,
            card_digest: self.card_digest.clone(),
            facts: self.facts.clone(),
        }
    }
}

/// Loads the facts of these agents; those without a readable card are left out.
pub async fn load_agent_facts(
    context: &AppContext,
    agents: &[Uuid],
) -> Result<HashMap<Uuid, AgentFacts>> {
    let mut facts = HashMap::new();
    for some in agents.chunks(FACTS_PER_READ) {
        let rows = agents_by_ids(&context.store, some).await?;
        for record in load_agent_records(&context.store, rows).await? {
            facts.insert(record.agent.id, AgentFacts::from_record(context, &record));
        }
    }
    Ok(facts)
}

/// How an agent differs from what the receiver of a hook knows; `None` if there is nothing to tell. `seen` are the
/// facts of an agent that matches.
pub fn compare_sight(
    known: Option<&hook_agent::Model>,
    seen: Option<&AgentFacts>,
) -> Option<NoticeKind> {
    match (known, seen) {
        (None, Some(_)) => Some(NoticeKind::AgentAppeared),
        (Some(_), None) => Some(NoticeKind::AgentDisappeared),
        (Some(known), Some(seen)) => {
            let is_same = known.card_digest == seen.card_digest && known.facts == seen.facts;
            (!is_same).then_some(NoticeKind::AgentChanged)
        }
        (None, None) => None,
    }
}

/// The agents that a filter selects for an account now: of these, or of all, and then at most `limit`.
pub async fn select_agents(
    context: &AppContext,
    caller: &Caller,
    filter: &HookFilter,
    among: Option<&[Uuid]>,
    limit: usize,
) -> Result<HashSet<Uuid>> {
    let named = named_agents(context, caller, filter).await?;
    let candidates: Option<Vec<Uuid>> = match (among, named) {
        (None, None) => None,
        (None, Some(named)) => Some(named.into_iter().collect()),
        (Some(among), None) => Some(among.to_vec()),
        (Some(among), Some(named)) => {
            let both = among.iter().copied().filter(|id| named.contains(id));
            Some(both.collect())
        }
    };
    let Some(query) = filter_query(context, caller, filter).await? else {
        return Ok(HashSet::new());
    };
    let mut selected = HashSet::new();
    match candidates {
        None => select_among_all(context, caller, &query, limit, &mut selected).await?,
        Some(candidates) => {
            for some in candidates.chunks(TESTED_AGENTS) {
                let surface = SurfaceQuery {
                    surface: "hooks",
                    exact_filters: vec![ExactFilter {
                        property: AgentProperty::Id,
                        values: some.iter().map(Uuid::to_string).collect(),
                    }],
                    shows_catalog_entries: false,
                };
                let Some(mut request) = build_request(context, caller, &query, &surface).await?
                else {
                    return Ok(selected);
                };
                request.limit = some.len();
                let found = run_search(context, caller, move |index| index.search(&request));
                selected.extend(found.await?.hits.into_iter().map(|hit| hit.id));
            }
        }
    }
    Ok(selected)
}

/// The agents that a filter names; `None` if it names none.
pub async fn named_agents(
    context: &AppContext,
    caller: &Caller,
    filter: &HookFilter,
) -> Result<Option<HashSet<Uuid>>> {
    if filter.agents.is_empty() && !filter.watched {
        return Ok(None);
    }
    let mut named: HashSet<Uuid> = filter.agents.iter().copied().collect();
    if let Some(account) = caller.account.as_ref().filter(|_| filter.watched) {
        named.extend(watched_agents(&context.store, account.id).await?);
    }
    Ok(Some(named))
}

/// The search of a filter; `None` if it selects nothing.
async fn filter_query(
    context: &AppContext,
    caller: &Caller,
    filter: &HookFilter,
) -> Result<Option<SearchQuery>> {
    let mut query = match filter.search {
        None => SearchQuery::default(),
        Some(search) => {
            let account = caller.require_account()?;
            let saved = saved_searches_by_account(&context.store, account.id).await?;
            let saved = saved.into_iter().find(|row| row.id == search);
            // A search that another build has saved may have parameters that this one does not know.
            let query = saved.and_then(|row| serde_html_form::from_str(&row.query).ok());
            let Some(query) = query else {
                return Ok(None);
            };
            query
        }
    };
    query.domain.extend(filter.domains.iter().cloned());
    query.collection.extend(filter.collections.iter().cloned());
    Ok(Some(SearchQuery {
        mode: Some(SearchMode::Lexical.as_str().to_owned()),
        fitting: Some(true),
        sort: Some("updated".to_owned()),
        group: None,
        facets: Vec::new(),
        explain: None,
        ..query
    }))
}

async fn select_among_all(
    context: &AppContext,
    caller: &Caller,
    query: &SearchQuery,
    limit: usize,
    selected: &mut HashSet<Uuid>,
) -> Result<()> {
    let surface = SurfaceQuery::default();
    let Some(request) = build_request(context, caller, query, &surface).await? else {
        return Ok(());
    };
    let mut after = None;
    while selected.len() < limit {
        let page = SearchRequest {
            after: after.take(),
            limit: MAX_HITS.min(limit - selected.len()),
            ..request.clone()
        };
        let found = run_search(context, caller, move |index| index.search(&page)).await?;
        selected.extend(found.hits.iter().map(|hit| hit.id));
        after = found.hits.into_iter().next_back().map(|hit| hit.position);
        if !found.has_more || after.is_none() {
            break;
        }
    }
    Ok(())
}

/// The request of a search that only tests; `None` if a filter is no longer valid for the caller, such as a collection
/// that it may not see any more: then nothing matches.
async fn build_request(
    context: &AppContext,
    caller: &Caller,
    query: &SearchQuery,
    surface: &SurfaceQuery,
) -> Result<Option<SearchRequest>> {
    let request = async {
        let prepared = PreparedSearch::prepare(context, caller, query, surface).await?;
        prepared.build_request(context, caller)
    };
    match request.await {
        Ok(request) => Ok(Some(SearchRequest {
            parts: RequestedHitParts {
                hit: false,
                catalog_entry: false,
                highlights: false,
                computation: false,
            },
            is_test: true,
            ..request
        })),
        Err(AppError {
            kind: ErrorKind::Invalid,
            ..
        }) => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(card: &str, facts: &str) -> AgentFacts {
        AgentFacts {
            name: "Echo".into(),
            domain: "a.example".into(),
            card_digest: card.into(),
            facts: facts.into(),
            responsible: None,
        }
    }

    #[test]
    fn only_differences_are_told() {
        let seen = facts("1", "x");
        let known = seen.to_known(Uuid::nil(), Uuid::nil());
        assert_eq!(compare_sight(None, None), None);
        assert_eq!(compare_sight(Some(&known), Some(&seen)), None);
        let appeared = compare_sight(None, Some(&seen));
        assert_eq!(appeared, Some(NoticeKind::AgentAppeared));
        let disappeared = compare_sight(Some(&known), None);
        assert_eq!(disappeared, Some(NoticeKind::AgentDisappeared));
        for other in [facts("2", "x"), facts("1", "y")] {
            let changed = compare_sight(Some(&known), Some(&other));
            assert_eq!(changed, Some(NoticeKind::AgentChanged));
        }
    }
}
