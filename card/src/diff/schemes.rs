//! Rules for security schemes: how callers get credentials, and where they send them.

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::change::ChangeClass::{Critical, High};
use super::change_collector::{ChangeCollector, add_each_difference};
use super::display::unmarked_member_name;
use super::json_equality::{BeforeAfter, MemberType};
use super::lists_and_texts::compare_wording;
use super::object_members::{MemberRef, ObjectMembers, differing_members};
use super::{oauth_flows, unknown_members};
use crate::json_pointer::JsonPointer;

/// Kinds of schemes, by the `type` of 0.2 and 0.3 and by the wrapper of 1.0.
const SCHEME_KINDS: [(&str, &str); 5] = [
    ("apiKey", "apiKeySecurityScheme"),
    ("http", "httpAuthSecurityScheme"),
    ("oauth2", "oauth2SecurityScheme"),
    ("openIdConnect", "openIdConnectSecurityScheme"),
    ("mutualTLS", "mtlsSecurityScheme"),
];

const SCHEME_MEMBERS: &[&str] = &[
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

struct UnambiguousScheme<'a> {
    kind: &'static str,
    wrapper: Option<&'static str>,
    members: ObjectMembers<'a>,
}

/// Compares two different `securitySchemes`. `named_schemes` are the schemes that the newer card still names.
pub(super) fn compare_schemes(
    pointer: &JsonPointer<'_>,
    values: BeforeAfter<'_>,
    named_schemes: &HashSet<&str>,
    out: &mut ChangeCollector,
) {
    let empty = Map::new();
    let (Some(old), Some(new)) = (
        schemes_by_name(values.0, &empty),
        schemes_by_name(values.1, &empty),
    ) else {
        let reason = "clients may read the schemes differently";
        out.add(Critical, pointer, values, reason);
        return;
    };
    let count_before = out.count();
    for (name, values) in differing_members(old, new) {
        let shown = unmarked_member_name(name);
        let pointer = pointer.member(&shown);
        match values {
            (Some(before), Some(after)) => compare_scheme(&pointer, before, after, out),
            (None, _) => out.add(Critical, &pointer, values, "a new security scheme"),
            (_, None) if named_schemes.contains(name) || new.is_empty() => {
                let reason = "the scheme that callers authenticate with is no longer described";
                out.add(Critical, &pointer, values, reason);
            }
            (_, None) => out.add(High, &pointer, values, "a security scheme was removed"),
        }
    }
    if out.count() == count_before {
        let reason = "still without schemes, but written in a different form";
        out.add(High, pointer, values, reason);
    }
}

/// The schemes by name, none if the member is missing; `None` for a value that is not an object.
fn schemes_by_name<'a>(
    value: Option<&'a Value>,
    empty: &'a Map<String, Value>,
) -> Option<&'a Map<String, Value>> {
    match value {
        None | Some(Value::Null) => Some(empty),
        Some(value) => value.as_object(),
    }
}

fn compare_scheme(
    pointer: &JsonPointer<'_>,
    before: &Value,
    after: &Value,
    out: &mut ChangeCollector,
) {
    let values = (Some(before), Some(after));
    let (Some(old), Some(new)) = (
        parse_unambiguous_scheme(before),
        parse_unambiguous_scheme(after),
    ) else {
        let reason = "clients may read the scheme differently";
        add_each_difference(Critical, pointer, values, reason, out);
        return;
    };
    if old.kind != new.kind {
        let reason = "a different security scheme under the same name";
        out.add(Critical, pointer, values, reason);
        return;
    }
    let count_before = out.count();
    match new.wrapper {
        Some(wrapper) => {
            compare_scheme_members(&pointer.member(wrapper), &old.members, &new.members, out)
        }
        None => compare_scheme_members(pointer, &old.members, &new.members, out),
    }
    if old.wrapper != new.wrapper || out.count() == count_before {
        let reason = "the scheme is written in the form of a different version";
        out.add(High, pointer, values, reason);
    }
}

fn compare_scheme_members(
    pointer: &JsonPointer<'_>,
    old: &ObjectMembers<'_>,
    new: &ObjectMembers<'_>,
    out: &mut ChangeCollector,
) {
    for name in [
        "location",
        "name",
        "scheme",
        "openIdConnectUrl",
        "oauth2MetadataUrl",
    ] {
        let (before, after) = (non_null_member(old, name), non_null_member(new, name));
        let spelling = after.or(before).map_or(name, |member| member.0);
        let values = (before.map(|m| m.1), after.map(|m| m.1));
        let class = match values {
            (Some(Value::String(before)), Some(Value::String(after)))
                if matches!(name, "location" | "scheme") && before.eq_ignore_ascii_case(after) =>
            {
                High
            }
            _ => Critical,
        };
        let reason = "callers would send credentials to a different place, or in a different form";
        add_each_difference(class, &pointer.member(spelling), values, reason, out);
    }
    oauth_flows::compare_oauth_flows(
        &pointer.member("flows"),
        (old.get_non_null("flows"), new.get_non_null("flows")),
        out,
    );
    for (name, reason) in [
        ("bearerFormat", "the hint about the token format changed"),
        ("description", "the description of a scheme changed"),
    ] {
        if let Some((name, values)) = new.changed_member(old, name) {
            compare_wording(&pointer.member(name), values, MemberType::Text, reason, out);
        }
    }
    unknown_members::compare_unknown_members(pointer, old, new, out);
}

/// A member that is not null; `in` is the older name of `location`.
fn non_null_member<'a>(members: &ObjectMembers<'a>, name: &str) -> Option<MemberRef<'a>> {
    let find_non_null = |name| {
        members
            .find_member(name)
            .filter(|(_, value)| !value.is_null())
    };
    match name {
        "location" => find_non_null("location").or(find_non_null("in")),
        _ => find_non_null(name),
    }
}

/// The scheme in either form, if all clients read it the same way.
fn parse_unambiguous_scheme(value: &Value) -> Option<UnambiguousScheme<'_>> {
    let members = ObjectMembers::new(value.as_object()?, SCHEME_MEMBERS);
    let is_unambiguous = |fields: &ObjectMembers<'_>| {
        fields.ambiguous.is_empty()
            && !(fields.get_non_null("in").is_some() && fields.get_non_null("location").is_some())
    };
    let is_wrapper = |(_, wrapper): &&(&str, &str)| members.get_non_null(wrapper).is_some();
    let wrapper = SCHEME_KINDS.iter().find(is_wrapper);
    if !is_unambiguous(&members) || SCHEME_KINDS.iter().filter(is_wrapper).count() > 1 {
        return None;
    }
    let Some((kind, wrapper)) = wrapper else {
        let label = members.get_non_null("type")?.as_str()?;
        let (kind, _) = SCHEME_KINDS.iter().find(|(kind, _)| *kind == label)?;
        return Some(UnambiguousScheme {
            kind,
            wrapper: None,
            members,
        });
    };
    let is_only_member = value.as_object()?.len() == 1;
    let wrapped_members =
        ObjectMembers::new(members.get_non_null(wrapper)?.as_object()?, SCHEME_MEMBERS);
    let has_inner_wrapper = SCHEME_KINDS
        .iter()
        .any(|(_, wrapper)| wrapped_members.get(wrapper).is_some());
    let is_plain_wrapper = is_only_member
        && is_unambiguous(&wrapped_members)
        && !has_inner_wrapper
        && wrapped_members.get("type").is_none();
    is_plain_wrapper.then_some(UnambiguousScheme {
        kind,
        wrapper: Some(wrapper),
        members: wrapped_members,
    })
}
