//! Statistics of the registry, for one caller.

use a2a_registry_api::search_query::SearchQuery;
use a2a_registry_api::{AgentList, FacetValue, Hit};
use a2a_registry_domain::facet::Facet;
use a2a_registry_domain::timestamp::Timestamp;

use crate::context::AppContext;
use crate::error::{AppError, Result};
use crate::process_state::last_crawl::load_last_crawl;
use crate::search::skill_names::{SkillNames, load_skill_names};
use crate::search::{hit_liveness, search_agents};
use crate::search_pool::run_search;
use crate::visibility::caller::Caller;

const NEWEST_AGENTS: u32 = 6;
const STATS_FACETS: [Facet; 5] = [
    Facet::Tag,
    Facet::Skill,
    Facet::ProtocolVersion,
    Facet::Trust,
    Facet::Signature,
];

/// Statistics of all agents that a caller may find, and the newest agents.
#[derive(Debug, Clone, Default)]
pub struct RegistryStats {
    pub agents: u64,
    pub domains: u64,
    /// Number of agents whose domain is proved by an owner.
    pub proved: u64,
    /// Number of agents whose card is signed with a key that is bound to the domain.
    pub signed: u64,
    /// Protocol versions, the most frequent first.
    pub protocols: Vec<FacetValue>,
    /// Tags, the most frequent first.
    pub tags: Vec<FacetValue>,
    /// Skills, the most frequent first.
    pub skills: Vec<FacetValue>,
    /// The names of the first of these skills.
    pub skill_names: SkillNames,
    pub newest: Vec<Hit>,
    /// When the card of a public agent was last fetched, to within a minute.
    pub crawled: Option<Timestamp>,
}

impl RegistryStats {
    /// Builds the statistics from a list of all agents, which come from `domains` domains.
    pub fn new(mut list: AgentList, domains: u64, crawled: Option<Timestamp>) -> Self {
        let mut values = |facet: Facet| {
            let facet = list.facets.remove(facet.as_str());
            facet.map(|facet| facet.values).unwrap_or_default()
        };
        let count = |values: &[FacetValue], counted: fn(&str) -> bool| {
            let counted = values.iter().filter(|one| counted(&one.value));
            counted.map(|one| one.count).sum()
        };
        Self {
            domains,
            proved: count(&values(Facet::Trust), |level| {
                !matches!(level, "none" | "L0")
            }),
            signed: count(&values(Facet::Signature), |state| state == "valid"),
            protocols: values(Facet::ProtocolVersion),
            tags: values(Facet::Tag),
            skills: values(Facet::Skill),
            skill_names: SkillNames::new(),
            agents: list.total,
            newest: list.agents,
            crawled,
        }
    }
}

/// Loads the statistics for a caller, from the index and the search cache: they are as exact as a search, and cheap if
/// nothing has changed since the last call.
pub async fn load_registry_stats(context: &AppContext, caller: &Caller) -> Result<RegistryStats> {
    let query = SearchQuery {
        sort: Some("newest".to_owned()),
        page_size: Some(NEWEST_AGENTS),
        facets: STATS_FACETS.iter().map(ToString::to_string).collect(),
        ..SearchQuery::default()
    };
    let response = search_agents(context, caller, &query).await?;
    let mut list: AgentList = serde_json::from_slice(&response)
        .map_err(|error| AppError::internal(format!("search response: {error}")))?;
    hit_liveness::fill_hit_liveness(context, &mut list.agents).await;
    let domains = if list.total == 0 {
        0
    } else {
        count_visible_domains(context, caller).await?
    };
    // The stored time is of agents that were listed when they were fetched; an agent fetched later may have been
    // approved since.
    let last_fetches = list
        .agents
        .iter()
        .filter_map(|hit| hit.summary.liveness.last_seen);
    let crawled = load_last_crawl(&context.store, context.now())
        .await?
        .into_iter();
    let crawled = crawled.chain(last_fetches).max();
    let mut stats = RegistryStats::new(list, domains, crawled);
    stats.skill_names = load_skill_names(context, caller, &stats.skills).await;
    Ok(stats)
}

/// Counts the domains whose agents a caller may find, from the search cache if nothing has changed.
async fn count_visible_domains(context: &AppContext, caller: &Caller) -> Result<u64> {
    let labels = caller.labels(&context.policy_sets.enforced_set());
    let key = format!(
        "domains of {} {} {}",
        labels.join(" "),
        context.index.generation(),
        context.index.overlay_version(),
    );
    let cached = context.search_cache.responses.get(&key);
    if let Some(cached) =
        cached.and_then(|bytes| Some(u64::from_be_bytes(bytes.as_ref().try_into().ok()?)))
    {
        return Ok(cached);
    }
    let count = run_search(context, caller, move |index| index.count_domains(&labels)).await?;
    let bytes = count.to_be_bytes().to_vec().into();
    context.search_cache.responses.insert(key, bytes);
    Ok(count)
}
