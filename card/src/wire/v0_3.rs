//! Reads members in the form of 0.2.4 to 0.3: one flat address with `preferredTransport`, further ones in
//! `additionalInterfaces` (0.3 §5.5.5, §5.6), `signatures`, and a list `schemes` that no version has.

use serde_json::Value;

use super::informal::names::credential_members;
use super::informal::{CredentialDemand, is_scheme_list};
use super::names::{binding, binding_at, take_version};
use super::v1_0::is_mcp;
use crate::finding::Findings;
use crate::member::{self, Length, Members};
use crate::{Interface, SecurityRequirement, SecurityScheme, rules};

/// Takes the flat address and its additions, the preferred one first. `version` is their version.
pub(super) fn interfaces(
    members: &mut Members<'_>,
    version: Option<&str>,
    out: &mut Findings,
) -> Vec<Interface> {
    // The form was already determined; here the member is taken and an unreadable text reported.
    take_version(members, "protocolVersion", out);
    let at = members.at();
    let spot = members.spot("preferredTransport");
    let preferred = match members.text("preferredTransport", Length::Line, out) {
        Some(text) => binding(&text, &spot.below(&at), out),
        None => "JSONRPC".to_owned(),
    };
    let mut interfaces = Vec::new();
    if let Some(url) = members.text("url", Length::Address, out) {
        let preferred = binding_at(&url, preferred, false);
        interfaces.push(dated(url, preferred, version));
    }
    let Some((spot, value)) = members.take("additionalInterfaces", out) else {
        return interfaces;
    };
    let list_at = spot.below(&at);
    let Value::Array(list) = value else {
        out.mistyped(&list_at, &value, "a list of `{\"url\", \"transport\"}`");
        members.keep(&spot, value);
        return interfaces;
    };
    let mut credentials = Vec::new();
    for (index, entry) in member::cut(list, &list_at, out).into_iter().enumerate() {
        let at = list_at.index(index);
        let Value::Object(entry) = entry else {
            out.mistyped(&at, &entry, "an object with `url` and `transport`");
            continue;
        };
        credentials.extend(credential_members(&entry));
        interfaces.extend(additional(Members::new(entry, at), version, out));
    }
    if !credentials.is_empty() {
        members.keep(&spot, Value::Array(credentials));
    }
    interfaces
}

fn dated(url: String, binding: String, version: Option<&str>) -> Interface {
    Interface {
        url,
        binding,
        protocol_version: version.map(str::to_owned),
        tenant: None,
    }
}

/// Reads an entry of `additionalInterfaces`, which may name a version of its own.
fn additional(
    mut entry: Members<'_>,
    version: Option<&str>,
    out: &mut Findings,
) -> Option<Interface> {
    let at = entry.at();
    let is_mcp = is_mcp(&entry);
    let binding = ["transport", "protocolBinding", "type", "protocol"]
        .into_iter()
        .find_map(|name| {
            let text = entry.text(name, Length::Line, out)?;
            if name != "transport" {
                out.add(&rules::INTERFACE_MEMBER, &at.name(name), &text);
            }
            Some(binding(&text, &at.name(name), out))
        })
        .unwrap_or_else(|| "JSONRPC".to_owned());
    let own_version = take_version(&mut entry, "protocolVersion", out);
    let Some(url) = entry.text("url", Length::Address, out) else {
        out.add(&rules::INTERFACE_URL, &at, &binding);
        return None;
    };
    let binding = binding_at(&url, binding, is_mcp);
    let mut interface = dated(url, binding, version);
    interface.protocol_version = own_version.or(interface.protocol_version);
    Some(interface)
}

/// Takes the list `schemes` of cards that are written after a reference of 0.3.0 other than the specification: objects
/// with `scheme`, `in`, `name` and `flows`, any of which is enough. Clients of the specification do not read it.
pub(super) fn schemes(
    members: &mut Members<'_>,
    out: &mut Findings,
) -> (Vec<SecurityScheme>, Vec<SecurityRequirement>) {
    if !members.peek("schemes").is_some_and(is_scheme_list) {
        return (Vec::new(), Vec::new());
    }
    let Some((spot, value)) = members.take("schemes", out) else {
        return (Vec::new(), Vec::new());
    };
    let parent = members.at();
    out.add_value(&rules::SECURITY_ELSEWHERE, &spot.below(&parent), &value);
    CredentialDemand::by(&value).into_schemes()
}

/// Takes `signatures` exactly as received.
pub(super) fn signatures(members: &mut Members<'_>, out: &mut Findings) -> Vec<Value> {
    let Some((spot, value)) = members.take("signatures", out) else {
        return Vec::new();
    };
    let parent = members.at();
    let at = spot.below(&parent);
    match value {
        Value::Array(list) => {
            let list = member::cut(list, &at, out);
            for (index, entry) in list.iter().enumerate() {
                if !entry.is_object() {
                    out.add_value(&rules::SIGNATURES_SHAPE, &at.index(index), entry);
                }
            }
            list
        }
        Value::Object(_) => {
            out.add_value(&rules::SIGNATURES_SHAPE, &at, &value);
            vec![value]
        }
        other => {
            out.add_value(&rules::SIGNATURES_SHAPE, &at, &other);
            members.keep(&spot, other);
            Vec::new()
        }
    }
}
