//! Reader of members in the form of 0.2.4 to 0.3: one flat address with `preferredTransport`, further ones in
//! `additionalInterfaces` (0.3 §5.5.5, §5.6), `signatures`, and a list `schemes` that no version has.

use serde_json::Value;

use super::informal_credentials::credential_names::collect_credential_members;
use super::informal_credentials::{CredentialRequirement, is_scheme_list};
use super::v1_0::is_mcp_entry;
use super::value_spellings::{
    normalize_binding, resolve_streamable_http_binding, take_protocol_version,
};
use crate::finding::FindingCollector;
use crate::member_reader::{self, LengthLimit, MemberReader};
use crate::{Interface, SecurityRequirement, SecurityScheme, rules};

/// Takes the flat address and the additional ones, the preferred one first. `version` applies to all of them.
pub(super) fn take_flat_interfaces(
    members: &mut MemberReader<'_>,
    version: Option<&str>,
    out: &mut FindingCollector,
) -> Vec<Interface> {
    // The form was already determined; this takes the member and reports an unreadable text.
    take_protocol_version(members, "protocolVersion", out);
    let pointer = members.pointer();
    let position = members.position_of("preferredTransport");
    let preferred_binding = match members.take_text("preferredTransport", LengthLimit::Line, out) {
        Some(text) => normalize_binding(&text, &position.pointer_in(&pointer), out),
        None => "JSONRPC".to_owned(),
    };
    let mut interfaces = Vec::new();
    if let Some(url) = members.take_text("url", LengthLimit::Address, out) {
        let preferred_binding = resolve_streamable_http_binding(&url, preferred_binding, false);
        interfaces.push(new_interface(url, preferred_binding, version));
    }
    let Some((position, value)) = members.take_member("additionalInterfaces", out) else {
        return interfaces;
    };
    let list_pointer = position.pointer_in(&pointer);
    let Value::Array(list) = value else {
        out.add_wrong_type(
            &list_pointer,
            &value,
            "a list of `{\"url\", \"transport\"}`",
        );
        members.retain_unreadable(&position, value);
        return interfaces;
    };
    let mut credentials = Vec::new();
    for (index, entry) in member_reader::truncate_list(list, &list_pointer, out)
        .into_iter()
        .enumerate()
    {
        let pointer = list_pointer.element(index);
        let Value::Object(entry) = entry else {
            out.add_wrong_type(&pointer, &entry, "an object with `url` and `transport`");
            continue;
        };
        credentials.extend(collect_credential_members(&entry));
        interfaces.extend(read_additional_interface(
            MemberReader::new(entry, pointer),
            version,
            out,
        ));
    }
    if !credentials.is_empty() {
        members.retain_unreadable(&position, Value::Array(credentials));
    }
    interfaces
}

fn new_interface(url: String, binding: String, version: Option<&str>) -> Interface {
    Interface {
        url,
        binding,
        protocol_version: version.map(str::to_owned),
        tenant: None,
    }
}

/// Reads an entry of `additionalInterfaces`, which may name a version of its own.
fn read_additional_interface(
    mut entry: MemberReader<'_>,
    version: Option<&str>,
    out: &mut FindingCollector,
) -> Option<Interface> {
    let pointer = entry.pointer();
    let is_mcp = is_mcp_entry(&entry);
    let binding = ["transport", "protocolBinding", "type", "protocol"]
        .into_iter()
        .find_map(|name| {
            let text = entry.take_text(name, LengthLimit::Line, out)?;
            if name != "transport" {
                out.add(&rules::INTERFACE_MEMBER, &pointer.member(name), &text);
            }
            Some(normalize_binding(&text, &pointer.member(name), out))
        })
        .unwrap_or_else(|| "JSONRPC".to_owned());
    let own_version = take_protocol_version(&mut entry, "protocolVersion", out);
    let Some(url) = entry.take_text("url", LengthLimit::Address, out) else {
        out.add(&rules::INTERFACE_URL, &pointer, &binding);
        return None;
    };
    let binding = resolve_streamable_http_binding(&url, binding, is_mcp);
    let mut interface = new_interface(url, binding, version);
    interface.protocol_version = own_version.or(interface.protocol_version);
    Some(interface)
}

/// Takes the list `schemes` of cards written after a reference of 0.3.0 other than the specification: objects with
/// `scheme`, `in`, `name` and `flows`, any of which suffices. Clients of the specification do not read it.
pub(super) fn take_nonstandard_schemes(
    members: &mut MemberReader<'_>,
    out: &mut FindingCollector,
) -> (Vec<SecurityScheme>, Vec<SecurityRequirement>) {
    if !members.peek_member("schemes").is_some_and(is_scheme_list) {
        return (Vec::new(), Vec::new());
    }
    let Some((position, value)) = members.take_member("schemes", out) else {
        return (Vec::new(), Vec::new());
    };
    let parent = members.pointer();
    out.add_with_value(
        &rules::SECURITY_ELSEWHERE,
        &position.pointer_in(&parent),
        &value,
    );
    CredentialRequirement::from_value(&value).into_schemes()
}

/// Takes `signatures` exactly as received.
pub(super) fn take_signatures(
    members: &mut MemberReader<'_>,
    out: &mut FindingCollector,
) -> Vec<Value> {
    let Some((position, value)) = members.take_member("signatures", out) else {
        return Vec::new();
    };
    let parent = members.pointer();
    let pointer = position.pointer_in(&parent);
    match value {
        Value::Array(list) => {
            let list = member_reader::truncate_list(list, &pointer, out);
            for (index, entry) in list.iter().enumerate() {
                if !entry.is_object() {
                    out.add_with_value(&rules::SIGNATURES_SHAPE, &pointer.element(index), entry);
                }
            }
            list
        }
        Value::Object(_) => {
            out.add_with_value(&rules::SIGNATURES_SHAPE, &pointer, &value);
            vec![value]
        }
        other => {
            out.add_with_value(&rules::SIGNATURES_SHAPE, &pointer, &other);
            members.retain_unreadable(&position, other);
            Vec::new()
        }
    }
}
