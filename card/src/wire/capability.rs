//! Reads capabilities: an object of booleans in every version, lists and other names in real cards.

use serde_json::{Map, Value};

use super::informal::names::is_about_credentials;
use super::{elsewhere, skill};
use crate::finding::Findings;
use crate::member::{self, Length, Members};
use crate::pointer::Pointer;
use crate::{Capabilities, Extension, Skill, rules};

enum KnownCapability {
    Streaming,
    PushNotifications,
    ExtendedCard,
    StateHistory,
}

/// The capability with that name, in any spelling.
fn known(name: &str) -> Option<KnownCapability> {
    match member::folded(name).as_str() {
        "streaming" | "canstream" => Some(KnownCapability::Streaming),
        "pushnotifications" | "pushnotification" | "canpushnotifications" => {
            Some(KnownCapability::PushNotifications)
        }
        "extendedagentcard"
        | "extendedcard"
        | "authenticatedextendedcard"
        | "supportsauthenticatedextendedcard"
        | "supportsextendedagentcard" => Some(KnownCapability::ExtendedCard),
        "statetransitionhistory" | "canstatetransitionhistory" => {
            Some(KnownCapability::StateHistory)
        }
        _ => None,
    }
}

pub(crate) fn is_known(name: &str) -> bool {
    known(name).is_some()
}

/// Takes `capabilities`, and the flag for the extended card beside them (0.2, 0.3). Returns tools in them as skills.
pub(super) fn capabilities(
    members: &mut Members<'_>,
    out: &mut Findings,
) -> (Capabilities, Vec<Skill>) {
    let mut capabilities = Capabilities {
        extended_agent_card: members
            .flag("supportsAuthenticatedExtendedCard", out)
            .unwrap_or(false),
        ..Capabilities::default()
    };
    let mut tools = Vec::new();
    let Some((spot, value)) = members.take("capabilities", out) else {
        return (capabilities, tools);
    };
    let parent = members.at();
    let at = spot.below(&parent);
    match value {
        Value::Object(inner) => {
            let mut inner = Members::new(inner, at);
            capabilities.extensions = extensions(&mut inner, out);
            tools = self::tools(&mut inner, out);
            let mut credentials = Map::new();
            for (name, value) in inner.rest() {
                set(&mut capabilities, &name, &value, &at, out);
                if is_about_credentials(&name) {
                    credentials.insert(name, value);
                }
            }
            if !credentials.is_empty() {
                members.keep(&spot, Value::Object(credentials));
            }
        }
        Value::Array(list) => {
            out.add(
                &rules::CAPABILITIES_LIST,
                &at,
                &format!("{} elements", list.len()),
            );
            for value in &list {
                if let Some(name) = value.as_str().or_else(|| value.get("name")?.as_str()) {
                    set_known(&mut capabilities, known(name), true);
                }
            }
            members.keep(&spot, Value::Array(list));
        }
        other => {
            out.mistyped(&at, &other, "an object of booleans and `extensions`");
            members.keep(&spot, other);
        }
    }
    (capabilities, tools)
}

/// Sets one capability. Unknown names are ignored.
fn set(
    capabilities: &mut Capabilities,
    name: &str,
    value: &Value,
    at: &Pointer<'_>,
    out: &mut Findings,
) {
    let known = known(name);
    if known.is_none() {
        return;
    }
    let at = at.name(name);
    match name {
        "streaming" | "pushNotifications" | "extendedAgentCard" | "stateTransitionHistory" => {}
        "push_notifications" | "extended_agent_card" | "state_transition_history" => {
            out.add_once(&rules::MEMBER_SNAKE, &at, name);
        }
        _ => out.add(&rules::CAPABILITIES_NAME, &at, name),
    }
    if value.is_null() {
        out.add(&rules::MEMBER_NULL, &at, "null");
    } else if let Some(flag) = member::flag(value, &at, out) {
        set_known(capabilities, known, flag);
    }
}

/// Sets a flag; once set by one spelling it stays set.
fn set_known(capabilities: &mut Capabilities, known: Option<KnownCapability>, flag: bool) {
    match known {
        Some(KnownCapability::Streaming) => capabilities.streaming |= flag,
        Some(KnownCapability::PushNotifications) => capabilities.push_notifications |= flag,
        Some(KnownCapability::ExtendedCard) => capabilities.extended_agent_card |= flag,
        Some(KnownCapability::StateHistory) => capabilities.state_transition_history |= flag,
        None => {}
    }
}

const EXTENSION: &str = "an object with `uri`";

fn parameters(entry: &mut Members<'_>, out: &mut Findings) -> Option<Value> {
    let (spot, params) = entry.take("params", out)?;
    if params.is_object() {
        return Some(params);
    }
    out.mistyped(&spot.below(&entry.at()), &params, "an object");
    None
}

/// Takes `extensions`: objects with `uri`, or the URIs alone.
fn extensions(members: &mut Members<'_>, out: &mut Findings) -> Vec<Extension> {
    let Some((spot, value)) = members.take("extensions", out) else {
        return Vec::new();
    };
    let parent = members.at();
    let at = spot.below(&parent);
    let Value::Array(list) = value else {
        out.mistyped(&at, &value, "a list of extensions");
        return Vec::new();
    };
    let mut extensions = Vec::new();
    for (index, value) in member::cut(list, &at, out).into_iter().enumerate() {
        let at = at.index(index);
        match value {
            Value::Object(entry) => {
                let mut entry = Members::new(entry, at);
                let Some(uri) = entry.text("uri", Length::Address, out) else {
                    let rest = Value::Object(entry.rest());
                    out.add_value(&rules::EXTENSION_URI, &at, &rest);
                    continue;
                };
                extensions.push(Extension {
                    uri,
                    description: entry.text("description", Length::Prose, out),
                    required: entry.flag("required", out).unwrap_or(false),
                    params: parameters(&mut entry, out),
                });
            }
            Value::String(ref uri) => {
                out.coerced(&at, &value, EXTENSION);
                let uri = member::bounded(uri.clone(), &at, Length::Address, out);
                extensions.extend(uri.map(|uri| Extension {
                    uri,
                    ..Extension::default()
                }));
            }
            other => out.mistyped(&at, &other, EXTENSION),
        }
    }
    extensions
}

fn tools(members: &mut Members<'_>, out: &mut Findings) -> Vec<Skill> {
    let mut tools = Vec::new();
    for name in elsewhere::TOOL_PLACES {
        if !members
            .peek(name)
            .is_some_and(|value| value.is_array() || value.is_object())
        {
            continue;
        }
        let Some((spot, value)) = members.take(name, out) else {
            continue;
        };
        let parent = members.at();
        let at = spot.below(&parent);
        out.add_value(&rules::CAPABILITIES_TOOLS, &at, &value);
        match value {
            Value::Array(list) => tools.extend(elsewhere::listed(list, &at, out)),
            Value::Object(named) => tools.extend(skill::named(named, &at, &[], out)),
            _ => {}
        }
    }
    tools
}
