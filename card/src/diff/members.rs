//! Compares the members of a card, each by the rules of its subject.

use serde_json::{Map, Value};

use super::address::origin;
use super::card_addresses::CardAddresses;
use super::change::ChangeClass::{Critical, High, Low};
use super::change::SignatureStates;
use super::changes::{Changes, each};
use super::fields::{Fields, folds_to};
use super::lists::{modes, wording};
use super::tree::{Kind, Sides, both_blank, is_blank};
use super::{capabilities, interfaces, leftovers, security, signatures, skills};
use crate::Family;
use crate::pointer::Pointer;
use crate::wire::members::NESTS;

const CARD: &[&str] = &[
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

/// The known members that do not lead a caller anywhere.
const HARMLESS: [&str; 6] = [
    "description",
    "version",
    "defaultInputModes",
    "defaultOutputModes",
    "documentationUrl",
    "iconUrl",
];

const MAX_VERSION_CHARS: usize = 64;

/// The member that contains a whole card, or the part with its name.
pub(super) fn nest(root: &Map<String, Value>, family: Family) -> Option<&'static str> {
    if family != Family::Nested {
        return None;
    }
    NESTS.into_iter().find(|nest| {
        root.get(*nest)
            .is_some_and(|inner| inner.get("name").is_some())
    })
}

/// One level of a card, with the facts that its rules need.
pub(super) struct Layer<'a> {
    pub(super) families: (Family, Family),
    pub(super) owner_extension: Option<&'a str>,
    pub(super) states: Option<SignatureStates>,
    /// Whether the card's members are on two levels.
    pub(super) nested: bool,
}

impl Layer<'_> {
    /// Compares the members of both cards except `skip`, which is a level of its own.
    pub(super) fn compare(
        &self,
        before: &Map<String, Value>,
        after: &Map<String, Value>,
        skip: Option<&str>,
        at: &Pointer<'_>,
        out: &mut Changes,
    ) {
        let mut old = Fields::of(before, CARD);
        let mut new = Fields::of(after, CARD);
        for card in [&mut old, &mut new] {
            card.rest.retain(|(name, _)| Some(*name) != skip);
        }
        for name in ["name", "agentName"] {
            if let Some((name, sides)) = new.changed(&old, name) {
                let reason = "the agent has another name";
                each(Critical, &at.name(name), sides, reason, out);
            }
        }
        interfaces::compare(self.families, &old, &new, at, out);
        interfaces::compare_undefined_members(&mut old, &mut new, at, out);
        security::compare_undefined_members(&mut old, &mut new, at, out);
        let reaches = |address: &str| self.nested || new.non_null(address).is_some();
        security::compare(&old, &new, &reaches, at, out);
        if let Some((name, sides)) = new.changed(&old, "provider") {
            provider(&at.name(name), sides, out);
        }
        signatures::compare(&old, &new, self.states, at, out);
        capabilities::compare(self.owner_extension, &old, &new, at, out);
        skills::compare(&old, &new, &reaches, at, out);
        described(&old, &new, at, out);
        let weight = |name: &str| {
            let harmless = HARMLESS.iter().any(|known| folds_to(name, known));
            if harmless { High } else { Critical }
        };
        leftovers::compare_weighed(at, &old, &new, weight, out);
    }
}

/// Compares the card's statements about the agent as a whole: description, modes, version and links.
fn described(old: &Fields<'_>, new: &Fields<'_>, at: &Pointer<'_>, out: &mut Changes) {
    if let Some((name, sides)) = new.changed(old, "description") {
        let reason = "the description changed";
        wording(&at.name(name), sides, Kind::Text, reason, out);
    }
    for name in ["defaultInputModes", "defaultOutputModes"] {
        if let Some((name, sides)) = new.changed(old, name) {
            modes(&at.name(name), sides, out);
        }
    }
    if let Some((name, sides)) = new.changed(old, "version") {
        version(&at.name(name), sides, out);
    }
    for name in ["documentationUrl", "iconUrl"] {
        if let Some((name, sides)) = new.changed(old, name) {
            link(old, &at.name(name), sides, out);
        }
    }
}

fn provider(at: &Pointer<'_>, sides: Sides<'_>, out: &mut Changes) {
    const PROVIDER: &[&str] = &["organization", "url", "name"];
    let reason = "the provider of the agent changed";
    if both_blank(sides, Kind::Object) {
        out.add(High, at, sides, "still empty, but written in another form");
        return;
    }
    let (Some(Value::Object(old)), Some(Value::Object(new))) = sides else {
        out.add(Critical, at, sides, reason);
        return;
    };
    let (old, new) = (Fields::of(old, PROVIDER), Fields::of(new, PROVIDER));
    for name in PROVIDER {
        if let Some((name, sides)) = new.changed(&old, name) {
            each(Critical, &at.name(name), sides, reason, out);
        }
    }
    leftovers::compare(at, &old, &new, out);
}

fn version(at: &Pointer<'_>, sides: Sides<'_>, out: &mut Changes) {
    let (class, reason) = if sides.1.is_none_or(is_version) {
        (Low, "the agent has another version")
    } else {
        (
            High,
            "the version does not look like one, so it may contain any text",
        )
    };
    out.add(class, at, sides, reason);
}

/// Whether the value has the form of a version, so that it can carry no other message.
fn is_version(value: &Value) -> bool {
    match value {
        Value::Null | Value::Number(_) => true,
        Value::String(text) => {
            let allowed = |b: u8| b.is_ascii_alphanumeric() || b".+-_:".contains(&b);
            text.len() <= MAX_VERSION_CHARS
                && text.bytes().all(allowed)
                && (text.is_empty() || text.bytes().any(|b| b.is_ascii_digit()))
        }
        _ => false,
    }
}

/// Compares a link: it may move freely on its server, or, if it is new, on the agent's own server.
fn link(old: &Fields<'_>, at: &Pointer<'_>, sides: Sides<'_>, out: &mut Changes) {
    if is_blank(sides.1, Kind::Text) {
        out.add(Low, at, sides, "a link was removed");
        return;
    }
    let place = |value: Option<&Value>| origin(value?.as_str()?);
    let stays = match (place(sides.0), place(sides.1)) {
        (Some(before), Some(after)) => after.succeeds(&before),
        (None, Some(after)) => {
            is_blank(sides.0, Kind::Text)
                && after.is_web()
                && CardAddresses::of(old).origins().contains(&after)
        }
        (_, None) => false,
    };
    if stays {
        out.add(Low, at, sides, "a link on the same host");
    } else {
        out.add(High, at, sides, "a link to another host");
    }
}
