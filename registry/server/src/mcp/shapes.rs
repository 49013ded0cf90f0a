//! What the tools answer with. The output schemas that clients see are made from these types, and everything in them is
//! bounded: cards are written by strangers, and a model reads at a price.

use a2a_registry_api::{Agent, Hint, Interface, Provider, Trust};
use rmcp::schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use url::Url;

use crate::mcp::cut::{cut, is_longer};

/// Bytes of all texts of the agents on a page; agents beyond it are shown without their details.
pub(super) const LIST_BYTES: usize = 128 * 1024;
/// Bytes of the skills of one agent, written as JSON; skills beyond it are left out.
const SKILL_BYTES: usize = 64 * 1024;
/// Characters of a name, an id, a tag or another short text.
const LINE: usize = 120;
/// Characters of a description in a list.
const TEASER: usize = 400;
/// Characters of the description of an agent on its own.
const BLOCK: usize = 4_000;
/// Characters of the description of a skill of an agent on its own, and of an example.
const SKILL_TEXT: usize = 600;
/// Characters of an address, a URN or a digest. Longer ones are left out rather than cut.
const ADDRESS: usize = 2_000;
/// Interfaces, tags, modes and other entries of an agent that are shown.
const ENTRIES: usize = 20;
/// Skills of an agent in a list, by their names.
const LISTED_SKILLS: usize = 12;
/// Skills of an agent on its own.
const SKILLS: usize = 100;
/// Examples of a skill.
const EXAMPLES: usize = 5;
/// Characters of a hint.
const HINT: usize = 200;

/// A page of agents.
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

/// An agent in a list.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(crate = "rmcp::schemars", deny_unknown_fields)]
pub(super) struct ListedAgent {
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
    pub interfaces: Vec<AgentInterface>,
    /// Names of its skills, from the card.
    pub skills: Vec<String>,
    /// Tags of its skills, from the card.
    pub tags: Vec<String>,
    /// Authentication that it requires.
    pub auth: Vec<String>,
    /// How well the card's origin is proved.
    pub trust: AgentTrust,
    /// `approved`, `deprecated` or another state of its lifecycle.
    pub lifecycle: String,
    /// Relevance within this answer; null without a text.
    pub score: Option<f32>,
    /// Whether it fits the text badly.
    pub weak: bool,
    /// Whether details were left out to bound this answer; `get_agent` has them.
    pub shortened: bool,
}

/// How well a card's origin is proved.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(crate = "rmcp::schemars", deny_unknown_fields)]
pub(super) struct AgentTrust {
    /// `L0` fetched over TLS, `L1` domain proved, `L2` signed by the domain, `L3` signed with an enrolled key; null if the
    /// card was not fetched over TLS.
    pub level: Option<String>,
    /// State of the domain: `unverified`, `verified`, `lapsed`, `disputed` or `opted_out`.
    pub domain: String,
    /// Result of checking the signatures: `unsigned`, `valid`, `untrusted`, `invalid` or `unknown`.
    pub signature: String,
}

/// An address of an agent.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(crate = "rmcp::schemars", deny_unknown_fields)]
pub(super) struct AgentInterface {
    /// The address, from the card.
    pub url: String,
    /// `JSONRPC`, `GRPC`, `HTTP+JSON` or the card's own word.
    pub binding: String,
    /// Version of the A2A protocol as `Major.Minor`.
    pub protocol_version: Option<String>,
    /// Tenant to name in each request.
    pub tenant: Option<String>,
}

/// One agent.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(crate = "rmcp::schemars", deny_unknown_fields)]
pub(super) struct WholeAgent {
    /// Id in this registry.
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
    /// Documentation for people, from the card.
    pub documentation_url: Option<String>,
    /// Addresses at which it speaks A2A, in the order to try.
    pub interfaces: Vec<AgentInterface>,
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
    /// How well the card's origin is proved.
    pub trust: AgentTrust,
    /// Why the signatures were judged so.
    pub signature_reason: String,
    /// `approved`, `deprecated` or another state of its lifecycle.
    pub lifecycle: String,
    /// Why it is deprecated and what to use instead; null unless it is.
    pub deprecation: Option<String>,
    /// Whether the last fetches of the card succeeded: `fresh`, `stale` or `gone`.
    pub liveness: String,
    /// SHA-256 of the card that is served.
    pub card_digest: String,
    /// Its page in this registry.
    pub page: String,
    /// Whether something was left out to bound this answer; `get_card` has it.
    pub shortened: bool,
}

/// Something that an agent can do, in the words of its card.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(crate = "rmcp::schemars", deny_unknown_fields)]
pub(super) struct AgentSkill {
    /// Id within the card.
    pub id: String,
    /// Name.
    pub name: String,
    /// What it does.
    pub description: Option<String>,
    /// Keywords.
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
    /// Why.
    pub reason: String,
    /// The policies that it follows from, for callers who see everything; others are told none.
    pub policies: Vec<String>,
}

/// Values to filter by.
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
    /// The most frequent values.
    pub values: Vec<CountedValue>,
    /// Number of agents with other values.
    pub other_count: u64,
}

/// A value of a facet.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(crate = "rmcp::schemars", deny_unknown_fields)]
pub(super) struct CountedValue {
    /// The value, for the filter of that name. One that is cut, or has hidden characters, is not found by what is shown here.
    pub value: String,
    /// Number of agents with it.
    pub count: u64,
}

/// What is read of the answer to a search.
#[derive(Debug, Deserialize)]
pub(super) struct FoundPage {
    agents: Vec<FoundAgent>,
    total: u64,
    hints: Vec<Hint>,
    next_page_token: Option<String>,
}

/// What is read of a hit: members that a search shows by default.
#[derive(Debug, Deserialize)]
struct FoundAgent {
    id: String,
    urn: Option<String>,
    name: String,
    description: Option<String>,
    version: Option<String>,
    provider: Option<Provider>,
    domain: String,
    interfaces: Vec<Interface>,
    skills: Vec<FoundSkill>,
    tags: Vec<String>,
    auth: Vec<String>,
    trust: Trust,
    lifecycle: String,
    shortened: bool,
    score: Option<f32>,
    weak: bool,
}

/// What is read of a skill of a hit.
#[derive(Debug, Deserialize)]
struct FoundSkill {
    name: String,
}

fn cut_all<'a>(texts: impl IntoIterator<Item = &'a String>, most: usize) -> Vec<String> {
    let texts = texts.into_iter().take(most);
    texts.map(|text| cut(text, LINE)).collect()
}

/// An address or identifier as it is, unless it is too long to be one.
fn whole(text: &str) -> Option<String> {
    (text.len() <= ADDRESS).then(|| text.to_owned())
}

fn interfaces(all: &[Interface]) -> Vec<AgentInterface> {
    let shown = all.iter().filter(|one| one.url.len() <= ADDRESS);
    let shown = shown.take(ENTRIES).map(|one| AgentInterface {
        url: one.url.clone(),
        binding: cut(&one.binding, LINE),
        protocol_version: one.protocol_version.as_deref().map(|text| cut(text, LINE)),
        tenant: one.tenant.as_deref().and_then(whole),
    });
    shown.collect()
}

fn trust(trust: &Trust) -> AgentTrust {
    AgentTrust {
        level: trust.level.as_ref().map(ToString::to_string),
        domain: trust.domain.to_string(),
        signature: trust.signature.to_string(),
    }
}

fn provider(provider: Option<&Provider>) -> Option<String> {
    let organization = provider?.organization.as_deref()?;
    Some(cut(organization, LINE))
}

impl From<FoundPage> for AgentPage {
    /// The agents of a page. Those beyond [`LIST_BYTES`] keep only what tells them from others.
    fn from(found: FoundPage) -> Self {
        let mut bytes = 0;
        let agents = found.agents.into_iter().map(|found| {
            let mut agent = ListedAgent::from(found);
            bytes += agent.bytes();
            if bytes > LIST_BYTES {
                agent.shorten();
            }
            agent
        });
        let hints = found.hints.iter();
        Self {
            agents: agents.collect(),
            total: found.total,
            next_page_token: found.next_page_token,
            hints: hints.map(|hint| cut(&hint.text, HINT)).collect(),
        }
    }
}

impl From<FoundAgent> for ListedAgent {
    fn from(stored: FoundAgent) -> Self {
        let names = stored.skills.iter().map(|skill| &skill.name);
        let skills = cut_all(names, LISTED_SKILLS);
        let tags = cut_all(&stored.tags, ENTRIES);
        let interfaces = interfaces(&stored.interfaces);
        let description = stored.description.as_deref();
        Self {
            urn: stored.urn.as_deref().and_then(whole),
            name: cut(&stored.name, LINE),
            description: description.map(|text| cut(text, TEASER)),
            version: stored.version.as_deref().map(|text| cut(text, LINE)),
            provider: provider(stored.provider.as_ref()),
            auth: cut_all(&stored.auth, ENTRIES),
            trust: trust(&stored.trust),
            score: stored.score,
            weak: stored.weak,
            shortened: stored.shortened
                || skills.len() < stored.skills.len()
                || tags.len() < stored.tags.len()
                || interfaces.len() < stored.interfaces.len()
                || description.is_some_and(|text| is_longer(text, TEASER)),
            id: stored.id,
            domain: stored.domain,
            lifecycle: stored.lifecycle,
            interfaces,
            skills,
            tags,
        }
    }
}

impl ListedAgent {
    /// The bytes of the texts that [`Self::shorten`] leaves out.
    fn bytes(&self) -> usize {
        let texts = [&self.description, &self.version, &self.provider];
        let texts = texts.into_iter().flatten();
        let lists = self.skills.iter().chain(&self.tags).chain(&self.auth);
        let addresses = self.interfaces.iter().map(|one| one.url.len());
        texts.chain(lists).map(String::len).sum::<usize>() + addresses.sum::<usize>()
    }

    fn shorten(&mut self) {
        self.description = None;
        self.version = None;
        self.provider = None;
        self.interfaces.clear();
        self.skills.clear();
        self.tags.clear();
        self.auth.clear();
        self.shortened = true;
    }
}

fn json_bytes(value: &impl Serialize) -> usize {
    serde_json::to_vec(value).map_or(0, |json| json.len())
}

impl WholeAgent {
    /// An agent as `/v1/agents/{agent}` has it.
    pub(super) fn of(agent: &Agent) -> Self {
        let (summary, card) = (&agent.hit.summary, &agent.card);
        let (skills, cut_skills) = skills(card);
        let interfaces = interfaces(&summary.interfaces);
        let description = summary.description.as_deref();
        Self {
            id: summary.id.to_string(),
            urn: summary.urn.as_deref().and_then(whole),
            name: cut(&summary.name, LINE),
            description: description.map(|text| cut(text, BLOCK)),
            version: summary.version.as_deref().map(|text| cut(text, LINE)),
            provider: provider(summary.provider.as_ref()),
            domain: summary.domain.clone(),
            documentation_url: web_address(card.documentation_url.as_deref()),
            streaming: summary.capabilities.streaming,
            push_notifications: summary.capabilities.push_notifications,
            extensions: cut_all(&summary.capabilities.extensions, ENTRIES),
            input_modes: cut_all(&card.input_modes, ENTRIES),
            output_modes: cut_all(&card.output_modes, ENTRIES),
            security: agent
                .security
                .iter()
                .take(ENTRIES)
                .map(|sentence| cut(sentence, TEASER))
                .collect(),
            trust: trust(&summary.trust),
            signature_reason: cut(&agent.signature_verdict.reason, TEASER),
            lifecycle: summary.lifecycle.to_string(),
            deprecation: summary
                .deprecation
                .as_ref()
                .map(|notice| cut(&notice.sentence(), BLOCK)),
            liveness: summary.liveness.state.to_string(),
            card_digest: summary.card_digest.clone(),
            page: summary.links.page.clone(),
            shortened: cut_skills
                || interfaces.len() < summary.interfaces.len()
                || description.is_some_and(|text| is_longer(text, BLOCK)),
            interfaces,
            skills,
        }
    }
}

/// The skills of a card within [`SKILL_BYTES`], and whether something of them was left out.
fn skills(card: &a2a_card::AgentCard) -> (Vec<AgentSkill>, bool) {
    let mut bytes = 0;
    let mut is_cut = card.skills.len() > SKILLS;
    let mut shown = Vec::new();
    for skill in card.skills.iter().take(SKILLS) {
        let long = |text: &String| is_longer(text, SKILL_TEXT);
        is_cut |= skill.examples.len() > EXAMPLES
            || skill.tags.len() > ENTRIES
            || skill.description.iter().chain(&skill.examples).any(long);
        let examples = skill.examples.iter().take(EXAMPLES);
        let one = AgentSkill {
            id: cut(&skill.id, LINE),
            name: cut(&skill.name, LINE),
            description: skill
                .description
                .as_deref()
                .map(|text| cut(text, SKILL_TEXT)),
            tags: cut_all(&skill.tags, ENTRIES),
            examples: examples.map(|text| cut(text, SKILL_TEXT)).collect(),
        };
        bytes += json_bytes(&one);
        if bytes > SKILL_BYTES {
            return (shown, true);
        }
        shown.push(one);
    }
    (shown, is_cut)
}

fn web_address(text: Option<&str>) -> Option<String> {
    let text = text.filter(|text| text.len() <= ADDRESS)?;
    let url = Url::parse(text).ok()?;
    matches!(url.scheme(), "http" | "https").then(|| url.into())
}
