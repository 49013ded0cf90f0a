//! Completes the OAuth flows of a converted card, from an object in any spelling.

use serde_json::{Map, Value};

use super::target::ConversionTarget;
use crate::finding::Findings;
use crate::member::snake_case;
use crate::pointer::Pointer;
use crate::rules;

struct Flow {
    name: &'static str,
    addresses: &'static [&'static str],
    since_1_0: bool,
}

/// The flows of all versions, the most useful first: 1.0 allows one in a scheme, and has deprecated the last two.
const FLOWS: [Flow; 5] = [
    Flow {
        name: "authorizationCode",
        addresses: &["authorizationUrl", "tokenUrl"],
        since_1_0: false,
    },
    Flow {
        name: "clientCredentials",
        addresses: &["tokenUrl"],
        since_1_0: false,
    },
    Flow {
        name: "deviceCode",
        addresses: &["deviceAuthorizationUrl", "tokenUrl"],
        since_1_0: true,
    },
    Flow {
        name: "implicit",
        addresses: &["authorizationUrl"],
        since_1_0: false,
    },
    Flow {
        name: "password",
        addresses: &["tokenUrl"],
        since_1_0: false,
    },
];

/// The flows that the version can express. One without its addresses is removed, since they cannot be guessed.
pub(super) fn complete(
    flows: &Value,
    target: ConversionTarget,
    at: &Pointer<'_>,
    out: &mut Findings,
) -> Map<String, Value> {
    let mut complete = Map::new();
    let Value::Object(told) = flows else {
        if !flows.is_null() {
            out.add_value(&rules::CONVERT_FLOW, at, flows);
        }
        return complete;
    };
    for flow in &FLOWS {
        let Some(value) = member(told, flow.name) else {
            continue;
        };
        let sayable = match target {
            ConversionTarget::V1_0 => complete.is_empty(),
            ConversionTarget::V0_3 => !flow.since_1_0,
        };
        let at = at.name(flow.name);
        match value {
            Value::Object(value) if sayable && has_addresses(flow, value) => {
                let written = write(flow, value, target, &at, out);
                complete.insert(flow.name.to_owned(), Value::Object(written));
            }
            _ => out.add_value(&rules::CONVERT_FLOW, &at, value),
        }
    }
    for (name, value) in told {
        let known = |flow: &Flow| name == flow.name || *name == snake_case(flow.name);
        if !value.is_null() && !FLOWS.iter().any(known) {
            out.add_value(&rules::CONVERT_FLOW, &at.name(name), value);
        }
    }
    complete
}

/// A member in camelCase or `snake_case`; null counts as absent.
fn member<'a>(object: &'a Map<String, Value>, name: &str) -> Option<&'a Value> {
    let there = |name: &str| object.get(name).filter(|value| !value.is_null());
    there(name).or_else(|| there(&snake_case(name)))
}

/// Only a text that is not empty.
fn text<'a>(object: &'a Map<String, Value>, name: &str) -> Option<&'a str> {
    let text = member(object, name)?.as_str()?;
    (!text.trim().is_empty()).then_some(text)
}

fn has_addresses(flow: &Flow, told: &Map<String, Value>) -> bool {
    let mut addresses = flow.addresses.iter();
    addresses.all(|name| text(told, name).is_some())
}

fn write(
    flow: &Flow,
    told: &Map<String, Value>,
    target: ConversionTarget,
    at: &Pointer<'_>,
    out: &mut Findings,
) -> Map<String, Value> {
    let mut written = Map::new();
    for name in flow.addresses.iter().copied().chain(["refreshUrl"]) {
        if let Some(text) = text(told, name) {
            written.insert(name.to_owned(), text.into());
        }
    }
    let scopes = member(told, "scopes").map(scopes).unwrap_or_default();
    written.insert("scopes".to_owned(), Value::Object(scopes));
    let asks_pkce = member(told, "pkceRequired") == Some(&Value::Bool(true));
    if flow.name == "authorizationCode" && asks_pkce {
        match target {
            ConversionTarget::V1_0 => {
                written.insert("pkceRequired".to_owned(), true.into());
            }
            ConversionTarget::V0_3 => {
                out.add(&rules::CONVERT_FLOW, &at.name("pkceRequired"), "true");
            }
        }
    }
    written
}

/// Scopes by name with their descriptions, which a list of names does not have.
fn scopes(told: &Value) -> Map<String, Value> {
    let text = |value: &Value| Value::from(value.as_str().unwrap_or_default());
    match told {
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
