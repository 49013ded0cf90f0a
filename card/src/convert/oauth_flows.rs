//! OAuth flows of a converted card, completed from an object in any spelling.

use serde_json::{Map, Value};

use super::conversion_target::ConversionTarget;
use crate::finding::FindingCollector;
use crate::json_pointer::JsonPointer;
use crate::member_reader::to_snake_case;
use crate::rules;

struct OAuthFlowKind {
    name: &'static str,
    required_urls: &'static [&'static str],
    since_1_0: bool,
}

/// Flows of all versions, the most useful first: 1.0 allows one in each scheme, and has deprecated the last two.
const OAUTH_FLOWS: [OAuthFlowKind; 5] = [
    OAuthFlowKind {
        name: "authorizationCode",
        required_urls: &["authorizationUrl", "tokenUrl"],
        since_1_0: false,
    },
    OAuthFlowKind {
        name: "clientCredentials",
        required_urls: &["tokenUrl"],
        since_1_0: false,
    },
    OAuthFlowKind {
        name: "deviceCode",
        required_urls: &["deviceAuthorizationUrl", "tokenUrl"],
        since_1_0: true,
    },
    OAuthFlowKind {
        name: "implicit",
        required_urls: &["authorizationUrl"],
        since_1_0: false,
    },
    OAuthFlowKind {
        name: "password",
        required_urls: &["tokenUrl"],
        since_1_0: false,
    },
];

/// The flows that the version can express. A flow without its addresses is removed, because they cannot be guessed.
pub(super) fn convert_oauth_flows(
    flows: &Value,
    target: ConversionTarget,
    pointer: &JsonPointer<'_>,
    out: &mut FindingCollector,
) -> Map<String, Value> {
    let mut completed = Map::new();
    let Value::Object(flow_map) = flows else {
        if !flows.is_null() {
            out.add_with_value(&rules::CONVERT_FLOW, pointer, flows);
        }
        return completed;
    };
    for flow in &OAUTH_FLOWS {
        let Some(value) = member_in_either_spelling(flow_map, flow.name) else {
            continue;
        };
        let is_expressible = match target {
            ConversionTarget::V1_0 => completed.is_empty(),
            ConversionTarget::V0_3 => !flow.since_1_0,
        };
        let pointer = pointer.member(flow.name);
        match value {
            Value::Object(value) if is_expressible && has_required_urls(flow, value) => {
                let flow_object = build_flow_object(flow, value, target, &pointer, out);
                completed.insert(flow.name.to_owned(), Value::Object(flow_object));
            }
            _ => out.add_with_value(&rules::CONVERT_FLOW, &pointer, value),
        }
    }
    for (name, value) in flow_map {
        let is_known_name =
            |flow: &OAuthFlowKind| name == flow.name || *name == to_snake_case(flow.name);
        if !value.is_null() && !OAUTH_FLOWS.iter().any(is_known_name) {
            out.add_with_value(&rules::CONVERT_FLOW, &pointer.member(name), value);
        }
    }
    completed
}

/// A member in camelCase or `snake_case`; null counts as absent.
fn member_in_either_spelling<'a>(object: &'a Map<String, Value>, name: &str) -> Option<&'a Value> {
    let non_null = |name: &str| object.get(name).filter(|value| !value.is_null());
    non_null(name).or_else(|| non_null(&to_snake_case(name)))
}

/// The text of a member; `None` if it is blank.
fn non_blank_text<'a>(object: &'a Map<String, Value>, name: &str) -> Option<&'a str> {
    let text = member_in_either_spelling(object, name)?.as_str()?;
    (!text.trim().is_empty()).then_some(text)
}

fn has_required_urls(flow: &OAuthFlowKind, members: &Map<String, Value>) -> bool {
    let mut names = flow.required_urls.iter();
    names.all(|name| non_blank_text(members, name).is_some())
}

fn build_flow_object(
    flow: &OAuthFlowKind,
    members: &Map<String, Value>,
    target: ConversionTarget,
    pointer: &JsonPointer<'_>,
    out: &mut FindingCollector,
) -> Map<String, Value> {
    let mut flow_object = Map::new();
    for name in flow.required_urls.iter().copied().chain(["refreshUrl"]) {
        if let Some(text) = non_blank_text(members, name) {
            flow_object.insert(name.to_owned(), text.into());
        }
    }
    let scopes = member_in_either_spelling(members, "scopes")
        .map(scope_descriptions)
        .unwrap_or_default();
    flow_object.insert("scopes".to_owned(), Value::Object(scopes));
    let requires_pkce =
        member_in_either_spelling(members, "pkceRequired") == Some(&Value::Bool(true));
    if flow.name == "authorizationCode" && requires_pkce {
        match target {
            ConversionTarget::V1_0 => {
                flow_object.insert("pkceRequired".to_owned(), true.into());
            }
            ConversionTarget::V0_3 => {
                out.add(
                    &rules::CONVERT_FLOW,
                    &pointer.member("pkceRequired"),
                    "true",
                );
            }
        }
    }
    flow_object
}

/// The scopes by name with their descriptions, which are empty if the card only lists names.
fn scope_descriptions(value: &Value) -> Map<String, Value> {
    let text = |value: &Value| Value::from(value.as_str().unwrap_or_default());
    match value {
        Value::Object(named) => named
            .iter()
            .map(|(name, purpose)| (name.clone(), text(purpose)))
            .collect(),
        Value::Array(names) => names
            .iter()
            .filter_map(Value::as_str)
            .map(|name| (name.to_owned(), Value::from("")))
            .collect(),
        _ => Map::new(),
    }
}
