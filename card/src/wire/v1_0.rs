//! Reader of members in the form of 1.0: `supportedInterfaces`, wrapped security schemes, requirements with `schemes`
//! (1.0 §4.4.6, §4.5).

use serde_json::{Map, Value};

use super::informal_credentials::credential_names::collect_credential_members;
use super::value_spellings::{
    normalize_binding, resolve_streamable_http_binding, take_api_key_location, take_oauth_flows,
    take_protocol_version,
};
use crate::finding::FindingCollector;
use crate::json_pointer::JsonPointer;
use crate::member_reader::{self, LengthLimit, MemberReader};
use crate::{Interface, SchemeKind, rules};

const EXPECTED_INTERFACES: &str = "a list of interfaces";

const EXPECTED_INTERFACE: &str = "an object with `url`, `protocolBinding` and `protocolVersion`";

/// Takes `supportedInterfaces`, in the card's order, which is the order of preference.
pub(super) fn take_supported_interfaces(
    members: &mut MemberReader<'_>,
    default_version: Option<&str>,
    out: &mut FindingCollector,
) -> Vec<Interface> {
    let Some((position, value)) = members.take_member("supportedInterfaces", out) else {
        return Vec::new();
    };
    let parent = members.pointer();
    let pointer = position.pointer_in(&parent);
    let list = match value {
        Value::Array(list) => list,
        Value::Object(_) => {
            out.add_coerced_type(&pointer, &value, EXPECTED_INTERFACES);
            vec![value]
        }
        other => {
            out.add_wrong_type(&pointer, &other, EXPECTED_INTERFACES);
            members.retain_unreadable(&position, other);
            return Vec::new();
        }
    };
    let mut interfaces = Vec::new();
    let mut credentials = Vec::new();
    for (index, entry) in member_reader::truncate_list(list, &pointer, out)
        .into_iter()
        .enumerate()
    {
        let pointer = pointer.element(index);
        match entry {
            Value::Object(entry) => {
                credentials.extend(collect_credential_members(&entry));
                interfaces.extend(read_interface(entry, pointer, default_version, out));
            }
            Value::String(ref url) if url.contains("://") => {
                out.add_coerced_type(&pointer, &entry, EXPECTED_INTERFACE);
                let url = member_reader::trim_and_truncate(
                    url.clone(),
                    &pointer,
                    LengthLimit::Address,
                    out,
                );
                interfaces.extend(url.map(|url| Interface {
                    url,
                    binding: "JSONRPC".to_owned(),
                    protocol_version: default_version.map(str::to_owned),
                    tenant: None,
                }));
            }
            other => out.add_wrong_type(&pointer, &other, EXPECTED_INTERFACE),
        }
    }
    if !credentials.is_empty() {
        members.retain_unreadable(&position, Value::Array(credentials));
    }
    interfaces
}

/// Reads one entry; `None` if it has no address.
fn read_interface(
    entry: Map<String, Value>,
    pointer: JsonPointer<'_>,
    default_version: Option<&str>,
    out: &mut FindingCollector,
) -> Option<Interface> {
    let mut entry = MemberReader::new(entry, pointer);
    let is_mcp = is_mcp_entry(&entry);
    let position = entry.position_of("protocolBinding");
    let declared_binding = entry.take_text("protocolBinding", LengthLimit::Line, out);
    let binding = match declared_binding {
        Some(text) => normalize_binding(&text, &position.pointer_in(&pointer), out),
        None => take_other_binding(&mut entry, out),
    };
    if let Some(text) = entry.peek_member("protocolVersion").and_then(Value::as_str)
        && text.matches('.').count() > 1
    {
        let position = entry.position_of("protocolVersion");
        out.add(&rules::VERSION_PATCH, &position.pointer_in(&pointer), text);
    }
    let own_version = take_protocol_version(&mut entry, "protocolVersion", out);
    let tenant = entry.take_text("tenant", LengthLimit::Line, out);
    let Some(url) = entry.take_text("url", LengthLimit::Address, out) else {
        out.add(&rules::INTERFACE_URL, &pointer, &binding);
        return None;
    };
    Some(Interface {
        binding: resolve_streamable_http_binding(&url, binding, is_mcp),
        url,
        protocol_version: own_version.or_else(|| default_version.map(str::to_owned)),
        tenant,
    })
}

pub(super) fn is_mcp_entry(entry: &MemberReader<'_>) -> bool {
    ["type", "protocol"].iter().any(|name| {
        let text = entry.peek_member(name).and_then(Value::as_str);
        text.is_some_and(|text| text.trim().eq_ignore_ascii_case("mcp"))
    })
}

/// The binding from other members that cards use instead of `protocolBinding`.
fn take_other_binding(entry: &mut MemberReader<'_>, out: &mut FindingCollector) -> String {
    let pointer = entry.pointer();
    for name in ["transport", "type", "protocol"] {
        if let Some(text) = entry.take_text(name, LengthLimit::Line, out) {
            out.add(&rules::INTERFACE_MEMBER, &pointer.member(name), &text);
            return normalize_binding(&text, &pointer.member(name), out);
        }
    }
    "JSONRPC".to_owned()
}

/// Wrappers of 1.0 §4.5.1, one for each kind of scheme.
pub(crate) const SCHEME_WRAPPERS: [&str; 5] = [
    "apiKeySecurityScheme",
    "httpAuthSecurityScheme",
    "oauth2SecurityScheme",
    "openIdConnectSecurityScheme",
    "mtlsSecurityScheme",
];

/// Reads a scheme wrapped in a member that names its kind; `None` if it has another form.
pub(super) fn take_wrapped_scheme(
    members: &mut MemberReader<'_>,
    out: &mut FindingCollector,
) -> Option<(SchemeKind, Option<String>)> {
    let wrapper = SCHEME_WRAPPERS
        .into_iter()
        .find(|name| members.peek_member(name).is_some())?;
    let (position, value) = members.take_member(wrapper, out)?;
    let parent = members.pointer();
    let pointer = position.pointer_in(&parent);
    let Value::Object(inner) = value else {
        out.add_wrong_type(&pointer, &value, "an object that describes the scheme");
        return None;
    };
    let mut inner = MemberReader::new(inner, pointer);
    let description = inner.take_text("description", LengthLimit::Prose, out);
    let kind = match wrapper {
        "apiKeySecurityScheme" => SchemeKind::ApiKey {
            location: take_api_key_location(&mut inner, out),
            parameter: inner
                .take_text("name", LengthLimit::Line, out)
                .unwrap_or_default(),
        },
        "httpAuthSecurityScheme" => SchemeKind::Http {
            scheme: inner
                .take_text("scheme", LengthLimit::Line, out)
                .unwrap_or_default()
                .to_lowercase(),
            bearer_format: inner.take_text("bearerFormat", LengthLimit::Line, out),
        },
        "oauth2SecurityScheme" => SchemeKind::Oauth2 {
            flows: take_oauth_flows(&mut inner, out),
            metadata_url: inner.take_text("oauth2MetadataUrl", LengthLimit::Address, out),
        },
        "openIdConnectSecurityScheme" => SchemeKind::OpenIdConnect {
            url: inner
                .take_text("openIdConnectUrl", LengthLimit::Address, out)
                .unwrap_or_default(),
        },
        _ => SchemeKind::MutualTls,
    };
    Some((kind, description))
}

/// The scopes of one scheme in a requirement: `{"list": […]}`, or `{}` if `ProtoJSON` dropped the list.
pub(super) fn read_scopes(
    value: Value,
    pointer: &JsonPointer<'_>,
    out: &mut FindingCollector,
) -> Vec<String> {
    let Value::Object(scopes) = value else {
        return Vec::new();
    };
    MemberReader::new(scopes, *pointer).take_texts("list", LengthLimit::Line, out)
}
