//! Tool arguments. Search arguments are the parameters of `/v1/agents`, so that both accept the same.

use std::sync::Arc;

use a2a_registry_api::search_query::SearchQuery;
use a2a_registry_core::error::AppError;
use a2a_registry_domain::facet::Facet;
use rmcp::model::JsonObject;
use rmcp::schemars::JsonSchema;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use utoipa::IntoParams as _;

use crate::mcp::schemas::portable_schema;
use crate::requests::body::json_pointer_from_path;

/// Default number of agents on a page.
const DEFAULT_PAGE_SIZE: u32 = 10;
const MAX_PAGE_SIZE: u32 = 50;
const MAX_LIST_VALUES: usize = 20;
const MAX_FACETS: usize = 12;
/// Facets that are counted by default.
const DEFAULT_FACETS: [Facet; 6] = [
    Facet::Tag,
    Facet::Provider,
    Facet::Domain,
    Facet::ProtocolVersion,
    Facet::Auth,
    Facet::Trust,
];
/// Parameters of `/v1/agents` that `search_agents` does not support, because it does not return their results.
const UNSUPPORTED_PARAMETERS: [&str; 5] = ["facets", "mode", "group", "fields", "explain"];

const UNDERSTAND_DESCRIPTION: &str = "`false` to search for all words of `text`. By default explicit phrases such as \
`without login`, `over gRPC` or `but not acme` are applied as filters, which `understood` in the result reports.";

#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(crate = "rmcp::schemars")]
#[serde(deny_unknown_fields)]
pub(super) struct AgentArgument {
    /// The agent's `id` or `urn`, as returned by `search_agents`.
    #[schemars(length(min = 1, max = 1024))]
    pub agent: String,
}

pub(super) fn search_input_schema() -> Arc<JsonObject> {
    let overrides = json!({
        "text": {"description": "The task in plain words, such as `book a flight`. Without a text all agents are \
            listed. Operators: `\"a phrase\"`, `both AND needed`, `one OR another`, `-without`, `prefix*`."},
        "trust": {"description": "Minimum trust level: `L0` fetched over TLS, `L1` domain proved, `L2` signed by the \
        domain, `L3` signed with a key that the domain's owner enrolled."},
        "sort": {"description": "Order of the agents; `relevance` by default."},
        "fitting": {"description": "True to leave out agents that match the text but do not fit it well, which are \
            `weak`."},
        "page_size": {"description": "Number of agents on the page; 10 by default.", "default": DEFAULT_PAGE_SIZE, "maximum": MAX_PAGE_SIZE},
        "understand": {"description": UNDERSTAND_DESCRIPTION},
        "page_token": {"description": "`next_page_token` of the previous page, with all other arguments unchanged.",
            "maxLength": 4096},
    });
    schema_from_parameters(|name| !UNSUPPORTED_PARAMETERS.contains(&name), &overrides)
}

pub(super) fn facets_input_schema() -> Arc<JsonObject> {
    let names = |facets: &[Facet]| -> String {
        let names = facets.iter().map(|facet| format!("`{facet}`"));
        names.collect::<Vec<_>>().join(", ")
    };
    let description = format!(
        "Facets to count: {}; by default {}.",
        names(Facet::ALL),
        names(&DEFAULT_FACETS)
    );
    let overrides = json!({
        "text": {"description": "Counts only agents that `search_agents` finds for this text."},
        "facets": {"description": description, "maxItems": MAX_FACETS},
        "understand": {"description": UNDERSTAND_DESCRIPTION},
    });
    let is_included = |name: &str| matches!(name, "q" | "facets" | "understand");
    schema_from_parameters(is_included, &overrides)
}

/// JSON schema of arguments from the parameters of `/v1/agents`, with the descriptions in `overrides`. The search text
/// is `q` there and `text` here.
fn schema_from_parameters(
    is_included: impl Fn(&str) -> bool,
    overrides: &Value,
) -> Arc<JsonObject> {
    let mut properties = JsonObject::new();
    for parameter in SearchQuery::into_params(|| None) {
        if !is_included(&parameter.name) {
            continue;
        }
        let name = match parameter.name.as_str() {
            "q" => "text",
            name => name,
        };
        let mut schema = json!(parameter.schema);
        if schema["type"] == "array" {
            schema["maxItems"] = MAX_LIST_VALUES.into();
            // All values are parsed as strings.
            schema["items"]["type"] = "string".into();
        }
        if let Some(description) = parameter.description {
            schema["description"] = description.into();
        }
        for (member, value) in overrides[name].as_object().into_iter().flatten() {
            schema[member] = value.clone();
        }
        properties.insert(name.to_owned(), schema);
    }
    portable_schema(
        json!({"type": "object", "properties": properties, "additionalProperties": false}),
    )
}

pub(super) fn search_query_from_arguments(arguments: JsonObject) -> Result<SearchQuery, AppError> {
    let mut query = parse_search_arguments(arguments)?;
    let size = query.page_size.unwrap_or(DEFAULT_PAGE_SIZE);
    if !(1..=MAX_PAGE_SIZE).contains(&size) {
        let detail = format!("page_size must be between 1 and {MAX_PAGE_SIZE}");
        return Err(AppError::invalid("/page_size", detail));
    }
    query.page_size = Some(size);
    Ok(query)
}

pub(super) fn facets_query_from_arguments(arguments: JsonObject) -> Result<SearchQuery, AppError> {
    let mut query = parse_search_arguments(arguments)?;
    if query.facets.is_empty() {
        query.facets = DEFAULT_FACETS.iter().map(ToString::to_string).collect();
    }
    query.page_size = Some(1);
    Ok(query)
}

fn parse_search_arguments(mut arguments: JsonObject) -> Result<SearchQuery, AppError> {
    if let Some(text) = arguments.remove("text") {
        arguments.insert("q".to_owned(), text);
    }
    parse_tool_arguments(arguments)
}

/// Parses arguments that [`normalize_arguments`] returned; an error names the argument.
pub(super) fn parse_tool_arguments<T: DeserializeOwned>(
    arguments: JsonObject,
) -> Result<T, AppError> {
    serde_path_to_error::deserialize(Value::Object(arguments)).map_err(|error| {
        AppError::invalid(
            &json_pointer_from_path(error.path()),
            error.inner().to_string(),
        )
    })
}

/// Normalizes the arguments written by a model to the schema of the tool; an error names the argument.
pub(super) fn normalize_tool_arguments(
    arguments: Option<JsonObject>,
    schema: &JsonObject,
) -> Result<JsonObject, AppError> {
    let mut arguments = arguments.unwrap_or_default();
    arguments.retain(|_, value| !value.is_null());
    let properties = schema.get("properties").and_then(Value::as_object);
    for (name, value) in &mut arguments {
        let Some(schema) = properties.and_then(|all| all.get(name)) else {
            let known = properties.into_iter().flat_map(|all| all.keys());
            let known: Vec<String> = known.map(|name| format!("`{name}`")).collect();
            let detail = format!(
                "unknown field `{name}`, expected one of {}",
                known.join(", ")
            );
            return Err(AppError::invalid("", detail));
        };
        *value = coerce_to_schema(value.take(), schema);
        if contains_nul(value) {
            return Err(AppError::invalid(
                "",
                "the arguments must not contain U+0000",
            ));
        }
    }
    Ok(arguments)
}

/// Converts a value to the type in its schema if a model wrote another type: one value for a list, a list as a string,
/// numbers as strings or vice versa, and truth values as strings. Other mismatches are left for the parser to reject.
fn coerce_to_schema(value: Value, schema: &Value) -> Value {
    match (schema["type"].as_str(), value) {
        (Some("array"), Value::Array(items)) => {
            let items = items.into_iter();
            items
                .map(|item| coerce_to_schema(item, &schema["items"]))
                .collect()
        }
        (Some("array"), Value::String(text)) => {
            let list = serde_json::from_str(&text).unwrap_or_else(|_| vec![Value::String(text)]);
            coerce_to_schema(Value::Array(list), schema)
        }
        (Some("array"), value @ (Value::Number(_) | Value::Bool(_))) => {
            coerce_to_schema(Value::Array(vec![value]), schema)
        }
        (Some("integer"), value @ (Value::String(_) | Value::Number(_))) => {
            let text = match &value {
                Value::String(text) => text.trim().to_owned(),
                number => number.to_string(),
            };
            let number = text.strip_suffix(".0").unwrap_or(&text).parse::<i64>();
            number.map_or(value, Value::from)
        }
        (Some("boolean"), Value::String(text)) => match text.trim() {
            "true" => Value::Bool(true),
            "false" => Value::Bool(false),
            _ => Value::String(text),
        },
        (Some("string"), value @ (Value::Number(_) | Value::Bool(_))) => value.to_string().into(),
        (_, value) => value,
    }
}

/// Whether a string contains U+0000, which not every database can compare.
fn contains_nul(value: &Value) -> bool {
    match value {
        Value::String(text) => text.contains('\0'),
        Value::Array(items) => items.iter().any(contains_nul),
        Value::Object(members) => members.values().any(contains_nul),
        _ => false,
    }
}
