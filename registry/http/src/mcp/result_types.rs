//! What the tools answer with: what the API says of agents, within bounds. The output schemas that clients see are made from
//! these types.

use a2a_card::Skill;
use a2a_registry_api::{Agent, AgentList, Deprecation, FacetValue, Hit, Interface, Summary, Trust};
use a2a_registry_core::text::{BLOCK, LINE, safe_web_url};
use rmcp::schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Serialize;
use serde_json::json;
use utoipa::PartialSchema;

use crate::mcp::text_limits::{MAX_ENTRIES, TextLimiter, cut, if_short_enough, short_lines};

/// Bytes of the agents on a page, written as JSON; agents beyond it are shown without their details.
const MAX_LIST_BYTES: usize = 160 * 1024;
/// Bytes of the skills of one agent, written as JSON; skills beyond it are left out.
const MAX_SKILL_BYTES: usize = 64 * 1024;
const MAX_TEASER_CHARS: usize = 400;
/// Characters of the description of a skill of an agent on its own, and of an example.
const MAX_SKILL_TEXT_CHARS: usize = 600;
/// Skills of an agent in a list, by their names.
const MAX_LISTED_SKILLS: usize = 12;
const MAX_SKILLS: usize = 100;
const MAX_EXAMPLES: usize = 5;
const MAX_HINT_CHARS: usize = 200;

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(crate = "rmcp::schemars", deny_unknown_fields)]
pub(super) struct AgentPage {
    /// The agents, best first.
    pub agents: Vec<ListedAgent>,
    /// Number of agents on all pages.
    pub total: u64,
    /// `page_token` of the next page; null on the last page.
    pub next_page_token: Option<String>,
    /// How to find more or better: one sentence each.
    pub hints: Vec<String>,
}

/// What is said of an agent in a list and on its own.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(crate = "rmcp::schemars")]
pub(super) struct AgentHead {
    /// Id in this registry, for the other tools.
    pub id: String,
    /// URN; null until the domain of the agent is proved.
    pub urn: Option<String>,
    /// Name, from the card.
    pub name: String,
    /// What it does, from the card.
    pub description: Option<String>,
    /// Version of the agent, from the card.
    pub version: Option<String>,
    /// Organisation that runs it, from the card.
    pub provider: Option<String>,
    /// Domain that publishes the card.
    pub domain: String,
    /// Addresses at which it speaks A2A, in the order to try.
    #[schemars(schema_with = "list_schema::<Interface>")]
    pub interfaces: Vec<Interface>,
    /// How well the card's origin is proved.
    #[schemars(schema_with = "api_schema::<Trust>")]
    pub trust: Trust,
    /// `approved`, `deprecated` or another state of its lifecycle.
    pub lifecycle: String,
    /// Whether something was left out to bound this answer: of an agent in a list `get_agent` has it, else `get_card`.
    pub shortened: bool,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(crate = "rmcp::schemars", deny_unknown_fields)]
pub(super) struct ListedAgent {
    #[serde(flatten)]
    pub head: AgentHead,
    /// Names of its skills, from the card.
    pub skills: Vec<String>,
    /// Tags of its skills, from the card.
    pub tags: Vec<String>,
    /// Authentication that it requires.
    pub auth: Vec<String>,
    /// Relevance within this answer; null without a text.
    pub score: Option<f32>,
    /// Whether it fits the text badly.
    pub weak: bool,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(crate = "rmcp::schemars", deny_unknown_fields)]
pub(super) struct WholeAgent {
    #[serde(flatten)]
    pub head: AgentHead,
    /// Documentation for people, from the card.
    pub documentation_url: Option<String>,
    /// Whether answers can be streamed.
    pub streaming: bool,
    /// Whether updates of tasks can be pushed.
    pub push_notifications: bool,
    /// URIs of protocol extensions.
    pub extensions: Vec<String>,
    /// Media types that it accepts.
    pub input_modes: Vec<String>,
    /// Media types that it produces.
    pub output_modes: Vec<String>,
    /// Its skills, from the card.
    pub skills: Vec<AgentSkill>,
    /// How to authenticate: one sentence for each alternative.
    pub security: Vec<String>,
    /// Why the signatures were judged so.
    pub signature_reason: String,
    /// Why it is deprecated and what to use instead; null unless it is.
    pub deprecation: Option<String>,
    /// Whether the last fetches of the card succeeded: `fresh`, `stale` or `gone`.
    pub liveness: String,
    /// SHA-256 of the card that is served.
    pub card_digest: String,
    /// Its page in this registry.
    pub page: String,
}

/// Something that an agent can do, in the words of its card.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(crate = "rmcp::schemars", deny_unknown_fields)]
pub(super) struct AgentSkill {
    /// Id within the card.
    pub id: String,
    pub name: String,
    pub description: Option<String>,
    pub tags: Vec<String>,
    /// Requests that fit it.
    pub examples: Vec<String>,
}

/// A card as it is published.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(crate = "rmcp::schemars", deny_unknown_fields)]
pub(super) struct WholeCard {
    /// Id of the agent in this registry.
    pub id: String,
    /// SHA-256 of the card's bytes as they are served.
    pub digest: String,
    /// Length of the card in bytes as they are served.
    pub bytes: u64,
    /// The card as its publisher serves it: JSON as a text. Characters that cannot be seen are written as `\uXXXX` in it,
    /// which changes no value, so that its signatures can be checked.
    pub card: String,
    /// Result of checking the signatures: `unsigned`, `valid`, `untrusted`, `invalid` or `unknown`.
    pub signature: String,
    /// Why the signatures were judged so.
    pub signature_reason: String,
}

/// Whether the caller may find and call an agent.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(crate = "rmcp::schemars", deny_unknown_fields)]
pub(super) struct AgentCheck {
    /// Id of the agent in this registry.
    pub id: String,
    /// SHA-256 of the card that this is about.
    pub card_digest: String,
    /// Whether the caller may find the agent.
    pub discover: CheckedAction,
    /// Whether the caller may call the agent.
    pub invoke: CheckedAction,
    /// Number of the policy set that decided.
    pub policy_set: u64,
}

/// A decision on one action.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(crate = "rmcp::schemars", deny_unknown_fields)]
pub(super) struct CheckedAction {
    /// Whether the caller may.
    pub allowed: bool,
    pub reason: String,
    /// The policies that it follows from, for callers who see everything; others are told none.
    pub policies: Vec<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(crate = "rmcp::schemars", deny_unknown_fields)]
pub(super) struct FacetPage {
    /// Number of agents that were counted.
    pub total: u64,
    /// The facets, by name.
    pub facets: Vec<CountedFacet>,
}

/// A facet: a filter of `search_agents`.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(crate = "rmcp::schemars", deny_unknown_fields)]
pub(super) struct CountedFacet {
    /// Name of the filter.
    pub name: String,
    /// The most frequent values. One that is cut, or has hidden characters, is not found by what is shown here.
    #[schemars(schema_with = "list_schema::<FacetValue>")]
    pub values: Vec<FacetValue>,
    /// Number of agents with other values.
    pub other_count: u64,
}

impl AgentPage {
    /// A page as `/v1/agents` has it. Agents beyond [`LIST_BYTES`] keep only what tells them from others.
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
            hints: list
                .hints
                .iter()
                .map(|hint| cut(&hint.text, MAX_HINT_CHARS))
                .collect(),
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
            urn: if_short_enough(summary.urn.as_deref()),
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
            tags: short_lines(limiter.take_first(&summary.tags, MAX_ENTRIES)),
            auth: short_lines(&summary.auth),
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
            extensions: short_lines(&summary.capabilities.extensions),
            input_modes: short_lines(&card.input_modes),
            output_modes: short_lines(&card.output_modes),
            skills: limit_skills(&mut limiter, &card.skills),
            security: security
                .map(|sentence| cut(sentence, MAX_TEASER_CHARS))
                .collect(),
            signature_reason: cut(&agent.signature_verdict.reason, MAX_TEASER_CHARS),
            deprecation: deprecation_text.map(|notice| cut(&notice, BLOCK)),
            liveness: summary.liveness.state.to_string(),
            card_digest: summary.card_digest.clone(),
            page: summary.links.page.clone(),
        };
        detail.head.shortened = limiter.is_shortened;
        detail
    }
}

/// The schema of a type of the API, as one that has no further members.
fn api_schema<T: PartialSchema>(_: &mut SchemaGenerator) -> Schema {
    let mut schema = json!(T::schema());
    schema["additionalProperties"] = false.into();
    Schema::try_from(schema).unwrap_or_default()
}

fn list_schema<T: PartialSchema>(generator: &mut SchemaGenerator) -> Schema {
    let items = api_schema::<T>(generator);
    Schema::try_from(json!({"type": "array", "items": items})).unwrap_or_default()
}

fn limit_interfaces(limiter: &mut TextLimiter, all: &[Interface]) -> Vec<Interface> {
    let included = all.iter().filter_map(|one| {
        Some(Interface {
            url: if_short_enough(Some(&one.url))?,
            binding: cut(&one.binding, LINE),
            protocol_version: one.protocol_version.as_deref().map(|text| cut(text, LINE)),
            tenant: if_short_enough(one.tenant.as_deref()),
        })
    });
    let shown: Vec<Interface> = included.take(MAX_ENTRIES).collect();
    limiter.is_shortened |= shown.len() < all.len();
    shown
}

/// The skills of a card within [`SKILL_BYTES`].
fn limit_skills(limiter: &mut TextLimiter, all: &[Skill]) -> Vec<AgentSkill> {
    let mut bytes = 0;
    let mut included = Vec::new();
    for skill in limiter.take_first(all, MAX_SKILLS) {
        let examples = limiter.take_first(&skill.examples, MAX_EXAMPLES).iter();
        let included_skill = AgentSkill {
            id: cut(&skill.id, LINE),
            name: cut(&skill.name, LINE),
            description: limiter.limit_optional(skill.description.as_deref(), MAX_SKILL_TEXT_CHARS),
            tags: short_lines(limiter.take_first(&skill.tags, MAX_ENTRIES)),
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
