//! Reader of values with several spellings: protocol versions, bindings, modes.

use serde_json::Value;

use crate::finding::FindingCollector;
use crate::json_pointer::JsonPointer;
use crate::member_reader::{self, LengthLimit, MemberReader};
use crate::rules;

/// Parses the `Major.Minor` of a version such as `0.3.0`, `v1.0` or `1`; `None` for a text that is not a version.
pub(crate) fn parse_protocol_version(text: &str) -> Option<String> {
    let text = text.trim();
    let text = text.strip_prefix(['v', 'V']).unwrap_or(text);
    let mut parts = text.split('.');
    let version_number = |part: &str| -> Option<u8> {
        let is_short_number =
            (1..=2).contains(&part.len()) && part.bytes().all(|b| b.is_ascii_digit());
        if is_short_number {
            part.parse().ok()
        } else {
            None
        }
    };
    let major = version_number(parts.next()?)?;
    let minor = match parts.next() {
        Some(part) => {
            let digits = part
                .find(|c: char| !c.is_ascii_digit())
                .unwrap_or(part.len());
            version_number(&part[..digits])?
        }
        None => 0,
    };
    Some(format!("{major}.{minor}"))
}

pub(super) fn take_protocol_version(
    members: &mut MemberReader<'_>,
    name: &'static str,
    out: &mut FindingCollector,
) -> Option<String> {
    let (position, value) = members.take_member(name, out)?;
    let parent = members.pointer();
    let pointer = position.pointer_in(&parent);
    let text = member_reader::read_text(value, &pointer, LengthLimit::Line, out).ok()??;
    let version = parse_protocol_version(&text);
    if version.is_none() {
        out.add(&rules::VERSION_UNREADABLE, &pointer, &text);
    }
    version
}

/// Normalizes the binding in a text: a core binding in its exact spelling, or the text itself.
pub(super) fn normalize_binding(
    text: &str,
    pointer: &JsonPointer<'_>,
    out: &mut FindingCollector,
) -> String {
    let core_binding = match member_reader::fold_name(text).as_str() {
        "jsonrpc" | "jsonrpc2" | "jsonrpc20" | "jsonrpchttp" | "jsonrpchttps" => "JSONRPC",
        "grpc" => "GRPC",
        "httpjson" | "rest" | "restful" | "httprest" | "resthttp" | "restjson" => "HTTP+JSON",
        _ => {
            if !text.contains("://") && !text.starts_with("urn:") {
                out.add(&rules::BINDING_UNKNOWN, pointer, text);
            }
            return text.to_owned();
        }
    };
    if text != core_binding {
        out.add(&rules::BINDING_SPELLING, pointer, text);
    }
    core_binding.to_owned()
}

/// The binding of an interface at that address. "Streamable HTTP" means JSON-RPC over HTTP in A2A, unless the entry or
/// its path indicates an MCP server.
pub(super) fn resolve_streamable_http_binding(url: &str, binding: String, is_mcp: bool) -> String {
    let path = url.split(['?', '#']).next().unwrap_or_default();
    if member_reader::fold_name(&binding) != "streamablehttp" {
        binding
    } else if is_mcp {
        "MCP".to_owned()
    } else if path.trim_end_matches('/').ends_with("/mcp") {
        binding
    } else {
        "JSONRPC".to_owned()
    }
}

/// Takes the location of an API key, in lower case; empty if the scheme names none. The member is `in` in 0.x and
/// `location` in 1.0, but cards of every version have either, or `in_` and `In.header` as Python writes them.
pub(super) fn take_api_key_location(
    members: &mut MemberReader<'_>,
    out: &mut FindingCollector,
) -> String {
    let pointer = members.pointer();
    for name in ["in", "location", "in_"] {
        let Some(text) = members.take_text(name, LengthLimit::Line, out) else {
            continue;
        };
        if name == "in_" || !KEY_LOCATIONS.contains(&text.as_str()) {
            out.add(&rules::SCHEME_LOCATION, &pointer, &text);
        }
        let text = text.to_lowercase();
        let mut location_words = text.split(|letter: char| !letter.is_ascii_alphanumeric());
        let location = location_words.find_map(|word| {
            let singular = word.strip_suffix('s').unwrap_or(word);
            KEY_LOCATIONS
                .into_iter()
                .find(|place| [word, singular].contains(place))
        });
        return match location {
            Some(place) => place.to_owned(),
            None => text,
        };
    }
    String::new()
}

const KEY_LOCATIONS: [&str; 3] = ["header", "query", "cookie"];

/// Takes the `flows` of an `OAuth` scheme as received; null if they are not an object.
pub(super) fn take_oauth_flows(
    members: &mut MemberReader<'_>,
    out: &mut FindingCollector,
) -> Value {
    let Some((position, flows)) = members.take_member("flows", out) else {
        return Value::Null;
    };
    if flows.is_object() {
        return flows;
    }
    out.add_wrong_type(
        &position.pointer_in(&members.pointer()),
        &flows,
        "an object of flows by name",
    );
    Value::Null
}

/// Takes media types: a list, one text, or an object of booleans.
pub(super) fn take_modes(
    members: &mut MemberReader<'_>,
    name: &'static str,
    out: &mut FindingCollector,
) -> Vec<String> {
    let Some((position, value)) = members.take_member(name, out) else {
        return Vec::new();
    };
    let parent = members.pointer();
    let pointer = position.pointer_in(&parent);
    let list = match value {
        Value::Array(list) => list,
        Value::String(_) => {
            out.add_with_value(&rules::MODES_SHAPE, &pointer, &value);
            vec![value]
        }
        Value::Object(flags) => {
            out.add(&rules::MODES_SHAPE, &pointer, "an object");
            flags
                .into_iter()
                .filter(|(_, wanted)| wanted.as_bool() == Some(true))
                .map(|(name, _)| Value::String(name))
                .collect()
        }
        other => {
            out.add_wrong_type(&pointer, &other, "a list of media types");
            members.retain_unreadable(&position, other);
            return Vec::new();
        }
    };
    let texts = member_reader::read_texts(list, &pointer, LengthLimit::Line, out);
    member_reader::unique_values(
        texts
            .iter()
            .enumerate()
            .map(|(index, text)| normalize_mode(text, &pointer.element(index), out)),
    )
}

/// Normalizes a media type to lower case; part names of the protocol become the media types that they mean.
fn normalize_mode(text: &str, pointer: &JsonPointer<'_>, out: &mut FindingCollector) -> String {
    let mode = text.to_lowercase();
    if is_media_type(&mode) {
        return mode;
    }
    out.add(&rules::MODE, pointer, text);
    let media_type = match mode.as_str() {
        "text" | "plain" | "txt" => "text/plain",
        "json" | "data" => "application/json",
        "html" => "text/html",
        "markdown" | "md" => "text/markdown",
        "image" => "image/*",
        "audio" => "audio/*",
        "video" => "video/*",
        "file" => "application/octet-stream",
        "pdf" => "application/pdf",
        "csv" => "text/csv",
        "xml" => "application/xml",
        _ => return mode,
    };
    media_type.to_owned()
}

/// Whether the text is `type/subtype` (RFC 6838 §4.2), perhaps with wildcards or parameters.
pub(crate) fn is_media_type(text: &str) -> bool {
    let essence = text.split(';').next().unwrap_or_default().trim_end();
    let is_restricted_name = |part: &str| {
        !part.is_empty()
            && part.len() <= 127
            && part
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b"!#$&-^_.+*".contains(&b))
    };
    essence
        .split_once('/')
        .is_some_and(|(kind, subtype)| is_restricted_name(kind) && is_restricted_name(subtype))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_become_major_and_minor() {
        for (text, version) in [
            ("0.3.0", Some("0.3")),
            (" v1.0 ", Some("1.0")),
            ("1", Some("1.0")),
            ("1.2.17", Some("1.2")),
            ("0.3-rc1", Some("0.3")),
            ("10.12", Some("10.12")),
            ("latest", None),
            ("2024-11-05", None),
            ("2025.1", None),
            ("1.", None),
            ("", None),
            ("1.+2", None),
            ("٣.٠", None),
        ] {
            assert_eq!(parse_protocol_version(text).as_deref(), version, "{text}");
        }
    }

    #[test]
    fn bindings_are_compared_without_case_and_signs() {
        let mut out = FindingCollector::default();
        for (text, name) in [
            ("JSONRPC", "JSONRPC"),
            ("json-rpc", "JSONRPC"),
            ("JSON-RPC 2.0", "JSONRPC"),
            ("jsonrpc-https", "JSONRPC"),
            ("http+json", "HTTP+JSON"),
            ("REST", "HTTP+JSON"),
            ("grpc", "GRPC"),
            ("MCP", "MCP"),
            ("https://example.org/b", "https://example.org/b"),
        ] {
            assert_eq!(normalize_binding(text, &JsonPointer::Root, &mut out), name);
        }
        let rules: Vec<_> = out.into_findings().into_iter().map(|f| f.rule).collect();
        assert_eq!(rules.iter().filter(|r| r.ends_with("spelling")).count(), 6);
        assert_eq!(rules.iter().filter(|r| r.ends_with("unknown")).count(), 1);
    }

    #[test]
    fn media_types_are_told_from_words() {
        for good in [
            "text/plain",
            "image/*",
            "*/*",
            "text/plain; charset=utf-8",
            "a/b+c",
        ] {
            assert!(is_media_type(good), "{good}");
        }
        for bad in ["text", "/", "text/", "te xt/plain", "text/pl/ain", ""] {
            assert!(!is_media_type(bad), "{bad}");
        }
    }
}
