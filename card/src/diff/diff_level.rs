//! Compares the members of a card, each by the rules of its subject.

use serde_json::{Map, Value};

use super::card_addresses::AgentAddresses;
use super::change::ChangeClass::{Critical, High, Low};
use super::change::SignatureStateChange;
use super::change_collector::{ChangeCollector, add_each_difference};
use super::json_equality::{BeforeAfter, MemberType, both_empty_or_null, is_empty_or_null};
use super::lists_and_texts::{compare_modes, compare_wording};
use super::object_members::{ObjectMembers, is_loose_spelling};
use super::url_origin::url_origin;
use super::{capabilities, interfaces, security, signatures, skills, unknown_members};
use crate::CardFamily;
use crate::json_pointer::JsonPointer;
use crate::wire::member_names::NESTING_MEMBERS;

const CARD_MEMBERS: &[&str] = &[
    "name",
    "agentName",
    "description",
    "version",
    "provider",
    "url",
    "preferredTransport",
    "additionalInterfaces",
    "supportedInterfaces",
    "protocolVersion",
    "capabilities",
    "supportsAuthenticatedExtendedCard",
    "securitySchemes",
    "security",
    "securityRequirements",
    "authentication",
    "defaultInputModes",
    "defaultOutputModes",
    "skills",
    "documentationUrl",
    "iconUrl",
    "signatures",
];

/// Known members that lead a caller nowhere.
const HARMLESS_MEMBERS: [&str; 6] = [
    "description",
    "version",
    "defaultInputModes",
    "defaultOutputModes",
    "documentationUrl",
    "iconUrl",
];

const MAX_VERSION_CHARS: usize = 64;

/// The member that contains a whole card, or the part of a card with its name.
pub(super) fn nesting_member(
    root: &Map<String, Value>,
    family: CardFamily,
) -> Option<&'static str> {
    if family != CardFamily::Nested {
        return None;
    }
    NESTING_MEMBERS.into_iter().find(|nest| {
        root.get(*nest)
            .is_some_and(|inner| inner.get("name").is_some())
    })
}

/// One level of a card, with the facts that its rules need.
pub(super) struct CardLevelComparer<'a> {
    pub(super) families: (CardFamily, CardFamily),
    pub(super) owner_extension: Option<&'a str>,
    pub(super) signature_states: Option<SignatureStateChange>,
    /// Whether the card's members are on two levels.
    pub(super) is_nested: bool,
}

impl CardLevelComparer<'_> {
    /// Compares the members of both cards except `skipped_member`, which is a level of its own.
    pub(super) fn compare_members(
        &self,
        before: &Map<String, Value>,
        after: &Map<String, Value>,
        skipped_member: Option<&str>,
        pointer: &JsonPointer<'_>,
        out: &mut ChangeCollector,
    ) {
        let mut old = ObjectMembers::new(before, CARD_MEMBERS);
        let mut new = ObjectMembers::new(after, CARD_MEMBERS);
        for card in [&mut old, &mut new] {
            card.unknown
                .retain(|(name, _)| Some(*name) != skipped_member);
        }
        for name in ["name", "agentName"] {
            if let Some((name, values)) = new.changed_member(&old, name) {
                let reason = "the name of the agent changed";
                add_each_difference(Critical, &pointer.member(name), values, reason, out);
            }
        }
        interfaces::compare_interfaces(self.families, &old, &new, pointer, out);
        interfaces::compare_nonstandard_addresses(&mut old, &mut new, pointer, out);
        security::compare_nonstandard_credentials(&mut old, &mut new, pointer, out);
        let is_callable = |address: &str| self.is_nested || new.get_non_null(address).is_some();
        security::compare_security(&old, &new, &is_callable, pointer, out);
        if let Some((name, values)) = new.changed_member(&old, "provider") {
            compare_provider(&pointer.member(name), values, out);
        }
        signatures::compare_signatures(&old, &new, self.signature_states, pointer, out);
        capabilities::compare_capabilities(self.owner_extension, &old, &new, pointer, out);
        skills::compare_skills(&old, &new, &is_callable, pointer, out);
        compare_descriptive_members(&old, &new, pointer, out);
        let ambiguous_class = |name: &str| {
            let is_harmless = HARMLESS_MEMBERS
                .iter()
                .any(|known| is_loose_spelling(name, known));
            if is_harmless { High } else { Critical }
        };
        unknown_members::compare_classified_unknown_members(
            pointer,
            &old,
            &new,
            ambiguous_class,
            out,
        );
    }
}

/// Compares the card's statements about the agent as a whole: description, modes, version and links.
fn compare_descriptive_members(
    old: &ObjectMembers<'_>,
    new: &ObjectMembers<'_>,
    pointer: &JsonPointer<'_>,
    out: &mut ChangeCollector,
) {
    if let Some((name, values)) = new.changed_member(old, "description") {
        let reason = "the description changed";
        compare_wording(&pointer.member(name), values, MemberType::Text, reason, out);
    }
    for name in ["defaultInputModes", "defaultOutputModes"] {
        if let Some((name, values)) = new.changed_member(old, name) {
            compare_modes(&pointer.member(name), values, out);
        }
    }
    if let Some((name, values)) = new.changed_member(old, "version") {
        compare_agent_version(&pointer.member(name), values, out);
    }
    for name in ["documentationUrl", "iconUrl"] {
        if let Some((name, values)) = new.changed_member(old, name) {
            compare_link(old, &pointer.member(name), values, out);
        }
    }
}

fn compare_provider(pointer: &JsonPointer<'_>, values: BeforeAfter<'_>, out: &mut ChangeCollector) {
    const PROVIDER_MEMBERS: &[&str] = &["organization", "url", "name"];
    let reason = "the provider of the agent changed";
    if both_empty_or_null(values, MemberType::Object) {
        out.add(
            High,
            pointer,
            values,
            "still empty, but written in a different form",
        );
        return;
    }
    let (Some(Value::Object(old)), Some(Value::Object(new))) = values else {
        out.add(Critical, pointer, values, reason);
        return;
    };
    let (old, new) = (
        ObjectMembers::new(old, PROVIDER_MEMBERS),
        ObjectMembers::new(new, PROVIDER_MEMBERS),
    );
    for name in PROVIDER_MEMBERS {
        if let Some((name, values)) = new.changed_member(&old, name) {
            add_each_difference(Critical, &pointer.member(name), values, reason, out);
        }
    }
    unknown_members::compare_unknown_members(pointer, &old, &new, out);
}

fn compare_agent_version(
    pointer: &JsonPointer<'_>,
    values: BeforeAfter<'_>,
    out: &mut ChangeCollector,
) {
    let (class, reason) = if values.1.is_none_or(is_version_like) {
        (Low, "the version of the agent changed")
    } else {
        (
            High,
            "the version does not have the form of a version, so it may contain any text",
        )
    };
    out.add(class, pointer, values, reason);
}

/// Whether the value has the form of a version, so that it cannot carry a message.
fn is_version_like(value: &Value) -> bool {
    match value {
        Value::Null | Value::Number(_) => true,
        Value::String(text) => {
            let is_allowed = |b: u8| b.is_ascii_alphanumeric() || b".+-_:".contains(&b);
            text.len() <= MAX_VERSION_CHARS
                && text.bytes().all(is_allowed)
                && (text.is_empty() || text.bytes().any(|b| b.is_ascii_digit()))
        }
        _ => false,
    }
}

/// Compares a link. A changed link may move freely on its server, a new one on the agent's own server.
fn compare_link(
    old: &ObjectMembers<'_>,
    pointer: &JsonPointer<'_>,
    values: BeforeAfter<'_>,
    out: &mut ChangeCollector,
) {
    if is_empty_or_null(values.1, MemberType::Text) {
        out.add(Low, pointer, values, "a link was removed");
        return;
    }
    let link_origin = |value: Option<&Value>| url_origin(value?.as_str()?);
    let is_safe = match (link_origin(values.0), link_origin(values.1)) {
        (Some(before), Some(after)) => after.is_safe_successor(&before),
        (None, Some(after)) => {
            is_empty_or_null(values.0, MemberType::Text)
                && after.is_http()
                && AgentAddresses::from_card(old).origins().contains(&after)
        }
        (_, None) => false,
    };
    if is_safe {
        out.add(Low, pointer, values, "a link on the same host");
    } else {
        out.add(High, pointer, values, "a link to another host");
    }
}
