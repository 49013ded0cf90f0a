//! Search parameters, and the index request built from them.

use a2a_crawler::fetch::card_url_under;
use a2a_crawler::guard::Domain;
use a2a_registry_api::HitFields;
use a2a_registry_api::limits::{
    LookupDigest, LookupName, LookupUrl, LookupUrn, MAX_LOOKUP_DIGEST_CHARS, MAX_LOOKUP_NAME_CHARS,
    MAX_LOOKUP_URL_CHARS, MAX_LOOKUP_URN_CHARS, PageSize, enum_schema,
};
use a2a_registry_domain::facet::{Facet, FacetMap};
use a2a_registry_domain::lifecycle::{LivenessState, ShownLifecycle};
use a2a_registry_domain::signature::SignatureState;
use a2a_registry_domain::trust::TrustLevel;
use a2a_registry_search::{Filters, HitParts, SearchRequest, SortOrder};
use serde::{Deserialize, Serialize};
use url::Url;
use utoipa::IntoParams;
use utoipa::openapi::schema::Object;

use crate::agents::documents::name_lookup_key;
use crate::collection_filters::filters::build_filters;
use crate::config::LimitsConfig;
use crate::error::{AppError, Result};
use crate::paging::not_empty;
use crate::process_state::semantic_search::Mode;

/// The `group` value that groups by name and endpoint, or by content.
pub const GROUP_BY_CONTENT: &str = "content";
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
    /// Media type that the agent accepts.
    pub input_mode: Vec<String>,
    /// Media type that the agent produces.
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
    /// Order of the results: `relevance`, `name`, `updated` or `newest`. Without words in `q`, `relevance` is replaced
    /// by `updated`, which `order` in the response reports.
    #[param(schema_with = sort_schema)]
    pub sort: Option<String>,
    /// Facets to count, separated by commas or repeated; at most 12.
    pub facets: Vec<String>,
    /// Search mode: `lexical` (full text), `semantic` (nearest neighbours) or `hybrid` (both). By default `hybrid` if the
    /// registry has a model, else `lexical`. If it has no model, or the encoder does not respond in time, the search
    /// is `lexical`, which `mode` in the response reports.
    #[param(schema_with = mode_schema)]
    pub mode: Option<String>,
    /// `content` to fold duplicates, agents with the same name at the same endpoint or with the same content: each
    /// group is one hit, with the others in its `duplicates`. `total` and facets still count agents. `none` by
    /// default.
    #[param(schema_with = group_schema)]
    pub group: Option<String>,
    /// Members of each hit, separated by commas or repeated, besides its `id`; by default `urn`, `name`,
    /// `description`, `version`, `provider`, `domain`, `interfaces`, `skills` (ids and names), `skills_total`,
    /// `shortened`, `tags`, `auth`, `trust`, `lifecycle`, `deprecation`, `visibility`, `liveness`, `score`, `weak`,
    /// `matched_skills` and `duplicates`. Shown only if named: `skills.description`, `skills.tags`, `capabilities`,
    /// `labels`, `card_digest`, `links`, `highlights`, `explain` (as with `explain=true`) and `explain.summary` (its
    /// sentences alone).
    pub fields: Vec<String>,
    /// True to explain the scores of the first ten hits of a page.
    #[serde(deserialize_with = "not_empty")]
    pub explain: Option<bool>,
    /// Entries on the page, at most 100; by default 20.
    #[serde(deserialize_with = "not_empty")]
    #[param(value_type = Option<PageSize>, inline)]
    pub page_size: Option<u32>,
    /// `next_page_token` of the previous page.
    pub page_token: Option<String>,
}

fn trust_schema() -> Object {
    enum_schema(TrustLevel::ALL.iter().map(|level| level.as_str())).build()
}

fn sort_schema() -> Object {
    enum_schema(SortOrder::ALL.map(SortOrder::as_str)).build()
}

fn group_schema() -> Object {
    enum_schema(GROUP_VALUES).build()
}

fn mode_schema() -> Object {
    enum_schema(Mode::ALL.map(Mode::as_str)).build()
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
    /// Builds the request for the index, without the labels of a caller. All parameters are checked here; an error is
    /// `Invalid` and names the parameter.
    pub fn to_request(&self, limits: &LimitsConfig) -> Result<SearchRequest> {
        let text = self
            .q
            .as_deref()
            .map(str::trim)
            .filter(|text| !text.is_empty());
        if let Some(text) = text {
            check_length("/q", text, limits.query_chars)?;
        }
        if self.filter_count() > limits.filters {
            let detail = format!("a search can have at most {} filter values", limits.filters);
            return Err(AppError::invalid("", detail));
        }
        let fields = self.hit_fields()?;
        Ok(SearchRequest {
            text: text.map(str::to_owned),
            filters: self.parse_filters()?,
            sort: self.parse_sort()?,
            facets: self.parse_facets(limits.facets)?,
            explain: fields.includes(HitFields::EXPLAIN),
            parts: HitParts {
                hit: true,
                catalog_entry: false,
                highlights: fields.includes(HitFields::HIGHLIGHTS),
                computation: fields.is_named(HitFields::EXPLAIN),
            },
            group_duplicates: self.parse_group()?,
            ..SearchRequest::default()
        })
    }

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
        }
    }

    fn parse_filters(&self) -> Result<Filters> {
        build_filters(FacetMap::from_fn(|facet| {
            self.filter_values(facet).to_vec()
        }))
    }

    /// The number of values that count against the limit: the values of lists.
    fn filter_count(&self) -> usize {
        let lists = Facet::ALL.iter().filter(|facet| **facet != Facet::Trust);
        let values = lists.map(|facet| self.filter_values(*facet).len());
        values.sum::<usize>() + self.collection.len()
    }

    fn parse_sort(&self) -> Result<SortOrder> {
        let Some(name) = self.sort.as_deref() else {
            return Ok(SortOrder::default());
        };
        let sort = SortOrder::ALL
            .into_iter()
            .find(|sort| sort.as_str() == name);
        sort.ok_or_else(|| {
            AppError::invalid(
                "/sort",
                "sort must be one of relevance, name, updated, newest",
            )
        })
    }

    fn parse_group(&self) -> Result<bool> {
        match self.group.as_deref() {
            None | Some(GROUP_NONE) => Ok(false),
            Some(GROUP_BY_CONTENT) => Ok(true),
            Some(_) => Err(AppError::invalid(
                "/group",
                "group must be one of content, none",
            )),
        }
    }

    /// The requested mode; `has_model` says whether there is a model.
    pub fn resolve_mode(&self, has_model: bool) -> Result<Mode> {
        match self.mode.as_deref() {
            None if has_model => Ok(Mode::Hybrid),
            None => Ok(Mode::Lexical),
            Some(name) => Mode::from_name(name).ok_or_else(|| {
                AppError::invalid("/mode", "mode must be one of lexical, hybrid, semantic")
            }),
        }
    }

    pub fn hit_fields(&self) -> Result<HitFields> {
        let fields = HitFields::from_names(split_commas(&self.fields)).map_err(|_| {
            let known: Vec<&str> = HitFields::names().collect();
            AppError::invalid(
                "/fields",
                format!("fields must be among {}", known.join(", ")),
            )
        })?;
        Ok(match self.explain {
            Some(true) => fields.with_explanation(),
            _ => fields,
        })
    }

    fn parse_facets(&self, limit: usize) -> Result<Vec<Facet>> {
        let mut names = Vec::new();
        for name in split_commas(&self.facets) {
            let facet: Facet = name.parse().map_err(|_| {
                AppError::invalid(
                    "/facets",
                    format!("facets must be among {}", Facet::joined_names()),
                )
            })?;
            if !names.contains(&facet) {
                names.push(facet);
            }
        }
        if names.len() > limit {
            return Err(AppError::invalid(
                "/facets",
                format!("at most {limit} facets can be counted"),
            ));
        }
        Ok(names)
    }

    /// The query without its page and the selected members, to which a page token belongs.
    pub fn canonical_text(&self) -> String {
        let canonical = Self {
            page_token: None,
            page_size: None,
            fields: Vec::new(),
            ..self.clone()
        };
        serde_html_form::to_string(&canonical).unwrap_or_default()
    }

    /// The name of the order used.
    pub fn effective_sort(&self) -> &'static str {
        let sort = self.parse_sort().unwrap_or_default();
        sort.effective(self.q.as_deref()).as_str()
    }
}

impl LookupQuery {
    /// The look-up keys of the index, the most exact first.
    pub fn lookup_keys(&self) -> Result<Vec<String>> {
        match (&self.url, &self.urn, &self.digest, &self.name) {
            (Some(url), None, None, None) => {
                check_length("/url", url, MAX_LOOKUP_URL_CHARS)?;
                Ok(url_lookup_keys(url.trim()))
            }
            (None, Some(urn), None, None) => {
                check_length("/urn", urn, MAX_LOOKUP_URN_CHARS)?;
                Ok(vec![format!("urn:{urn}")])
            }
            (None, None, Some(digest), None) => {
                check_length("/digest", digest, MAX_LOOKUP_DIGEST_CHARS)?;
                Ok(vec![format!("digest:{digest}")])
            }
            (None, None, None, Some(name)) => {
                check_length("/name", name, MAX_LOOKUP_NAME_CHARS)?;
                Ok(vec![name_lookup_key(name)])
            }
            _ => Err(AppError::invalid(
                "",
                "Give exactly one of url, urn, digest and name.",
            )),
        }
    }
}

/// Splits lists of names at commas.
fn split_commas(lists: &[String]) -> impl Iterator<Item = &str> {
    let names = lists.iter().flat_map(|list| list.split(','));
    names.map(str::trim).filter(|name| !name.is_empty())
}

/// The look-up keys of a host or URL. A URL without a path is a host, but may be an endpoint too; any other URL may be
/// the base URL of an agent.
fn url_lookup_keys(text: &str) -> Vec<String> {
    let host_key =
        |name: &str| format!("host:{}", name.trim_end_matches(['/', '.']).to_lowercase());
    let parsed = Url::parse(text).ok().filter(|_| text.contains("://"));
    let Some(url) = parsed else {
        return vec![host_key(text)];
    };
    let url_key = format!("url:{url}");
    let is_bare = url.path() == "/" && url.query().is_none() && url.fragment().is_none();
    if is_bare && url.has_host() {
        return vec![host_key(&Domain::from_url(&url).name), url_key];
    }
    let under = card_url_under(&url).map(|url| format!("url:{url}"));
    std::iter::once(url_key).chain(under).collect()
}

pub fn check_length(pointer: &str, text: &str, limit: usize) -> Result<()> {
    if text.chars().count() <= limit {
        return Ok(());
    }
    Err(AppError::invalid(
        pointer,
        format!("at most {limit} characters"),
    ))
}
