//! Rules for security schemes: how callers get credentials, and where they send them.

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::change::ChangeClass::{Critical, High};
use super::changes::{Changes, each};
use super::fields::{Fields, Member, pairs};
use super::lists::wording;
use super::shown::shown_name;
use super::tree::{Kind, Sides};
use super::{flows, leftovers};
use crate::pointer::Pointer;

/// The kinds by the `type` of 0.2 and 0.3, and by the wrapper of 1.0.
const KINDS: [(&str, &str); 5] = [
    ("apiKey", "apiKeySecurityScheme"),
    ("http", "httpAuthSecurityScheme"),
    ("oauth2", "oauth2SecurityScheme"),
    ("openIdConnect", "openIdConnectSecurityScheme"),
    ("mutualTLS", "mtlsSecurityScheme"),
];

const SCHEME: &[&str] = &[
    "type",
    "in",
    "location",
    "name",
    "scheme",
    "openIdConnectUrl",
    "oauth2MetadataUrl",
    "flows",
    "bearerFormat",
    "description",
    "apiKeySecurityScheme",
    "httpAuthSecurityScheme",
    "oauth2SecurityScheme",
    "openIdConnectSecurityScheme",
    "mtlsSecurityScheme",
];

struct Plain<'a> {
    kind: &'static str,
    wrapper: Option<&'static str>,
    fields: Fields<'a>,
}

/// Compares two different `securitySchemes`. `named` are the schemes that the newer card still names.
pub(super) fn compare(
    at: &Pointer<'_>,
    sides: Sides<'_>,
    named: &HashSet<&str>,
    out: &mut Changes,
) {
    let empty = Map::new();
    let (Some(old), Some(new)) = (by_name(sides.0, &empty), by_name(sides.1, &empty)) else {
        let reason = "clients may read the schemes differently";
        out.add(Critical, at, sides, reason);
        return;
    };
    let found = out.found();
    for (name, sides) in pairs(old, new) {
        let shown = shown_name(name);
        let at = at.name(&shown);
        match sides {
            (Some(before), Some(after)) => scheme(&at, before, after, out),
            (None, _) => out.add(Critical, &at, sides, "a new way to authenticate"),
            (_, None) if named.contains(name) || new.is_empty() => {
                let reason = "the scheme that callers authenticate with is no longer described";
                out.add(Critical, &at, sides, reason);
            }
            (_, None) => out.add(High, &at, sides, "a way to authenticate was removed"),
        }
    }
    if out.found() == found {
        let reason = "still without schemes, but written in another form";
        out.add(High, at, sides, reason);
    }
}

/// The schemes by name, none where the member is missing; `None` for a value that is not an object.
fn by_name<'a>(
    value: Option<&'a Value>,
    empty: &'a Map<String, Value>,
) -> Option<&'a Map<String, Value>> {
    match value {
        None | Some(Value::Null) => Some(empty),
        Some(value) => value.as_object(),
    }
}

fn scheme(at: &Pointer<'_>, before: &Value, after: &Value, out: &mut Changes) {
    let sides = (Some(before), Some(after));
    let (Some(old), Some(new)) = (plain(before), plain(after)) else {
        let reason = "clients may read the scheme differently";
        each(Critical, at, sides, reason, out);
        return;
    };
    if old.kind != new.kind {
        let reason = "another way to authenticate under the same name";
        out.add(Critical, at, sides, reason);
        return;
    }
    let found = out.found();
    match new.wrapper {
        Some(wrapper) => members(&at.name(wrapper), &old.fields, &new.fields, out),
        None => members(at, &old.fields, &new.fields, out),
    }
    if old.wrapper != new.wrapper || out.found() == found {
        let reason = "the scheme is written in the form of another version";
        out.add(High, at, sides, reason);
    }
}

fn members(at: &Pointer<'_>, old: &Fields<'_>, new: &Fields<'_>, out: &mut Changes) {
    for name in [
        "location",
        "name",
        "scheme",
        "openIdConnectUrl",
        "oauth2MetadataUrl",
    ] {
        let (before, after) = (non_null(old, name), non_null(new, name));
        let spelling = after.or(before).map_or(name, |member| member.0);
        let sides = (before.map(|m| m.1), after.map(|m| m.1));
        let class = match sides {
            (Some(Value::String(before)), Some(Value::String(after)))
                if matches!(name, "location" | "scheme") && before.eq_ignore_ascii_case(after) =>
            {
                High
            }
            _ => Critical,
        };
        let reason = "callers would send credentials to another place, or in another form";
        each(class, &at.name(spelling), sides, reason, out);
    }
    flows::compare(
        &at.name("flows"),
        (old.non_null("flows"), new.non_null("flows")),
        out,
    );
    for (name, reason) in [
        ("bearerFormat", "the hint at the form of tokens changed"),
        ("description", "the description of a scheme changed"),
    ] {
        if let Some((name, sides)) = new.changed(old, name) {
            wording(&at.name(name), sides, Kind::Text, reason, out);
        }
    }
    leftovers::compare(at, old, new, out);
}

/// A member that is not null; `in` is the older name of `location`.
fn non_null<'a>(fields: &Fields<'a>, name: &str) -> Option<Member<'a>> {
    let present = |name| fields.member(name).filter(|(_, value)| !value.is_null());
    match name {
        "location" => present("location").or(present("in")),
        _ => present(name),
    }
}

/// The scheme in either form, if all clients read it alike.
fn plain(value: &Value) -> Option<Plain<'_>> {
    let fields = Fields::of(value.as_object()?, SCHEME);
    let is_plain = |fields: &Fields<'_>| {
        fields.doubles.is_empty()
            && !(fields.non_null("in").is_some() && fields.non_null("location").is_some())
    };
    let wraps = |(_, wrapper): &&(&str, &str)| fields.non_null(wrapper).is_some();
    let wrapper = KINDS.iter().find(wraps);
    if !is_plain(&fields) || KINDS.iter().filter(wraps).count() > 1 {
        return None;
    }
    let Some((kind, wrapper)) = wrapper else {
        let label = fields.non_null("type")?.as_str()?;
        let (kind, _) = KINDS.iter().find(|(kind, _)| *kind == label)?;
        return Some(Plain {
            kind,
            wrapper: None,
            fields,
        });
    };
    let alone = value.as_object()?.len() == 1;
    let inner = Fields::of(fields.non_null(wrapper)?.as_object()?, SCHEME);
    let nested = KINDS
        .iter()
        .any(|(_, wrapper)| inner.get(wrapper).is_some());
    let plain = alone && is_plain(&inner) && !nested && inner.get("type").is_none();
    plain.then_some(Plain {
        kind,
        wrapper: Some(wrapper),
        fields: inner,
    })
}
