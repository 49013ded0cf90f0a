//! The arguments of the tools. The schemas that clients see are made from these types, so that both say the same.

use a2a_registry_domain::facet::Facet;
use rmcp::handler::server::common::schema_for_type;
use rmcp::model::JsonObject;
use rmcp::schemars::JsonSchema;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::error::AppError;
use crate::http::body::path_pointer;
use crate::search::query::SearchQuery;

/// Agents on a page where the caller names no number.
pub(super) const PAGE_SIZE: u32 = 10;
/// The most agents on a page.
pub(super) const MAX_PAGE_SIZE: u32 = 50;
/// The facets that are counted where the caller names none.
const FACETS: [Facet; 6] = [
    Facet::Tag,
    Facet::Provider,
    Facet::Domain,
    Facet::ProtocolVersion,
    Facet::Auth,
    Facet::Trust,
];

/// Arguments of `search_agents`.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[schemars(crate = "rmcp::schemars")]
#[serde(default, deny_unknown_fields)]
pub(super) struct SearchAgents {
    /// What the agent should do, in plain words, such as `book a flight`. Without it all agents are listed. Operators:
    /// `"a phrase"`, `both AND needed`, `one OR another`, `-without`, `prefix*`.
    #[schemars(with = "String", length(max = 512))]
    text: Option<String>,
    /// Ids of skills, or words of their names.
    #[schemars(length(max = 20))]
    skill: Vec<String>,
    /// Tags of skills.
    #[schemars(length(max = 20))]
    tag: Vec<String>,
    /// `streaming`, `push_notifications`, `extended_agent_card` or the URI of an extension.
    #[schemars(length(max = 20))]
    capability: Vec<String>,
    /// `JSONRPC`, `GRPC` or `HTTP+JSON`.
    #[schemars(length(max = 20))]
    binding: Vec<String>,
    /// Versions of the A2A protocol as `Major.Minor`, such as `1.0`.
    #[schemars(length(max = 20))]
    protocol_version: Vec<String>,
    /// Organisations behind agents.
    #[schemars(length(max = 20))]
    provider: Vec<String>,
    /// Domains that publish cards.
    #[schemars(length(max = 20))]
    domain: Vec<String>,
    /// Authentication that agents require: `none`, `apiKey`, `http:<scheme>`, `oauth2`, `openIdConnect`, `mutualTLS`.
    #[schemars(length(max = 20))]
    auth: Vec<String>,
    /// Media types that agents accept.
    #[schemars(length(max = 20))]
    input_mode: Vec<String>,
    /// Media types that agents produce.
    #[schemars(length(max = 20))]
    output_mode: Vec<String>,
    /// Minimum trust level: `L0` fetched over TLS, `L1` the domain is proved, `L2` signed by the domain, `L3` signed
    /// with a key that the domain's owner enrolled.
    #[schemars(with = "String", extend("enum" = ["L0", "L1", "L2", "L3", "L4"]))]
    trust: Option<String>,
    /// Results of checking the card's signatures: `unsigned`, `valid`, `untrusted`, `invalid`, `unknown`.
    #[schemars(length(max = 20))]
    signature: Vec<String>,
    /// `true` for agents that nobody answers for.
    #[schemars(length(max = 2))]
    unmanaged: Vec<String>,
    /// Labels as `key=value`, which curators of this registry have set.
    #[schemars(length(max = 20))]
    label: Vec<String>,
    /// Names of collections: only their agents are found.
    #[schemars(length(max = 20))]
    collection: Vec<String>,
    /// Lifecycle states; `approved` and `deprecated` by default.
    #[schemars(length(max = 20))]
    lifecycle: Vec<String>,
    /// Whether the card answered lately: `fresh`, `stale`, `gone`; `fresh` and `stale` by default.
    #[schemars(length(max = 20))]
    liveness: Vec<String>,
    /// Order of the agents; `relevance` by default.
    #[schemars(with = "String", extend("enum" = ["relevance", "name", "updated", "newest"]))]
    sort: Option<String>,
    /// Number of agents on the page; 10 by default.
    #[schemars(with = "u32", range(min = 1, max = 50))]
    page_size: Option<u32>,
    /// `next_page_token` of the page before, with all other arguments as they were then.
    #[schemars(with = "String", length(max = 4096))]
    page_token: Option<String>,
}

/// Arguments of the tools about one agent.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(crate = "rmcp::schemars")]
#[serde(deny_unknown_fields)]
pub(super) struct OneAgent {
    /// The agent's `id` or `urn`, as `search_agents` shows them.
    #[schemars(length(min = 1, max = 1024))]
    pub agent: String,
}

/// Arguments of `list_facets`.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[schemars(crate = "rmcp::schemars")]
#[serde(default, deny_unknown_fields)]
pub(super) struct ListFacets {
    /// Counts only agents that this text finds, as `search_agents` does.
    #[schemars(with = "String", length(max = 512))]
    text: Option<String>,
    /// What to count: `tag`, `skill`, `capability`, `binding`, `protocol_version`, `provider`, `domain`, `auth`,
    /// `input_mode`, `output_mode`, `label`, `trust`, `lifecycle`, `liveness`, `signature`, `unmanaged`; by default `tag`,
    /// `provider`, `domain`, `protocol_version`, `auth` and `trust`.
    #[schemars(length(max = 12))]
    facets: Vec<String>,
}

impl SearchAgents {
    /// The same search as parameters of `/v1/agents`.
    ///
    /// # Errors
    /// `Invalid` for a size of the page that is none.
    pub(super) fn into_query(self) -> Result<SearchQuery, AppError> {
        let size = self.page_size.unwrap_or(PAGE_SIZE);
        if !(1..=MAX_PAGE_SIZE).contains(&size) {
            let detail = format!("a page has 1 to {MAX_PAGE_SIZE} agents");
            return Err(AppError::invalid("/page_size", detail));
        }
        Ok(SearchQuery {
            q: self.text,
            skill: self.skill,
            tag: self.tag,
            capability: self.capability,
            binding: self.binding,
            protocol_version: self.protocol_version,
            provider: self.provider,
            domain: self.domain,
            auth: self.auth,
            input_mode: self.input_mode,
            output_mode: self.output_mode,
            trust: self.trust,
            signature: self.signature,
            unmanaged: self.unmanaged,
            label: self.label,
            collection: self.collection,
            lifecycle: self.lifecycle,
            liveness: self.liveness,
            sort: self.sort,
            page_size: Some(size),
            page_token: self.page_token,
            facets: Vec::new(),
            fields: Vec::new(),
            mode: None,
            group: None,
            explain: None,
        })
    }
}

impl ListFacets {
    /// The search whose facets are counted.
    pub(super) fn into_query(self) -> SearchQuery {
        let facets = match self.facets.is_empty() {
            true => FACETS.iter().map(ToString::to_string).collect(),
            false => self.facets,
        };
        SearchQuery {
            q: self.text,
            facets,
            page_size: Some(1),
            ..SearchQuery::default()
        }
    }
}

/// Reads the arguments of a call, as models write them.
///
/// # Errors
/// `Invalid`, naming the argument.
pub(super) fn read<T: DeserializeOwned + JsonSchema + 'static>(
    arguments: Option<JsonObject>,
) -> Result<T, AppError> {
    let schema = schema_for_type::<T>();
    let mut arguments = arguments.unwrap_or_default();
    arguments.retain(|_, value| !value.is_null());
    let properties = schema.get("properties");
    for (name, value) in &mut arguments {
        if let Some(schema) = properties.and_then(|all| all.get(name)) {
            *value = fit_to_schema(value.take(), schema);
        }
    }
    let arguments = Value::Object(arguments);
    if holds_nul(&arguments) {
        return Err(AppError::invalid("", "the arguments hold U+0000"));
    }
    serde_path_to_error::deserialize(arguments)
        .map_err(|error| AppError::invalid(&path_pointer(error.path()), error.inner().to_string()))
}

/// A value in the type that its schema asks for, where a model wrote it in another: one value for a list, a list as text, and
/// numbers as texts or the other way round. What fits in no way is left for the reader to refuse.
fn fit_to_schema(value: Value, schema: &Value) -> Value {
    match (schema["type"].as_str(), value) {
        (Some("array"), Value::Array(items)) => {
            let items = items.into_iter();
            items
                .map(|item| fit_to_schema(item, &schema["items"]))
                .collect()
        }
        (Some("array"), Value::String(text)) => {
            let list = serde_json::from_str(&text).unwrap_or_else(|_| vec![Value::String(text)]);
            fit_to_schema(Value::Array(list), schema)
        }
        (Some("array"), value @ (Value::Number(_) | Value::Bool(_))) => {
            fit_to_schema(Value::Array(vec![value]), schema)
        }
        (Some("integer"), value @ (Value::String(_) | Value::Number(_))) => {
            let text = match &value {
                Value::String(text) => text.trim().to_owned(),
                number => number.to_string(),
            };
            let number = text.strip_suffix(".0").unwrap_or(&text).parse::<i64>();
            number.map_or(value, Value::from)
        }
        (Some("string"), value @ (Value::Number(_) | Value::Bool(_))) => value.to_string().into(),
        (_, value) => value,
    }
}

/// Whether a text holds U+0000, which not every database can compare with.
fn holds_nul(value: &Value) -> bool {
    match value {
        Value::String(text) => text.contains('\0'),
        Value::Array(items) => items.iter().any(holds_nul),
        Value::Object(members) => members.values().any(holds_nul),
        _ => false,
    }
}
