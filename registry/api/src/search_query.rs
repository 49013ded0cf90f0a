//! The parameters of searches, completions and look-ups.

use a2a_card::named_enum;
use a2a_registry_domain::endpoint::EndpointState;
use a2a_registry_domain::facet::Facet;
use a2a_registry_domain::lifecycle::{LivenessState, ShownLifecycle};
use a2a_registry_domain::signature::SignatureState;
use a2a_registry_domain::trust::TrustLevel;
use serde::{Deserialize, Serialize};
use utoipa::IntoParams;
use utoipa::openapi::schema::Object;

use crate::limits::{LookupDigest, LookupName, LookupUrl, LookupUrn, PageSize, enum_schema};
use crate::list::deserialize_nonempty_parameter;

/// The orders of results.
pub const SORT_ORDERS: [&str; 4] = ["relevance", "name", "updated", "newest"];

named_enum! {
    /// How a search compares: by words, by meaning, or both.
    #[derive(Serialize, Deserialize)]
    pub enum SearchMode {
        /// Full text.
        Lexical = "lexical",
        /// Full text and semantic.
        Hybrid = "hybrid",
        /// Nearest neighbours of the text's vector.
        Semantic = "semantic",
    }
}

/// The `group` value that groups by name and endpoint, or by content.
pub const GROUP_BY_CONTENT: &str = "content";
/// The `group` value that groups nothing.
pub const GROUP_NONE: &str = "none";
const GROUP_VALUES: [&str; 2] = [GROUP_BY_CONTENT, GROUP_NONE];

/// Parameters of a search. Values of one parameter are combined with OR, different parameters with AND. They are only
/// serialized as a form, where absent parameters are left out.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(default, deny_unknown_fields)]
pub struct SearchQuery {
    /// Search text, at most 512 characters; by default any of its words may match. Operators: `"a phrase"`,
    /// `both AND needed`, `one OR another`, `-without`, `prefix*`, `tag:travel`, `skill:translate`, `provider:acme`.
    /// `AND` and `OR` join the two operands beside them (words, phrases, prefixes or conditions), which must then
    /// match; `AND` binds tighter than `OR`, and there are no brackets. Function words outside the quotes, as in
    /// `translate "good morning" to French`, make it a sentence, whose quoted parts are optional. Invalid syntax is
    /// searched as words, and a hint explains it.
    #[param(max_length = 512)]
    pub q: Option<String>,
    /// Id of a skill, or words of its name.
    pub skill: Vec<String>,
    /// Tag of a skill.
    pub tag: Vec<String>,
    /// `streaming`, `push_notifications`, `extended_agent_card` or an extension URI.
    pub capability: Vec<String>,
    /// `JSONRPC`, `GRPC`, `HTTP+JSON` or the card's own text.
    pub binding: Vec<String>,
    /// `Major.Minor`.
    pub protocol_version: Vec<String>,
    /// Organisation behind the agent.
    pub provider: Vec<String>,
    /// Domain that publishes the card.
    pub domain: Vec<String>,
    /// `none`, `apiKey`, `http:<scheme>`, `oauth2`, `openIdConnect`, `mutualTLS`, `unknown`.
    pub auth: Vec<String>,
    /// Media type that the agent accepts; `image/*`, `audio/*` and `video/*` stand for their usual types.
    pub input_mode: Vec<String>,
    /// Media type that the agent produces; `image/*`, `audio/*` and `video/*` stand for their usual types.
    pub output_mode: Vec<String>,
    /// Minimum trust level: `L0` to `L4`.
    #[param(schema_with = trust_schema)]
    pub trust: Option<String>,
    /// Result of checking the card's signatures: `unsigned`, `valid`, `untrusted`, `invalid` or `unknown`.
    #[param(value_type = Vec<SignatureState>, inline)]
    pub signature: Vec<String>,
    /// `true` for agents that no one is responsible for: without an owner (the account that proved the domain or else
    /// registered the card) and without a sponsor.
    #[param(value_type = Vec<bool>, inline)]
    pub unmanaged: Vec<String>,
    /// Label as `key=value`, set by curators.
    pub label: Vec<String>,
    /// Name of a collection: only its agents, of those that the caller may see, are found.
    pub collection: Vec<String>,
    /// Lifecycle state; by default `approved` and `deprecated`.
    #[param(value_type = Vec<ShownLifecycle>, inline)]
    pub lifecycle: Vec<String>,
    /// Liveness state; by default `fresh` and `stale`.
    #[param(value_type = Vec<LivenessState>, inline)]
    pub liveness: Vec<String>,
    /// Result of the last check of the agent's endpoint.
    #[param(value_type = Vec<EndpointState>, inline)]
    pub endpoint: Vec<String>,
    /// Order of the results: `relevance`, `name`, `updated` or `newest`. Without words in `q`, `relevance` is replaced
    /// by `updated`, which `order` in the response reports.
    #[param(schema_with = sort_schema)]
    pub sort: Option<String>,
    /// Facets to count, separated by commas or repeated; at most 12.
    pub facets: Vec<String>,
    /// Search mode: `lexical` (full text), `semantic` (nearest neighbours) or `hybrid` (both). By default `hybrid` if the
    /// registry has a model, else `lexical`. If it has no model, or the encoder does not respond in time, the search
    /// is `lexical`, which `mode` in the response reports.
    #[param(schema_with = search_mode_schema)]
    pub mode: Option<String>,
    /// `content` to fold duplicates, agents with the same name at the same endpoint or with the same content: each
    /// group is one hit, with the others in its `duplicates`. `total` and facets still count agents. `none` by
    /// default.
    #[param(schema_with = group_by_schema)]
    pub group: Option<String>,
    /// True to leave out the matches that do not fit `q` well, which are `weak`, also of `facets` and `groups`. Either
    /// way `total` counts all matches, and `total_fitting` those that fit.
    #[serde(deserialize_with = "deserialize_nonempty_parameter")]
    pub fitting: Option<bool>,
    /// `false` to search for all words of `q` as text. By default explicit phrases for filters are applied as filters,
    /// such as `without login`, `over gRPC`, `accepts images`, `from a proved domain` and `but not acme`, and
    /// `understood` in the response reports them. Quoted words, texts with `AND` or `OR`, and phrases for a filter
    /// that the request has are searched as text.
    #[serde(deserialize_with = "deserialize_nonempty_parameter")]
    pub understand: Option<bool>,
    /// Members of each hit, separated by commas or repeated, besides its `id`; by default `urn`, `name`,
    /// `description`, `version`, `provider`, `domain`, `interfaces`, `skills` (ids and names), `skills_total`,
    /// `shortened`, `tags`, `auth`, `trust`, `lifecycle`, `deprecation`, `visibility`, `liveness`, `endpoint`,
    /// `score`, `weak`, `matched_skills` and `duplicates`. Shown only if named: `skills.description`, `skills.tags`,
    /// `capabilities`, `labels`, `card_digest`, `links`, `highlights`, `explain` (as with `explain=true`) and
    /// `explain.summary` (its sentences alone).
    pub fields: Vec<String>,
    /// True to explain the scores of the first ten hits of a page.
    #[serde(deserialize_with = "deserialize_nonempty_parameter")]
    pub explain: Option<bool>,
    /// Entries on the page, at most 100; by default 20.
    #[serde(deserialize_with = "deserialize_nonempty_parameter")]
    #[param(value_type = Option<PageSize>, inline)]
    pub page_size: Option<u32>,
    /// `next_page_token` of the previous page.
    pub page_token: Option<String>,
}

fn trust_schema() -> Object {
    enum_schema(TrustLevel::ALL.iter().map(|level| level.as_str())).build()
}

fn sort_schema() -> Object {
    enum_schema(SORT_ORDERS).build()
}

fn group_by_schema() -> Object {
    enum_schema(GROUP_VALUES).build()
}

fn search_mode_schema() -> Object {
    enum_schema(SearchMode::ALL.map(SearchMode::as_str)).build()
}

/// Parameters of a completion.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct SuggestQuery {
    /// Prefix to complete, at most 512 characters.
    #[param(max_length = 512)]
    pub q: String,
}

/// Parameters of a look-up: exactly one of the four.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(default, deny_unknown_fields)]
pub struct LookupQuery {
    /// Card URL, base URL of a card, endpoint URL or host, which may have a scheme.
    #[param(value_type = Option<LookupUrl>, inline)]
    pub url: Option<String>,
    /// URN of an agent.
    #[param(value_type = Option<LookupUrn>, inline)]
    pub urn: Option<String>,
    /// Digest of a card.
    #[param(value_type = Option<LookupDigest>, inline)]
    pub digest: Option<String>,
    /// Whole name of an agent, in any case. Every card can have any name.
    #[param(value_type = Option<LookupName>, inline)]
    pub name: Option<String>,
}

impl SearchQuery {
    /// The values of a filter, in the order in which they were given.
    pub fn filter_values(&self, filter: Facet) -> &[String] {
        match filter {
            Facet::Tag => &self.tag,
            Facet::Skill => &self.skill,
            Facet::Capability => &self.capability,
            Facet::Binding => &self.binding,
            Facet::ProtocolVersion => &self.protocol_version,
            Facet::Provider => &self.provider,
            Facet::Domain => &self.domain,
            Facet::Auth => &self.auth,
            Facet::InputMode => &self.input_mode,
            Facet::OutputMode => &self.output_mode,
            Facet::Label => &self.label,
            Facet::Trust => self.trust.as_slice(),
            Facet::Lifecycle => &self.lifecycle,
            Facet::Liveness => &self.liveness,
            Facet::Signature => &self.signature,
            Facet::Unmanaged => &self.unmanaged,
            Facet::Endpoint => &self.endpoint,
        }
    }
}
