//! Rules for capabilities: flags and protocol extensions.

use serde_json::{Map, Value};

use super::change::ChangeClass::{self, Critical, High, Low};
use super::changes::{Changes, each};
use super::fields::Fields;
use super::leftovers;
use super::lists::{BLANK, elements, reordered, wording};
use super::matching::matches;
use super::tree::{Kind, Sides, both_blank, canonical, is_blank, same};
use crate::pointer::Pointer;

const CAPABILITIES: &[&str] = &[
    "streaming",
    "pushNotifications",
    "extendedAgentCard",
    "stateTransitionHistory",
    "extensions",
];

const EXTENSION: &[&str] = &["uri", "required", "description", "params"];

const MAX_ACCOUNT_CHARS: usize = 256;

/// Compares the capabilities of two cards. `owner` is the URI of the owner's extension.
pub(super) fn compare(
    owner: Option<&str>,
    old: &Fields<'_>,
    new: &Fields<'_>,
    at: &Pointer<'_>,
    out: &mut Changes,
) {
    if let Some((name, sides)) = new.changed(old, "supportsAuthenticatedExtendedCard") {
        flag(&at.name(name), sides, out);
    }
    let Some((name, sides)) = new.changed(old, "capabilities") else {
        return;
    };
    let at = at.name(name);
    if both_blank(sides, Kind::Object) {
        out.add(Low, &at, sides, BLANK);
        return;
    }
    let shaped = |value: Option<&Value>| value.is_none_or(|v| v.is_object() || v.is_null());
    if !(shaped(sides.0) && shaped(sides.1)) {
        let reason = "the capabilities are written in another form";
        out.add(High, &at, sides, reason);
    }
    let empty = Map::new();
    let before = sides.0.and_then(Value::as_object).unwrap_or(&empty);
    let after = sides.1.and_then(Value::as_object).unwrap_or(&empty);
    let (old, new) = (
        Fields::of(before, CAPABILITIES),
        Fields::of(after, CAPABILITIES),
    );
    for name in CAPABILITIES {
        if let Some((spelling, sides)) = new.changed(&old, name) {
            let at = at.name(spelling);
            match *name {
                "extensions" => extensions(owner, &at, sides, out),
                _ => flag(&at, sides, out),
            }
        }
    }
    leftovers::compare(&at, &old, &new, out);
}

/// Compares a flag; a missing flag is off.
fn flag(at: &Pointer<'_>, sides: Sides<'_>, out: &mut Changes) {
    let read = |value: Option<&Value>| match value {
        None | Some(Value::Null) => Some(false),
        Some(value) => value.as_bool(),
    };
    let (class, reason) = match (read(sides.0), read(sides.1)) {
        (Some(false), Some(true)) => (High, "a capability was turned on"),
        (Some(true), Some(false)) => (Low, "a capability was turned off"),
        (Some(_), Some(_)) => (Low, "the capability is off, as before"),
        _ => (High, "the flag is not true or false"),
    };
    out.add(class, at, sides, reason);
}

fn extensions(owner: Option<&str>, at: &Pointer<'_>, sides: Sides<'_>, out: &mut Changes) {
    let (Some(old), Some(new)) = (elements(sides.0), elements(sides.1)) else {
        let reason = "clients may read the extensions differently";
        out.add(Critical, at, sides, reason);
        return;
    };
    let found = out.found();
    let keys = |list: &[Value]| list.iter().map(key).collect::<Vec<_>>();
    let matched = matches(keys(old), keys(new));
    if !matched.ambiguous && reordered(at, sides, out) {
        return;
    }
    for place in matched.added {
        if let Some(value) = new.get(place) {
            let (class, reason) = match is_proof(owner, value) {
                Some(true) => (Low, "the owner's proof was added"),
                Some(false) => (Critical, "the owner's extension contains more than a proof"),
                None => (Critical, "a new extension"),
            };
            out.add(class, &at.index(place), (None, Some(value)), reason);
        }
    }
    for (from, to) in matched.both {
        if let (Some(old), Some(new)) = (old.get(from), new.get(to))
            && !same(old, new)
        {
            changed(owner, &at.index(to), old, new, out);
        }
    }
    for place in matched.gone {
        if let Some(value) = old.get(place) {
            let (class, reason) = gone(owner, value);
            out.add(class, &at.index(place), (Some(value), None), reason);
        }
    }
    if matched.reordered || out.found() == found {
        out.add(
            Low,
            at,
            sides,
            "the same extensions in another order, or still none",
        );
    }
}

/// Key by which an extension is matched: its URI, or all of it if clients may read its URI differently.
fn key(value: &Value) -> (bool, String) {
    let uri = value.as_object().and_then(|members| {
        let fields = Fields::of(members, EXTENSION);
        let uri = fields.get("uri")?.as_str()?;
        fields.doubles.is_empty().then(|| uri.to_owned())
    });
    match uri {
        Some(uri) => (true, uri),
        None => (false, canonical(value)),
    }
}

fn gone(owner: Option<&str>, value: &Value) -> (ChangeClass, &'static str) {
    let is_owners = owner.is_some() && value.get("uri").and_then(Value::as_str) == owner;
    if is_owners {
        (Low, "the owner's proof was removed")
    } else if is_off(value.get("required")) {
        (High, "an extension was removed")
    } else {
        (
            Critical,
            "an extension that was required of callers was removed",
        )
    }
}

/// Whether an extension with the owner's URI is a proof and nothing else; `None` for another extension.
///
/// A proof names an account. Further members could carry any text, and `required` would shut callers out.
fn is_proof(owner: Option<&str>, value: &Value) -> Option<bool> {
    if owner.is_none() || value.get("uri").and_then(Value::as_str) != owner {
        return None;
    }
    let account = |value: &Value| {
        value.as_str().is_some_and(|text| {
            text.len() <= MAX_ACCOUNT_CHARS && text.bytes().all(|b| b.is_ascii_graphic())
        })
    };
    let mut members = value.as_object()?.iter();
    Some(members.all(|(name, value)| {
        match (name.as_str(), value) {
            ("uri", _) | ("required" | "description" | "params", Value::Null) => true,
            ("required", value) => *value == Value::Bool(false),
            ("description", value) => is_blank(Some(value), Kind::Text),
            ("params", Value::Object(params)) => params
                .iter()
                .all(|(name, value)| name == "account" && account(value)),
            _ => false,
        }
    }))
}

fn changed(owner: Option<&str>, at: &Pointer<'_>, old: &Value, new: &Value, out: &mut Changes) {
    if is_proof(owner, new) == Some(true) {
        out.add(Low, at, (Some(old), Some(new)), "the owner's proof changed");
        return;
    }
    let (Value::Object(before), Value::Object(after)) = (old, new) else {
        return;
    };
    let (old, new) = (Fields::of(before, EXTENSION), Fields::of(after, EXTENSION));
    if let Some((name, sides)) = new.changed(&old, "required") {
        let (class, reason) = if is_off(sides.0) && is_off(sides.1) {
            (Low, "the extension is still not required of callers")
        } else {
            (
                Critical,
                "whether the extension is required of callers changed",
            )
        };
        out.add(class, &at.name(name), sides, reason);
    }
    if let Some((name, sides)) = new.changed(&old, "description") {
        wording(
            &at.name(name),
            sides,
            Kind::Text,
            "the description of an extension changed",
            out,
        );
    }
    if let Some((name, sides)) = new.changed(&old, "params") {
        each(
            High,
            &at.name(name),
            sides,
            "the parameters of an extension changed",
            out,
        );
    }
    leftovers::compare(at, &old, &new, out);
}

fn is_off(required: Option<&Value>) -> bool {
    matches!(required, None | Some(Value::Null | Value::Bool(false)))
}
