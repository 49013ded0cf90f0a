//! Tool results: the agent data of the API within size limits. The output schemas for clients are generated from these
//! types.

use a2a_card::Skill;
use a2a_registry_api::{
    Agent, AgentList, Deprecation, FacetValue, Hit, Interface, Summary, Trust, UnderstoodPart,
};
use a2a_registry_core::text::{BLOCK, LINE, safe_web_url};
use rmcp::schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Serialize;
use serde_json::json;
use utoipa::PartialSchema;

use crate::mcp::text_limits::{MAX_ENTRIES, TextLimiter, address_if_short, cut, limit_lines};

/// Maximum number of bytes of the agents on a page, as JSON; agents beyond it are returned without details.
const MAX_LIST_BYTES: usize = 160 * 1024;
/// Maximum number of bytes of the skills of one agent, as JSON; skills beyond it are left out.
const MAX_SKILL_BYTES: usize = 64 * 1024;
const MAX_TEASER_CHARS: usize = 400;
/// Maximum number of characters of a skill description in the details of one agent, and of an example.
const MAX_SKILL_TEXT_CHARS: usize = 600;
/// Maximum number of skill names of an agent in a list.
const MAX_LISTED_SKILLS: usize = 12;
const MAX_SKILLS: usize = 100;
const MAX_EXAMPLES: usize = 5;
const MAX_HINT_CHARS: usize = 200;

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(crate = "rmcp::schemars", deny_unknown_fields)]
pub(super) struct AgentPage {
    /// The agents, best first.
    pub agents: Vec<ListedAgent>,
    /// Number of agents that match; those on all pages, unless `fitting` leaves some out.
    pub total: u64,
    /// Number of the matching agents that fit the text well and are not `weak`.
    pub total_fitting: u64,
    /// `page_token` of the next page; null on the last page.
    pub next_page_token: Option<String>,
    /// How to get more or better results: one sentence each.
    pub hints: Vec<String>,
    /// Phrases of the text that were applied as filters; `understand: false` searches for them as words. The parameter
    /// `q` stands for `text`.
    #[schemars(schema_with = "api_list_schema::<UnderstoodPart>")]
    pub understood: Vec<UnderstoodPart>,
}

/// Members of an agent in a list and in its details.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(crate = "rmcp::schemars")]
pub(super) struct AgentHead {
    /// Id in this registry, for the other tools.
    pub id: String,
    /// URN; null until the domain of the agent is proved.
    pub urn: Option<String>,
    /// Name, from the card.
    pub name: String,
    /// Description, from the card.
    pub description: Option<String>,
    /// Version of the agent, from the card.
    pub version: Option<String>,
    /// Organization that runs the agent, from the card.
    pub provider: Option<String>,
    /// Domain that publishes the card.
    pub domain: String,
    /// A2A interface URLs, in order of preference.
    #[schemars(schema_with = "api_list_schema::<Interface>")]
    pub interfaces: Vec<Interface>,
    /// Trust in the card's origin.
    #[schemars(schema_with = "api_type_schema::<Trust>")]
    pub trust: Trust,
    /// `approved`, `deprecated` or another state of its lifecycle.
    pub lifecycle: String,
    /// Whether something was left out to limit the result. Get it with `get_agent` for an agent in a list, otherwise
    /// with `get_card`.
    pub shortened: bool,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(crate = "rmcp::schemars", deny_unknown_fields)]
pub(super) struct ListedAgent {
    #[serde(flatten)]
    pub head: AgentHead,
    /// Names of the skills, from the card.
    pub skills: Vec<String>,
    /// Tags of the skills, from the card.
    pub tags: Vec<String>,
    /// Authentication that the agent requires.
    pub auth: Vec<String>,
    /// Whether the agent itself answered at the last check of its endpoint, or `not_checked`.
    pub endpoint: String,
    /// Relevance within this result; null without a text.
    pub score: Option<f32>,
    /// Whether the agent is a weak match for the text.
    pub weak: bool,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(crate = "rmcp::schemars", deny_unknown_fields)]
pub(super) struct WholeAgent {
    #[serde(flatten)]
    pub head: AgentHead,
    /// Documentation for people, from the card.
    pub documentation_url: Option<String>,
    /// Whether the agent can stream responses.
    pub streaming: bool,
    /// Whether the agent supports push notifications.
    pub push_notifications: bool,
    /// URIs of protocol extensions.
    pub extensions: Vec<String>,
    /// Accepted media types.
    pub input_modes: Vec<String>,
    /// Produced media types.
    pub output_modes: Vec<String>,
    /// Skills, from the card.
    pub skills: Vec<AgentSkill>,
    /// How to authenticate: one sentence for each alternative.
    pub security: Vec<String>,
    /// Reason for the result of checking the signatures.
    pub signature_reason: String,
    /// Why the agent is deprecated and what to use instead; null if it is not deprecated.
    pub deprecation: Option<String>,
    /// Whether the last fetches of the card succeeded: `fresh`, `stale` or `gone`.
    pub liveness: String,
    /// Whether the agent itself answered at the last check of its endpoint: `answers`, `needs_credentials`, `not_a2a`,
    /// `unclear`, `does_not_answer` or `not_checked`.
    pub endpoint: String,
    /// Day of that check; null if there was none.
    pub endpoint_checked_on: Option<String>,
    /// SHA-256 of the served card.
    pub card_digest: String,
    /// URL of the agent's page in this registry.
    pub page: String,
}

/// Skill of an agent, as described in the card.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(crate = "rmcp::schemars", deny_unknown_fields)]
pub(super) struct AgentSkill {
    /// Id within the card.
    pub id: String,
    pub name: String,
    pub description: Option<String>,
    pub tags: Vec<String>,
    /// Example requests.
    pub examples: Vec<String>,
}

/// Card as published.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(crate = "rmcp::schemars", deny_unknown_fields)]
pub(super) struct WholeCard {
    /// Id of the agent in this registry.
    pub id: String,
    /// SHA-256 of the card's bytes as served.
    pub digest: String,
    /// Length of the card in bytes as served.
    pub bytes: u64,
    /// The card as its publisher serves it: JSON as a string. Invisible characters are escaped as `\uXXXX`, which
    /// changes no value, so its signatures can be verified.
    pub card: String,
    /// Result of checking the signatures: `unsigned`, `valid`, `untrusted`, `invalid` or `unknown`.
    pub signature: String,
    /// Reason for the result of checking the signatures.
    pub signature_reason: String,
}

/// Whether the caller may find and call an agent.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(crate = "rmcp::schemars", deny_unknown_fields)]
pub(super) struct AgentCheck {
    /// Id of the agent in this registry.
    pub id: String,
    /// SHA-256 of the checked card.
    pub card_digest: String,
    /// Whether the caller may find the agent.
    pub discover: CheckedAction,
    /// Whether the caller may call the agent.
    pub invoke: CheckedAction,
    /// Number of the policy set that decided.
    pub policy_set: u64,
}

/// Decision on one action.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(crate = "rmcp::schemars", deny_unknown_fields)]
pub(super) struct CheckedAction {
    /// Whether the action is allowed.
    pub allowed: bool,
    /// Id of the decision, by which it can be looked up for 7 days.
    pub decision: String,
    pub reason: String,
    /// Policies that determine the decision, for callers with full access; empty for others.
    pub policies: Vec<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(crate = "rmcp::schemars", deny_unknown_fields)]
pub(super) struct FacetPage {
    /// Number of counted agents.
    pub total: u64,
    /// Number of the counted agents that fit the text well.
    pub total_fitting: u64,
    /// Facets, by name.
    pub facets: Vec<CountedFacet>,
    /// Phrases of the text that were applied as filters, as in `search_agents`.
    #[schemars(schema_with = "api_list_schema::<UnderstoodPart>")]
    pub understood: Vec<UnderstoodPart>,
}

/// Facet: a filter of `search_agents`.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(crate = "rmcp::schemars", deny_unknown_fields)]
pub(super) struct CountedFacet {
    /// Name of the filter.
    pub name: String,
    /// Most frequent values. A value that was cut or has hidden characters cannot be used as a filter as shown here.
    #[schemars(schema_with = "api_list_schema::<FacetValue>")]
    pub values: Vec<FacetValue>,
    /// Number of agents with other values.
    pub other_count: u64,
}

impl AgentPage {
    /// Converts a page of `/v1/agents`. Agents beyond [`MAX_LIST_BYTES`] keep only their identifying members.
    pub(super) fn new(list: AgentList) -> Self {
        let mut bytes = 0;
        let agents = list.agents.iter().map(|hit| {
            let mut agent = ListedAgent::new(hit);
            bytes += json_length(&agent);
            if bytes > MAX_LIST_BYTES {
                agent.remove_details();
            }
            agent
        });
        Self {
            agents: agents.collect(),
            total: list.total,
            total_fitting: list.total_fitting,
            hints: list
                .hints
                .iter()
                .map(|hint| cut(&hint.text, MAX_HINT_CHARS))
                .collect(),
            understood: list.understood.map_or_else(Vec::new, |all| all.parts),
            next_page_token: list.next_page_token,
        }
    }
}

impl AgentHead {
    fn new(limiter: &mut TextLimiter, summary: &Summary, description: usize) -> Self {
        let provider = summary.provider.as_ref();
        let provider = provider.and_then(|provider| provider.organization.as_deref());
        let short_line = |text: Option<&str>| text.map(|text| cut(text, LINE));
        Self {
            id: summary.id.to_string(),
            urn: address_if_short(summary.urn.as_deref()),
            name: cut(&summary.name, LINE),
            description: limiter.limit_optional(summary.description.as_deref(), description),
            version: short_line(summary.version.as_deref()),
            provider: short_line(provider),
            domain: summary.domain.clone(),
            interfaces: limit_interfaces(limiter, &summary.interfaces),
            trust: summary.trust.clone(),
            lifecycle: summary.lifecycle.to_string(),
            shortened: false,
        }
    }
}

impl ListedAgent {
    fn new(hit: &Hit) -> Self {
        let summary = &hit.summary;
        let mut limiter = TextLimiter {
            is_shortened: summary.shortened,
        };
        let skills = limiter
            .take_first(&summary.skills, MAX_LISTED_SKILLS)
            .iter();
        let mut agent = Self {
            skills: skills.map(|skill| cut(&skill.name, LINE)).collect(),
            tags: limit_lines(limiter.take_first(&summary.tags, MAX_ENTRIES)),
            auth: limit_lines(&summary.auth),
            endpoint: summary.endpoint.state.to_string(),
            score: hit.matched.score,
            weak: hit.matched.weak,
            head: AgentHead::new(&mut limiter, summary, MAX_TEASER_CHARS),
        };
        agent.head.shortened = limiter.is_shortened;
        agent
    }

    fn remove_details(&mut self) {
        let head = &mut self.head;
        (head.description, head.version, head.provider) = (None, None, None);
        head.interfaces.clear();
        head.shortened = true;
        for list in [&mut self.skills, &mut self.tags, &mut self.auth] {
            list.clear();
        }
    }
}

impl WholeAgent {
    pub(super) fn new(agent: &Agent) -> Self {
        let (summary, card) = (&agent.hit.summary, &agent.card);
        let deprecation_text = summary.deprecation.as_ref().map(Deprecation::sentence);
        let security = agent.security.iter().take(MAX_ENTRIES);
        let mut limiter = TextLimiter::default();
        let mut detail = Self {
            head: AgentHead::new(&mut limiter, summary, BLOCK),
            documentation_url: card.documentation_url.as_deref().and_then(safe_web_url),
            streaming: summary.capabilities.streaming,
            push_notifications: summary.capabilities.push_notifications,
            extensions: limit_lines(&summary.capabilities.extensions),
            input_modes: limit_lines(&card.input_modes),
            output_modes: limit_lines(&card.output_modes),
            skills: limit_skills(&mut limiter, &card.skills),
            security: security
                .map(|sentence| cut(sentence, MAX_TEASER_CHARS))
                .collect(),
            signature_reason: cut(&agent.signature_verdict.reason, MAX_TEASER_CHARS),
            deprecation: deprecation_text.map(|notice| cut(&notice, BLOCK)),
            liveness: summary.liveness.state.to_string(),
            endpoint: summary.endpoint.state.to_string(),
            endpoint_checked_on: summary.endpoint.checked_on.clone(),
            card_digest: summary.card_digest.clone(),
            page: summary.links.page.clone(),
        };
        detail.head.shortened = limiter.is_shortened;
        detail
    }
}

/// Schema of an API type that allows no additional members.
fn api_type_schema<T: PartialSchema>(_: &mut SchemaGenerator) -> Schema {
    let mut schema = json!(T::schema());
    schema["additionalProperties"] = false.into();
    Schema::try_from(schema).unwrap_or_default()
}

fn api_list_schema<T: PartialSchema>(generator: &mut SchemaGenerator) -> Schema {
    let items = api_type_schema::<T>(generator);
    Schema::try_from(json!({"type": "array", "items": items})).unwrap_or_default()
}

fn limit_interfaces(limiter: &mut TextLimiter, all: &[Interface]) -> Vec<Interface> {
    let included = all.iter().filter_map(|one| {
        Some(Interface {
            url: address_if_short(Some(&one.url))?,
            binding: cut(&one.binding, LINE),
            protocol_version: one.protocol_version.as_deref().map(|text| cut(text, LINE)),
            tenant: address_if_short(one.tenant.as_deref()),
        })
    });
    let shown: Vec<Interface> = included.take(MAX_ENTRIES).collect();
    limiter.is_shortened |= shown.len() < all.len();
    shown
}

/// Skills of a card within [`MAX_SKILL_BYTES`].
fn limit_skills(limiter: &mut TextLimiter, all: &[Skill]) -> Vec<AgentSkill> {
    let mut bytes = 0;
    let mut included = Vec::new();
    for skill in limiter.take_first(all, MAX_SKILLS) {
        let examples = limiter.take_first(&skill.examples, MAX_EXAMPLES).iter();
        let included_skill = AgentSkill {
            id: cut(&skill.id, LINE),
            name: cut(&skill.name, LINE),
            description: limiter.limit_optional(skill.description.as_deref(), MAX_SKILL_TEXT_CHARS),
            tags: limit_lines(limiter.take_first(&skill.tags, MAX_ENTRIES)),
            examples: examples
                .map(|text| limiter.limit_text(text, MAX_SKILL_TEXT_CHARS))
                .collect(),
        };
        bytes += json_length(&included_skill);
        if bytes > MAX_SKILL_BYTES {
            limiter.is_shortened = true;
            break;
        }
        included.push(included_skill);
    }
    included
}

fn json_length(value: &impl Serialize) -> usize {
    serde_json::to_vec(value).map_or(0, |json| json.len())
}
