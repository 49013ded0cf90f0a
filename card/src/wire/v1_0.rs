//! Reads members in the form of 1.0: `supportedInterfaces`, wrapped security schemes, requirements with `schemes`
//! (1.0 §4.4.6, §4.5).

use serde_json::{Map, Value};

use super::informal::names::credential_members;
use super::names::{binding, binding_at, take_flows, take_location, take_version};
use crate::finding::Findings;
use crate::member::{self, Length, Members};
use crate::pointer::Pointer;
use crate::{Interface, SchemeKind, rules};

const WANTED: &str = "a list of interfaces";

const ENTRY: &str = "an object with `url`, `protocolBinding` and `protocolVersion`";

/// Takes `supportedInterfaces`, in the card's order, which is the order of preference.
pub(super) fn interfaces(
    members: &mut Members<'_>,
    undated: Option<&str>,
    out: &mut Findings,
) -> Vec<Interface> {
    let Some((spot, value)) = members.take("supportedInterfaces", out) else {
        return Vec::new();
    };
    let parent = members.at();
    let at = spot.below(&parent);
    let list = match value {
        Value::Array(list) => list,
        Value::Object(_) => {
            out.coerced(&at, &value, WANTED);
            vec![value]
        }
        other => {
            out.mistyped(&at, &other, WANTED);
            members.keep(&spot, other);
            return Vec::new();
        }
    };
    let mut interfaces = Vec::new();
    let mut credentials = Vec::new();
    for (index, entry) in member::cut(list, &at, out).into_iter().enumerate() {
        let at = at.index(index);
        match entry {
            Value::Object(entry) => {
                credentials.extend(credential_members(&entry));
                interfaces.extend(interface(entry, at, undated, out));
            }
            Value::String(ref url) if url.contains("://") => {
                out.coerced(&at, &entry, ENTRY);
                let url = member::bounded(url.clone(), &at, Length::Address, out);
                interfaces.extend(url.map(|url| Interface {
                    url,
                    binding: "JSONRPC".to_owned(),
                    protocol_version: undated.map(str::to_owned),
                    tenant: None,
                }));
            }
            other => out.mistyped(&at, &other, ENTRY),
        }
    }
    if !credentials.is_empty() {
        members.keep(&spot, Value::Array(credentials));
    }
    interfaces
}

/// Reads one entry; `None` if it has no address.
fn interface(
    entry: Map<String, Value>,
    at: Pointer<'_>,
    undated: Option<&str>,
    out: &mut Findings,
) -> Option<Interface> {
    let mut entry = Members::new(entry, at);
    let is_mcp = is_mcp(&entry);
    let spot = entry.spot("protocolBinding");
    let named = entry.text("protocolBinding", Length::Line, out);
    let binding = match named {
        Some(text) => binding(&text, &spot.below(&at), out),
        None => other_binding(&mut entry, out),
    };
    if let Some(text) = entry.peek("protocolVersion").and_then(Value::as_str)
        && text.matches('.').count() > 1
    {
        let spot = entry.spot("protocolVersion");
        out.add(&rules::VERSION_PATCH, &spot.below(&at), text);
    }
    let own_version = take_version(&mut entry, "protocolVersion", out);
    let tenant = entry.text("tenant", Length::Line, out);
    let Some(url) = entry.text("url", Length::Address, out) else {
        out.add(&rules::INTERFACE_URL, &at, &binding);
        return None;
    };
    Some(Interface {
        binding: binding_at(&url, binding, is_mcp),
        url,
        protocol_version: own_version.or_else(|| undated.map(str::to_owned)),
        tenant,
    })
}

pub(super) fn is_mcp(entry: &Members<'_>) -> bool {
    ["type", "protocol"].iter().any(|name| {
        let text = entry.peek(name).and_then(Value::as_str);
        text.is_some_and(|text| text.trim().eq_ignore_ascii_case("mcp"))
    })
}

/// The binding from other members that cards use instead of `protocolBinding`.
fn other_binding(entry: &mut Members<'_>, out: &mut Findings) -> String {
    let at = entry.at();
    for name in ["transport", "type", "protocol"] {
        if let Some(text) = entry.text(name, Length::Line, out) {
            out.add(&rules::INTERFACE_MEMBER, &at.name(name), &text);
            return binding(&text, &at.name(name), out);
        }
    }
    "JSONRPC".to_owned()
}

/// The wrappers of 1.0 §4.5.1 and the kinds in them.
pub(crate) const WRAPPERS: [&str; 5] = [
    "apiKeySecurityScheme",
    "httpAuthSecurityScheme",
    "oauth2SecurityScheme",
    "openIdConnectSecurityScheme",
    "mtlsSecurityScheme",
];

/// Reads a scheme that is wrapped in a member naming its kind; `None` if it has another form.
pub(super) fn scheme(
    members: &mut Members<'_>,
    out: &mut Findings,
) -> Option<(SchemeKind, Option<String>)> {
    let wrapper = WRAPPERS
        .into_iter()
        .find(|name| members.peek(name).is_some())?;
    let (spot, value) = members.take(wrapper, out)?;
    let parent = members.at();
    let at = spot.below(&parent);
    let Value::Object(inner) = value else {
        out.mistyped(&at, &value, "an object that describes the scheme");
        return None;
    };
    let mut inner = Members::new(inner, at);
    let description = inner.text("description", Length::Prose, out);
    let kind = match wrapper {
        "apiKeySecurityScheme" => SchemeKind::ApiKey {
            location: take_location(&mut inner, out),
            parameter: inner.text("name", Length::Line, out).unwrap_or_default(),
        },
        "httpAuthSecurityScheme" => SchemeKind::Http {
            scheme: inner
                .text("scheme", Length::Line, out)
                .unwrap_or_default()
                .to_lowercase(),
            bearer_format: inner.text("bearerFormat", Length::Line, out),
        },
        "oauth2SecurityScheme" => SchemeKind::Oauth2 {
            flows: take_flows(&mut inner, out),
            metadata_url: inner.text("oauth2MetadataUrl", Length::Address, out),
        },
        "openIdConnectSecurityScheme" => SchemeKind::OpenIdConnect {
            url: inner
                .text("openIdConnectUrl", Length::Address, out)
                .unwrap_or_default(),
        },
        _ => SchemeKind::MutualTls,
    };
    Some((kind, description))
}

/// The scopes of one scheme in a requirement: `{"list": […]}`, or `{}` where `ProtoJSON` dropped the list.
pub(super) fn scopes(value: Value, at: &Pointer<'_>, out: &mut Findings) -> Vec<String> {
    let Value::Object(scopes) = value else {
        return Vec::new();
    };
    Members::new(scopes, *at).texts("list", Length::Line, out)
}
