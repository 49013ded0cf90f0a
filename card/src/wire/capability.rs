//! Reader of capabilities: an object of booleans in every version, lists and other names in real cards.

use serde_json::{Map, Value};

use super::informal_credentials::credential_names::is_about_credentials;
use super::{misplaced_members, skill};
use crate::finding::FindingCollector;
use crate::json_pointer::JsonPointer;
use crate::member_reader::{self, LengthLimit, MemberReader};
use crate::{Capabilities, Extension, Skill, rules};

enum KnownCapability {
    Streaming,
    PushNotifications,
    ExtendedCard,
    StateHistory,
}

/// The known capability with that name, in any spelling.
fn known_capability(name: &str) -> Option<KnownCapability> {
    match member_reader::fold_name(name).as_str() {
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

pub(super) fn is_known_capability(name: &str) -> bool {
    known_capability(name).is_some()
}

/// Takes `capabilities`, and the flag for the extended card beside them (0.2, 0.3). Returns tools in them as skills.
pub(super) fn take_capabilities(
    members: &mut MemberReader<'_>,
    out: &mut FindingCollector,
) -> (Capabilities, Vec<Skill>) {
    let mut capabilities = Capabilities {
        extended_agent_card: members
            .take_bool("supportsAuthenticatedExtendedCard", out)
            .unwrap_or(false),
        ..Capabilities::default()
    };
    let mut tools = Vec::new();
    let Some((position, value)) = members.take_member("capabilities", out) else {
        return (capabilities, tools);
    };
    let parent = members.pointer();
    let pointer = position.pointer_in(&parent);
    match value {
        Value::Object(inner) => {
            let mut inner = MemberReader::new(inner, pointer);
            capabilities.extensions = take_extensions(&mut inner, out);
            tools = self::take_tools(&mut inner, out);
            let mut credentials = Map::new();
            for (name, value) in inner.into_remaining() {
                set_capability(&mut capabilities, &name, &value, &pointer, out);
                if is_about_credentials(&name) {
                    credentials.insert(name, value);
                }
            }
            if !credentials.is_empty() {
                members.retain_unreadable(&position, Value::Object(credentials));
            }
        }
        Value::Array(list) => {
            out.add(
                &rules::CAPABILITIES_LIST,
                &pointer,
                &format!("{} elements", list.len()),
            );
            for value in &list {
                if let Some(name) = value.as_str().or_else(|| value.get("name")?.as_str()) {
                    set_known_capability(&mut capabilities, known_capability(name), true);
                }
            }
            members.retain_unreadable(&position, Value::Array(list));
        }
        other => {
            out.add_wrong_type(&pointer, &other, "an object of booleans and `extensions`");
            members.retain_unreadable(&position, other);
        }
    }
    (capabilities, tools)
}

/// Sets one capability. Unknown names are ignored.
fn set_capability(
    capabilities: &mut Capabilities,
    name: &str,
    value: &Value,
    pointer: &JsonPointer<'_>,
    out: &mut FindingCollector,
) {
    let capability = known_capability(name);
    if capability.is_none() {
        return;
    }
    let pointer = pointer.member(name);
    match name {
        "streaming" | "pushNotifications" | "extendedAgentCard" | "stateTransitionHistory" => {}
        "push_notifications" | "extended_agent_card" | "state_transition_history" => {
            out.add_once(&rules::MEMBER_SNAKE, &pointer, name);
        }
        _ => out.add(&rules::CAPABILITIES_NAME, &pointer, name),
    }
    if value.is_null() {
        out.add(&rules::MEMBER_NULL, &pointer, "null");
    } else if let Some(flag) = member_reader::read_bool(value, &pointer, out) {
        set_known_capability(capabilities, capability, flag);
    }
}

/// Sets a flag; once one spelling has set it, it stays set.
fn set_known_capability(
    capabilities: &mut Capabilities,
    capability: Option<KnownCapability>,
    flag: bool,
) {
    match capability {
        Some(KnownCapability::Streaming) => capabilities.streaming |= flag,
        Some(KnownCapability::PushNotifications) => capabilities.push_notifications |= flag,
        Some(KnownCapability::ExtendedCard) => capabilities.extended_agent_card |= flag,
        Some(KnownCapability::StateHistory) => capabilities.state_transition_history |= flag,
        None => {}
    }
}

const EXPECTED_EXTENSION: &str = "an object with `uri`";

fn take_extension_params(
    entry: &mut MemberReader<'_>,
    out: &mut FindingCollector,
) -> Option<Value> {
    let (position, params) = entry.take_member("params", out)?;
    if params.is_object() {
        return Some(params);
    }
    out.add_wrong_type(&position.pointer_in(&entry.pointer()), &params, "an object");
    None
}

/// Takes `extensions`: objects with `uri`, or only the URIs.
fn take_extensions(members: &mut MemberReader<'_>, out: &mut FindingCollector) -> Vec<Extension> {
    let Some((position, value)) = members.take_member("extensions", out) else {
        return Vec::new();
    };
    let parent = members.pointer();
    let pointer = position.pointer_in(&parent);
    let Value::Array(list) = value else {
        out.add_wrong_type(&pointer, &value, "a list of extensions");
        return Vec::new();
    };
    let mut extensions = Vec::new();
    for (index, value) in member_reader::truncate_list(list, &pointer, out)
        .into_iter()
        .enumerate()
    {
        let pointer = pointer.element(index);
        match value {
            Value::Object(entry) => {
                let mut entry = MemberReader::new(entry, pointer);
                let Some(uri) = entry.take_text("uri", LengthLimit::Address, out) else {
                    let rest = Value::Object(entry.into_remaining());
                    out.add_with_value(&rules::EXTENSION_URI, &pointer, &rest);
                    continue;
                };
                extensions.push(Extension {
                    uri,
                    description: entry.take_text("description", LengthLimit::Prose, out),
                    required: entry.take_bool("required", out).unwrap_or(false),
                    params: take_extension_params(&mut entry, out),
                });
            }
            Value::String(ref uri) => {
                out.add_coerced_type(&pointer, &value, EXPECTED_EXTENSION);
                let uri = member_reader::trim_and_truncate(
                    uri.clone(),
                    &pointer,
                    LengthLimit::Address,
                    out,
                );
                extensions.extend(uri.map(|uri| Extension {
                    uri,
                    ..Extension::default()
                }));
            }
            other => out.add_wrong_type(&pointer, &other, EXPECTED_EXTENSION),
        }
    }
    extensions
}

fn take_tools(members: &mut MemberReader<'_>, out: &mut FindingCollector) -> Vec<Skill> {
    let mut tools = Vec::new();
    for name in misplaced_members::TOOL_MEMBERS {
        if !members
            .peek_member(name)
            .is_some_and(|value| value.is_array() || value.is_object())
        {
            continue;
        }
        let Some((position, value)) = members.take_member(name, out) else {
            continue;
        };
        let parent = members.pointer();
        let pointer = position.pointer_in(&parent);
        out.add_with_value(&rules::CAPABILITIES_TOOLS, &pointer, &value);
        match value {
            Value::Array(list) => {
                tools.extend(misplaced_members::read_skill_list(list, &pointer, out))
            }
            Value::Object(named) => {
                tools.extend(skill::read_named_skills(named, &pointer, &[], out))
            }
            _ => {}
        }
    }
    tools
}
